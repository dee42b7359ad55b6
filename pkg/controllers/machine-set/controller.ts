import { nodeNameOf, replicasOf } from '../../apis/machine/v1alpha1/defaults.ts';
import {
  LAST_SCALER_CHANGE_ANNOTATION,
  MACHINE_FINALIZER,
  SCALE_UP_DISABLED_LABEL,
} from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { describeFieldErrors, validateMachineSet } from '../../apis/machine/v1alpha1/validation.ts';
import { isBeingDeleted, refOf } from '../../apis/meta.ts';
import type { Node } from '../../apis/wire.ts';
import { fromTimestamp, MINUTE_MS } from '../../clock/clock.ts';
import { messageOf } from '../../driver/errno.ts';
import { GateClosedError } from '../../gate/gate.ts';
import { statusPatch } from '../../kube/patch.ts';
import { machineSets } from '../../kube/resource.ts';
import { conditionOf } from '../../reconcile/conditions.ts';
import { Finalizer } from '../../reconcile/finalizer.ts';
import { requeue, stop, type StepResult } from '../../reconcile/result.ts';
import { isUnfreezeRequested, setFreeze } from '../replicas/freeze-marks.ts';
import { preserveFailed } from './auto-preserve.ts';
import { claimedMachines, claimMachines } from './claim.ts';
import { hasOutdatedTemplate, isRolling, roomFor } from './creation-room.ts';
import { finishSetDeletion } from './deletion.ts';
import { invalidAnnotation, invalidSpec } from '../replicas/events.ts';
import { isTerminating } from '../replicas/machine-state.ts';
import type { MachineSetDeps } from './deps.ts';
import { isKeptWhenFailed, nextExpiryInMs } from './preservation.ts';
import { planReplicas } from '../replicas/replica-plan.ts';
import { releaseSet } from '../replicas/release.ts';
import { withoutRolloutNotes } from './rollout-notes.ts';
import { DELETIONS_A_PASS, scaleDown } from './scale-down.ts';
import { scaleUp } from './scale-up.ts';
import { StatusPace } from '../replicas/status-pace.ts';
import { machineSetStatusChange } from './status.ts';
import { stopRunaway } from './stop.ts';
import { Swings } from './swing.ts';
import { pushTemplate } from './template-push.ts';
import { settleWhenObserved, unseenCreations } from './unseen-creations.ts';

/** A set without events is looked at again after this time, in case one was missed; the look writes nothing. */
const RESYNC_MS = 10 * MINUTE_MS;
/** When to look again at a Failed Machine whose Node works: its controller is about to take it back. */
const RECOVERY_CHECK_MS = 15_000;
/** When to look again at missing Machines for which there was no room; Machines that go wake the set before. */
const ROOM_CHECK_MS = 10_000;

/** How the management of replicas ended. */
interface Managed {
  /** Missing Machines could not be created: shown as condition ReplicaFailure, then retried. */
  readonly failure?: unknown;
  /** Anything else that has to be retried. */
  readonly error?: unknown;
  /** Run again after this time, although nothing failed. */
  readonly againMs?: number;
}

/** Keeps as many Machines alive as each MachineSet asks for. */
export class MachineSetController {
  readonly #deps: MachineSetDeps;
  readonly #finalizer: Finalizer<MachineSet>;
  readonly #pace: StatusPace;
  readonly #swings: Swings;
  /** Sets that have been seen: a key tells of no UID any more once its set is gone. */
  readonly #uids = new Map<string, string>();

  constructor(deps: MachineSetDeps) {
    this.#deps = deps;
    this.#finalizer = new Finalizer(deps.writer, machineSets, MACHINE_FINALIZER);
    this.#pace = new StatusPace(deps.clock);
    this.#swings = new Swings(deps);
    settleWhenObserved(deps);
  }

