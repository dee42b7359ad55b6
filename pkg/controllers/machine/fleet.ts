import { API_VERSION } from '../../apis/machine/v1alpha1/group.ts';
import { MAX_REPLACEMENTS_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { controllerOf, type KubeObject } from '../../apis/meta.ts';
import type { Lister } from '../../cache/lister.ts';
import { mayReplace, replacementLimit } from './replacement.ts';

/** The machines that are replaced as one: those of a MachineDeployment, or of a MachineSet without one. */
interface Pool {
  readonly key: string;
  readonly limit: number;
  readonly others: readonly Machine[];
}

/** What the fleet is read from. Without sets and deployments every MachineSet named by an owner reference is a pool of its own. */
export interface FleetParts {
  readonly machines: Lister<Machine>;
  readonly sets?: Lister<MachineSet> | undefined;
  readonly deployments?: Lister<MachineDeployment> | undefined;
}

/**
 * Grants replacements of unhealthy machines within the limit of their MachineDeployment, found by owner references. A grant
 * is held until it is released, so that two passes cannot both take the last one while their writes are under way.
 */
export class Fleet {
  readonly #parts: FleetParts;
  readonly #condemned = new Map<string, Set<string>>();

  constructor(parts: FleetParts) {
    this.#parts = parts;
  }

  /** A grant to fail this machine; undefined while too many others of its pool are being replaced. */
  condemn(machine: Machine): Disposable | undefined {
    const { uid } = machine.metadata;
    const pool = this.#poolOf(machine);
    if (pool === undefined) return { [Symbol.dispose]: () => undefined };
    const condemned = this.#condemned.get(pool.key) ?? new Set();
    if (!mayReplace(pool.others, condemned, pool.limit)) return undefined;
    condemned.add(uid);
    this.#condemned.set(pool.key, condemned);
    return { [Symbol.dispose]: () => this.#release(pool.key, uid) };
  }

  #release(key: string, uid: string): void {
    const condemned = this.#condemned.get(key);
    condemned?.delete(uid);
    if (condemned?.size === 0) this.#condemned.delete(key);
  }

  /** Undefined for a machine that nobody replaces. */
  #poolOf(machine: Machine): Pool | undefined {
    const setRef = ownerOf(machine, 'MachineSet');
    if (setRef === undefined) return undefined;
    const { namespace = '', uid } = machine.metadata;
    const set = this.#sibling(this.#parts.sets, namespace, setRef);
    const deploymentRef = set === undefined ? undefined : ownerOf(set, 'MachineDeployment');
    const deployment =
      deploymentRef === undefined ? undefined : this.#sibling(this.#parts.deployments, namespace, deploymentRef);
    const key = deploymentRef?.uid ?? setRef.uid;
    const setUIDs = deploymentRef === undefined ? new Set([setRef.uid]) : this.#setsOf(deploymentRef.uid);
    const others = this.#parts.machines
      .list()
      .filter((other) => other.metadata.uid !== uid && setUIDs.has(ownerOf(other, 'MachineSet')?.uid ?? ''));
    const annotation = deployment?.metadata.annotations?.[MAX_REPLACEMENTS_ANNOTATION];
    return { key, others, limit: replacementLimit(annotation, deployment?.spec.replicas ?? 0) };
  }

  #setsOf(deploymentUID: string): ReadonlySet<string> {
    const sets = this.#parts.sets?.list() ?? [];
    return new Set(
      sets.filter((set) => ownerOf(set, 'MachineDeployment')?.uid === deploymentUID).map((set) => set.metadata.uid),
    );
  }

  #sibling<T extends KubeObject>(
    lister: Lister<T> | undefined,
    namespace: string,
    { name, uid }: { name: string; uid: string },
  ): T | undefined {
    const object = lister?.get(`${namespace}/${name}`);
    return object?.metadata.uid === uid ? object : undefined;
  }
}

function ownerOf(object: KubeObject, kind: string): { name: string; uid: string } | undefined {
  const owner = controllerOf(object);
  return owner?.kind === kind && owner.apiVersion === API_VERSION ? owner : undefined;
}
