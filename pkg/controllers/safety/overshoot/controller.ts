import type { MachineDeployment } from '../../../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../../apis/machine/v1alpha1/machine-set.ts';
import { API_VERSION } from '../../../apis/machine/v1alpha1/group.ts';
import { controllerOf, isBeingDeleted, keyOf, keyBeside } from '../../../apis/meta.ts';
import type { ObjectEvents } from '../../../kube/events/event-sink.ts';
import { requeue, type StepResult } from '../../../work/reconcile/result.ts';
import { CONTROLLER_INDEX } from '../../../operator/indexes/owner-index.ts';
import type { OwnerDeps } from '../../replicas/owner-deps.ts';
import type { OwnerlessVMs, OwnerlessVM } from '../ownerless-vms.ts';
import { frozeSet, unfrozeSmallSet } from '../../replicas/freeze-events.ts';
import { overshootLimitsOf, type Margins } from './limits.ts';
import {
  deploymentFreeze,
  freezeMessageOf,
  setFreeze,
  isFreezeMarked,
  isUnfreezeRequested,
  type FreezeCause,
} from '../../replicas/freeze-marks.ts';
import { decideOnDeployment, decideOnSet } from './freeze-decision.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { templateLabelsOf } from '../../../apis/machine/v1alpha1/defaults.ts';

export interface OvershootDeps extends Omit<OwnerDeps, 'reader' | 'targets' | 'brake'> {
  readonly ownerless: Pick<OwnerlessVMs, 'list'>;
  readonly recorder: ObjectEvents<MachineSet>;
  readonly margins: Margins;
  /** `--machine-safety-overshooting-period`. */
  readonly periodMs: number;
}

/**
 * Holds back MachineSets that have too many Machines, or VMs that no Machine has. Each run looks at all of them:
 *
 * 1. every set is frozen or unfrozen by its number (verdict.ts);
 * 2. every MachineDeployment is frozen while one of its sets is.
 *
 * What somebody asks to be released (annotation unfreeze) its own controller releases; it is left alone until then, and for one period
 * more. What fails for one object fails for it alone, and the run is repeated.
 */
export class OvershootController {
  readonly #deps: OvershootDeps;
  /** Sets and MachineDeployments that a user released, by UID: until when (monotonic) they are left alone. */
  readonly #releasedUntilMs = new Map<string, number>();

  constructor(deps: OvershootDeps) {
    this.#deps = deps;
  }

  /** Somebody releases that set, or the sets of that MachineDeployment: their number freezes none of them for one period. */
  released(uid: string): void {
    const { clock, periodMs } = this.#deps;
    this.#releasedUntilMs.set(uid, clock.monotonicMs() + periodMs);
  }