  /** One pass over one set. What it throws is retried with backoff. */
  async reconcile(key: string, signal: AbortSignal): Promise<StepResult> {
    const cached = this.#deps.machineSets.get(key);
    this.#forgetOthers(key, cached?.metadata.uid);
    if (cached === undefined) return stop;
    if (isBeingDeleted(cached)) return this.#delete(key, cached, signal);
    if (isUnfreezeRequested(cached)) {
      await releaseSet({ ...this.#deps, recorder: this.#deps.safetyRecorder }, cached, signal);
      return requeue(0, 'its release to be recorded');
    }

    const errors = validateMachineSet(cached);
    if (errors.length > 0) return this.#reject(key, cached, describeFieldErrors(errors), signal);

    const set = await withoutRolloutNotes(this.#deps, await this.#finalizer.add(cached, signal), signal);
    await claimMachines(this.#deps, set, signal);
    await pushTemplate(this.#deps, set, claimedMachines(this.#deps, set), signal);
    const nodeOf = (machine: Machine): Node | 'missing' | undefined => this.#nodeOf(machine);
    await preserveFailed(this.#deps, set, claimedMachines(this.#deps, set), nodeOf, signal);
    const managed = await this.#manageReplicas(key, set, signal);
    await stopRunaway(this.#deps, this.#deps.machineSets.get(key) ?? set, signal);
    return this.#report(key, set, managed, signal);
  }

  #forgetOthers(key: string, uid: string | undefined): void {
    const before = this.#uids.get(key);
    if (before !== undefined && before !== uid) {
      this.#deps.expectations.forget(before);
      this.#swings.forget(before);
      this.#pace.forget(key);
    }
    if (uid === undefined) this.#uids.delete(key);
    else this.#uids.set(key, uid);
  }

  async #manageReplicas(key: string, set: MachineSet, signal: AbortSignal): Promise<Managed> {
    const claimed = claimedMachines(this.#deps, set);
    const plan = planReplicas(this.#facts(set, claimed));
    if (plan.create > 0) return this.#create(key, set, signal);
    if (plan.victims.length === 0) {
      if (plan.kept > 0) return { againMs: this.#swings.see(set.metadata.uid, replicasOf(set)) };
      return plan.heldBack === 'no-room' ? { againMs: ROOM_CHECK_MS } : {};
    }
    try {
      const victims = plan.victims.slice(0, DELETIONS_A_PASS);
      const { recovered } = await scaleDown(this.#deps, set, victims, signal);
      if (recovered > 0) return { againMs: RECOVERY_CHECK_MS };
    } catch (error) {
      return { error };
    }
    // A plan of failed Machines becomes a plan of creations as soon as their deletion has begun, and it is carried out while they are
    // seen going: in a rollout there may be no room any more for the replacement of one that is gone.
    return this.#missing(key, set.metadata.uid) > 0 ? await this.#create(key, set, signal) : { againMs: 0 };
  }

  async #create(key: string, set: MachineSet, signal: AbortSignal): Promise<Managed> {
    const pending = await unseenCreations(this.#deps, set, signal);
    try {
      await scaleUp(this.#deps, { set, pending, signal, missing: () => this.#missing(key, set.metadata.uid) });
    } catch (err) {
      // A closed gate, or the end of the process, is no failure of this set.
      return err instanceof GateClosedError || signal.aborted ? { error: err } : { failure: err };
    }
    return this.#missing(key, set.metadata.uid) > 0 ? { againMs: 0 } : {};
  }

  /** How many Machines the set that the cache shows now wants to create. */
  #missing(key: string, uid: string): number {
    const set = this.#deps.machineSets.get(key);
    if (set === undefined || set.metadata.uid !== uid || isBeingDeleted(set)) return 0;
    return planReplicas(this.#facts(set, claimedMachines(this.#deps, set))).create;
  }

  #facts(set: MachineSet, machines: readonly Machine[]): Parameters<typeof planReplicas>[0] {
    const nowMs = this.#deps.clock.now();
    const { isLabelled, isStopped } = setFreeze.marksOf(set);
    return {
      desired: replicasOf(set),
      machines,
      isFrozen: isLabelled || isStopped === true,
      isReplaced: hasOutdatedTemplate(this.#deps, set),
      isScaleUpDisabled: set.metadata.labels?.[SCALE_UP_DISABLED_LABEL] !== undefined,
      room: machines.length < replicasOf(set) || machines.some(isTerminating) ? roomFor(this.#deps, set) : Infinity,
      isSwinging: this.#swings.see(set.metadata.uid, replicasOf(set)) > 0 && !isRolling(this.#deps, set),
      scalerChangedAtMs: fromTimestamp(set.metadata.annotations?.[LAST_SCALER_CHANGE_ANNOTATION]),
      nowMs,
      isKept: (machine) => isKeptWhenFailed(machine, this.#nodeOf(machine), nowMs),
    };
  }

  #nodeOf(machine: Machine): Node | 'missing' | undefined {
    const name = nodeNameOf(machine);
    if (name === '') return undefined;
    return this.#deps.targets.of(machine)?.nodes.get(name) ?? 'missing';
  }

  async #report(key: string, set: MachineSet, managed: Managed, signal: AbortSignal): Promise<StepResult> {
    const statusWaitMs = await this.#writeStatus(key, set, undefined, managed.failure, signal);
    if (managed.failure !== undefined) throw managed.failure;
    if (managed.error !== undefined) throw managed.error;
    const expiryInMs = nextExpiryInMs(claimedMachines(this.#deps, set), this.#deps.clock.now());
    const waits = [RESYNC_MS, managed.againMs, statusWaitMs, expiryInMs].filter((ms) => ms !== undefined);
    return requeue(Math.min(...waits), 'changes of its machines');
  }

  /** The spec cannot be obeyed: said once, by condition and Event; the Machines stay as they are. */
  async #reject(key: string, set: MachineSet, errors: string, signal: AbortSignal): Promise<StepResult> {
    const waitMs = await this.#writeStatus(key, set, errors, undefined, signal);
    return waitMs === undefined ? stop : requeue(waitMs, 'its status to be recorded');
  }

  async #delete(key: string, set: MachineSet, signal: AbortSignal): Promise<StepResult> {
    if (!this.#finalizer.holds(set)) return stop;
    const [deletion] = await Promise.allSettled([finishSetDeletion(this.#deps, set, signal)]);
    const isGone = deletion.status === 'fulfilled' && deletion.value.kind === 'next';
    const waitMs = isGone ? undefined : await this.#writeStatus(key, set, undefined, undefined, signal);
    if (deletion.status === 'rejected') throw deletion.reason;
    if (waitMs === undefined) return deletion.value;
    const { value } = deletion;
    return requeue(value.kind === 'requeue' ? Math.min(waitMs, value.afterMs) : waitMs, 'its machines to be deleted');
  }

  /** Writes the status if it changed; returns after which time to come back when it is too early for another write. */
  async #writeStatus(
    key: string,
    acted: MachineSet,
    invalid: string | undefined,
    failure: unknown,
    signal: AbortSignal,
  ): Promise<number | undefined> {
    const { writer, clock } = this.#deps;
    const set = this.#deps.machineSets.get(key);
    if (set === undefined || set.metadata.uid !== acted.metadata.uid) return undefined;

    const change = machineSetStatusChange({
      set,
      observedGeneration: acted.metadata.generation ?? 0,
      machines: claimedMachines(this.#deps, set),
      failure: failure === undefined ? undefined : messageOf(failure),
      invalid,
      nowMs: clock.now(),
    });
    if (change === undefined) return undefined;
    const waitMs = this.#pace.waitMs(key);
    if (waitMs > 0) return waitMs;
    this.#pace.written(key);
    await writer.patch('change', machineSets, refOf(set), statusPatch(set, change), { signal });
    const { machineSetCondition: before = [] } = set.status ?? {};
    const annotations = invalidAnnotation(set, 'MachineSet', before);
    if (annotations !== undefined) this.#deps.recorder.event(annotations);
    const told = conditionOf(before, 'InvalidSpec')?.message;
    if (invalid !== undefined && invalid !== told) this.#deps.recorder.event(invalidSpec(set, invalid));
    return undefined;
  }
}
