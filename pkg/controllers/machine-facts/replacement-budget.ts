import { DEPLOYMENT_NAME_LABEL, MAX_REPLACEMENTS_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { keyBeside } from '../../apis/meta.ts';
import type { Clock } from '../../base/clock/clock.ts';
import type { Lister } from '../../kube/cache/lister.ts';
import { CONTROLLER_INDEX } from '../../operator/indexes/owner-index.ts';
import { ownerIn, ownerNameOf, type Owners } from './owners.ts';
import { mayReplace, replacementLimit } from './replacement.ts';

/** The machines that are replaced as one: those of a MachineDeployment, or of a MachineSet without one. */
export interface Pool {
  readonly key: string;
  /** How many of them may be replaced at once. */
  readonly limit: number;
  readonly machines: readonly Machine[];
}

/** What the fleet is read from, with CONTROLLER_INDEX. A process that reads no sets knows a MachineDeployment by label `name`, or its sets one by one. */
export interface ReplacementBudgetDeps {
  readonly machines: Lister<Machine>;
  readonly owners: Owners;
  readonly clock: Pick<Clock, 'now'>;
}

/**
 * Grants replacements of unhealthy machines within the limit of their MachineDeployment, found by owner references. A grant
 * is held until it is released, so that two passes cannot both take the last one while their writes are under way.
 */
export class ReplacementBudget {
  readonly #deps: ReplacementBudgetDeps;
  readonly #condemned = new Map<string, Set<string>>();

  constructor(deps: ReplacementBudgetDeps) {
    this.#deps = deps;
  }

  /**
   * A grant to fail this machine; undefined while too many others of its pool are being replaced. `isStuck`: which of those that join are not
   * on their way any more.
   */
  tryAcquire(machine: Machine, isStuck: (other: Machine) => boolean = () => false): Disposable | undefined {
    const { uid } = machine.metadata;
    const pool = this.poolOf(machine);
    if (pool === undefined) return { [Symbol.dispose]: () => undefined };
    const condemned = this.#condemned.get(pool.key) ?? new Set();
    const counted = pool.machines.filter(
      (one) => one.metadata.uid !== uid && (condemned.has(one.metadata.uid) || !isStuck(one)),
    );
    if (!mayReplace(counted, condemned, { limit: pool.limit, nowMs: this.#deps.clock.now() })) return undefined;
    condemned.add(uid);
    this.#condemned.set(pool.key, condemned);
    return { [Symbol.dispose]: () => this.#release(pool.key, uid) };
  }

  /** The machines that this one shares its limit with; undefined for a machine that nobody replaces. */
  poolOf(machine: Machine): Pool | undefined {
    const setRef = ownerNameOf(machine, 'MachineSet');
    if (setRef === undefined) return undefined;
    const { sets } = this.#deps.owners;
    return sets === undefined ? this.#poolByName(machine, setRef.uid) : this.#poolByOwner(machine, sets, setRef);
  }

  #release(key: string, uid: string): void {
    const condemned = this.#condemned.get(key);
    condemned?.delete(uid);
    if (condemned?.size === 0) this.#condemned.delete(key);
  }

  /** A process that does not read sets knows the MachineDeployment by the label that the original goes by, if it is there. */
  #poolByName(machine: Machine, setUID: string): Pool {
    const name = machine.metadata.labels?.[DEPLOYMENT_NAME_LABEL];
    const limit = replacementLimit(undefined, 0);
    const { machines } = this.#deps;
    if (name === undefined) return { key: setUID, limit, machines: machines.byIndex(CONTROLLER_INDEX, setUID) };
    const mates = machines.list().filter(({ metadata }) => metadata.labels?.[DEPLOYMENT_NAME_LABEL] === name);
    return { key: keyBeside(machine, name), limit, machines: mates };
  }

  #poolByOwner(machine: Machine, sets: Lister<MachineSet>, setRef: { name: string; uid: string }): Pool {
    const { namespace = '' } = machine.metadata;
    const set = ownerIn(sets, namespace, setRef);
    const ref = set === undefined ? undefined : ownerNameOf(set, 'MachineDeployment');
    const deployment = ref === undefined ? undefined : ownerIn(this.#deps.owners.deployments, namespace, ref);
    const mates = ref === undefined ? [] : sets.byIndex(CONTROLLER_INDEX, ref.uid);
    const setUIDs = new Set([setRef.uid, ...mates.map(({ metadata: { uid } }) => uid)]);
    const annotation = deployment?.metadata.annotations?.[MAX_REPLACEMENTS_ANNOTATION];
    return {
      key: ref?.uid ?? setRef.uid,
      limit: replacementLimit(annotation, deployment?.spec.replicas ?? 0),
      machines: [...setUIDs].flatMap((uid) => this.#deps.machines.byIndex(CONTROLLER_INDEX, uid)),
    };
  }
}
