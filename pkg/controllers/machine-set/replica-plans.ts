import { replicasOf } from '../../apis/machine/v1alpha1/defaults.ts';
import { LAST_SCALER_CHANGE_ANNOTATION, SCALE_UP_DISABLED_LABEL } from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { fromTimestamp, type Clock } from '../../base/clock/clock.ts';
import { isStopped as isOwnerStopped } from '../replicas/creation-brake.ts';
import { setFreeze } from '../replicas/freeze-marks.ts';
import { isKeptWhenFailed, isTerminating } from '../replicas/machine-state.ts';
import { planReplicas, type ReplicaPlan } from '../replicas/replica-plan.ts';
import { deploymentOfSet, hasOutdatedTemplate, isCrowded, isRolling, roomFor } from './creation-room.ts';
import type { MachineSetDeps, SetPass } from './step.ts';
import { nodeOf } from './preservation.ts';

/** A size that falls so soon after it rose, or while it already swings, may rise again. */
const SWING_MS = 5_000;

/**
 * Remembers how the sizes of sets change, by UID. Who raises and lowers a size within seconds, such as two autoscalers that disagree,
 * would pay for VMs that are deleted only to be made again. So after a fall that follows a rise by less than `SWING_MS` the set
 * has as long to be raised again, and each further fall begins that time anew. It never waits when none is wanted.
 *
 * Kept in memory only: a new process sees no swing, and obeys at once.
 */
export class Swings {
  readonly #clock: Clock;
  readonly #sizes = new Map<string, { replicas: number; raisedAtMs: number; settledAtMs: number }>();

  constructor(deps: { clock: Clock }) {
    this.#clock = deps.clock;
  }

  /** The set has this size now; returns for how long its surplus may still be wanted again. */
  see(uid: string, replicas: number): number {
    const nowMs = this.#clock.monotonicMs();
    const size = this.#sizes.get(uid) ?? { replicas, raisedAtMs: -Infinity, settledAtMs: -Infinity };
    this.#sizes.set(uid, size);
    if (replicas > size.replicas) size.raisedAtMs = nowMs;
    if (replicas < size.replicas && (nowMs - size.raisedAtMs < SWING_MS || nowMs < size.settledAtMs)) {
      size.settledAtMs = nowMs + SWING_MS;
    }
    size.replicas = replicas;
    return replicas === 0 ? 0 : Math.max(0, size.settledAtMs - nowMs);
  }

  forget(uid: string): void {
    this.#sizes.delete(uid);
  }
}

type Deps = Pick<
  MachineSetDeps,
  'machines' | 'machineSets' | 'machineDeployments' | 'targets' | 'expectations' | 'brake' | 'clock'
>;

/** What sets do about their number of Machines, from what the caches show. */
export class ReplicaPlans {
  readonly #deps: Deps;
  readonly #swings: Swings;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#swings = new Swings(deps);
  }

  of(
    set: MachineSet,
    machines: readonly Machine[],
    { unadopted = 0, unpreserved }: Pick<SetPass, 'unadopted' | 'unpreserved'> = {},
  ): ReplicaPlan {
    const nowMs = this.#deps.clock.now();
    const { isLabelled, isStopped } = setFreeze.marksOf(set);
    const isShort = machines.length < replicasOf(set) || machines.some(isTerminating);
    const room = isShort ? roomFor(this.#deps, set) : Infinity;
    return planReplicas({
      desired: replicasOf(set),
      unadopted,
      machines,
      isFrozen:
        isLabelled || isStopped === true || isOwnerStopped(deploymentOfSet(this.#deps, set)?.status?.conditions),
      isReplaced: hasOutdatedTemplate(this.#deps, set),
      isScaleUpDisabled: set.metadata.labels?.[SCALE_UP_DISABLED_LABEL] !== undefined,
      room,
      isCrowded: room === 0 && isCrowded(this.#deps, set),
      isSwinging: this.settlesInMs(set) > 0 && !isRolling(this.#deps, set),
      scalerChangedAtMs: fromTimestamp(set.metadata.annotations?.[LAST_SCALER_CHANGE_ANNOTATION]),
      nowMs,
      isKept: (machine) =>
        unpreserved?.has(machine.metadata.uid) === true ||
        isKeptWhenFailed(machine, nodeOf(this.#deps, machine), nowMs),
    });
  }

  /** For how long the surplus of a set whose size swings may still be wanted again. */
  settlesInMs(set: MachineSet): number {
    return this.#swings.see(set.metadata.uid, replicasOf(set));
  }

  forget(uid: string): void {
    this.#swings.forget(uid);
  }
}