  /** One run over all sets and deployments. Throws the first failure after everything was tried. */
  async reconcile(signal: AbortSignal): Promise<StepResult> {
    const { machineSets, machineDeployments, ownerless, periodMs } = this.#deps;
    const failures: unknown[] = [];
    const attempt = async (run: () => Promise<void>): Promise<void> => {
      signal.throwIfAborted();
      const [outcome] = await Promise.allSettled([run()]);
      if (outcome.status === 'rejected') failures.push(outcome.reason);
    };
    this.#forgetReleased();
    const names = machineSets.list().map(({ metadata }) => metadata.name);
    const extra = ownerlessBySet(names, ownerless.list());
    for (const set of machineSets.list()) {
      await attempt(() => this.#judgeSet(set, extra.get(set.metadata.name) ?? 0, signal));
    }
    for (const deployment of machineDeployments.list()) {
      await attempt(() => this.#judgeDeployment(deployment, signal));
    }
    if (failures.length > 0) throw failures[0];
    return requeue(periodMs, 'the next count');
  }

  async #judgeSet(set: MachineSet, ownerless: number, signal: AbortSignal): Promise<void> {
    const { writer, machines, margins, recorder, clock, log } = this.#deps;
    const { uid, name } = set.metadata;
    if (isBeingDeleted(set)) return;
    const owners = [set, this.#deploymentOf(set)].filter((one) => one !== undefined);
    if (owners.some(isUnfreezeRequested)) return;
    const count = machinesIn(set, machines.byIndex(CONTROLLER_INDEX, uid)) + ownerless;
    const limits = overshootLimitsOf(set, this.#deploymentOf(set), margins);
    const marks = setFreeze.marksOf(set);
    const isReleased = owners.some((one) => this.#releasedUntilMs.has(one.metadata.uid));
    const verdict = decideOnSet(count, limits, marks, isReleased);
    if (verdict === 'leave') return;
    const fields = { key: keyOf(set), machines: count - ownerless, ownerless, ...limits };
    if (verdict === 'unfreeze') {
      await setFreeze.unfreeze(writer, set, signal);
      recorder.event(unfrozeSmallSet(set));
      log.info(fields, 'unfroze a machine set');
      return;
    }
    const without = ownerless === 0 ? '' : `, including ${ownerless} VMs without a Machine`;
    const message = `The number of machines backing MachineSet: ${name} is ${count} >= ${limits.high} which is the Max-ScaleUp-Limit${without}; released at ${limits.low}`;
    await setFreeze.freeze(writer, set, { reason: 'OverShootingReplicaCount', message }, clock.now(), signal);
    if (!marks.isLabelled) recorder.event(frozeSet(set));
    log.warn(fields, 'froze a machine set that has too many machines');
  }

  async #judgeDeployment(deployment: MachineDeployment, signal: AbortSignal): Promise<void> {
    const { writer, clock, log } = this.#deps;
    if (isUnfreezeRequested(deployment)) return;
    const sets = this.#deps.machineSets.byIndex(CONTROLLER_INDEX, deployment.metadata.uid);
    const verdict = decideOnDeployment(sets.map(setFreeze.marksOf), deploymentFreeze.marksOf(deployment));
    if (verdict === 'leave' || (verdict === 'freeze' && isBeingDeleted(deployment))) return;
    if (verdict === 'unfreeze') {
      await deploymentFreeze.unfreeze(writer, deployment, signal);
      log.info({ key: keyOf(deployment) }, 'unfroze a machine deployment');
      return;
    }
    const frozen = sets.find((set) => isFreezeMarked(setFreeze.marksOf(set)));
    const why = frozen === undefined ? undefined : freezeMessageOf(frozen);
    const cause: FreezeCause =
      why === undefined
        ? {
            reason: 'MachineDeploymentStateSync',
            message: `MachineSet ${frozen?.metadata.name ?? ''} of this MachineDeployment is frozen`,
          }
        : { reason: 'OverShootingReplicaCount', message: why };
    await deploymentFreeze.freeze(writer, deployment, cause, clock.now(), signal);
    log.warn({ key: keyOf(deployment) }, 'froze the machine deployment of a frozen set');
  }

  #forgetReleased(): void {
    const nowMs = this.#deps.clock.monotonicMs();
    for (const [uid, untilMs] of this.#releasedUntilMs) if (untilMs <= nowMs) this.#releasedUntilMs.delete(uid);
  }

  #deploymentOf(set: MachineSet): MachineDeployment | undefined {
    const owner = controllerOf(set);
    if (owner?.kind !== 'MachineDeployment' || owner.apiVersion !== API_VERSION) return undefined;
    const key = keyBeside(set, owner.name);
    const deployment = this.#deps.machineDeployments.get(key);
    return deployment?.metadata.uid === owner.uid ? deployment : undefined;
  }
}

/** Machines of a set that carry all its template's labels, whatever their phase, those on their way out included. */
export function machinesIn(set: Pick<MachineSet, 'spec'>, controlled: readonly Machine[]): number {
  const wanted = Object.entries(templateLabelsOf(set.spec.template));
  return controlled.filter(({ metadata }) => wanted.every(([label, value]) => metadata.labels?.[label] === value))
    .length;
}

/**
 * VMs that no Machine has, by the name of the set that made them: Machines are named after their set, so it is the set whose
 * name, the longest of several, begins the VM's name. VMs of unknown sets count for none.
 */
export function ownerlessBySet(setNames: readonly string[], vms: readonly OwnerlessVM[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  const longestFirst = setNames.toSorted((a, b) => b.length - a.length);
  for (const { machineName } of vms) {
    const name = longestFirst.find((candidate) => machineName.startsWith(`${candidate}-`));
    if (name !== undefined) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return counts;
}
