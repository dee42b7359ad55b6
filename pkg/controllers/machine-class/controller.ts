import { withoutFinalizer, withFinalizer, hasFinalizer } from '../../apis/finalizers.ts';
import { MACHINE_FINALIZER } from '../../apis/machine/v1alpha1/labels.ts';
import type { MachineClass } from '../../apis/machine/v1alpha1/machine-class.ts';
import { isBeingDeleted } from '../../apis/meta.ts';
import { MINUTE_MS } from '../../base/clock/clock.ts';
import type { ObjectEvents } from '../../kube/events/event-sink.ts';
import type { ObjectEvent } from '../replicas/events.ts';
import type { Writer } from '../../kube/client/client.ts';
import { mergePatchIfUnchanged } from '../../kube/client/patch.ts';
import { machineClasses } from '../../kube/client/resource.ts';
import { requeue, stop, waitFor, type StepResult } from '../../work/reconcile/result.ts';
import type { Caches } from '../../operator/caches.ts';
import type { Operator } from '../../operator/operator.ts';
import { CLASS_INDEX } from '../../operator/indexes/class-index.ts';
import { forcedRemovalsOf } from '../vms/forced-removals.ts';
import type { LateVMs } from '../vms/late-vms.ts';
import {
  inUse,
  leftVMs,
  releasedAfterEdit,
  releasedUncounted,
  releasedUnproven,
  unconfirmed,
  vanishedMachines,
} from './events.ts';
import { decideFinalizer, LONGEST_HOLD_MS, type FinalizerDecision, type LeftoverVMs } from './finalizer-decision.ts';

export interface MachineClassDeps extends Pick<Caches, 'classes' | 'machines'>, Pick<Operator, 'clock' | 'log'> {
  readonly writer: Writer;
  /**
   * Whether a VM list begun after `sinceMs` (monotonic), when the class had no Machine any more, shows VMs of the class
   * without a Machine. What it throws counts as `unknown`.
   */
  readonly ownerlessVMs: (machineClass: MachineClass, sinceMs: number, signal: AbortSignal) => Promise<LeftoverVMs>;
  /** VMs that may appear after their Machines are gone. */
  readonly late: Pick<LateVMs, 'leftMs'>;
  /** Whether a Machine of a class has vanished otherwise than after its VM. */
  readonly hasLost: (classKey: string) => boolean;
  /** Whether the provider omits VMs of machines: a list without VMs says little then. */
  readonly isDistrusted: (machineClass: MachineClass) => boolean;
  /**
   * When the last look began that `isDistrusted` is of; -Infinity if that could not list the class, Infinity where nobody looks. Monotonic.
   */
  readonly lookedMs: (classKey: string) => number;
  /** How far apart two VM lists must be to prove that no VM is left of a Machine that was let go by force, or has vanished. */
  readonly graceMs: number;
  readonly recorder: ObjectEvents<MachineClass>;
}

/** Time between two questions for VMs that nobody owns. */
const ASK_AGAIN_MS = 30_000;
/** The same when it lasts: each may need the lists of all classes of the driver. */
const ASK_SELDOM_MS = 5 * MINUTE_MS;
/** Time between two Events that tell why a class is still there: half the life of an Event. */
const REPORT_AGAIN_MS = 30 * MINUTE_MS;

interface Unused {
  readonly uid: string;
  /** Of the class: a list that was taken with another version, perhaps in another account, says nothing of this one. */
  readonly version: string;
  readonly isDeleting: boolean;
  readonly sinceMs: number;
  /** A list has shown VMs that nobody owns. */
  readonly hasLeft: boolean;
  /** That was before the class was edited, and no list has shown any since. */
  readonly isLeftBehind: boolean;
  /** Undefined when the last list showed another. */
  readonly empty?: EmptyLists | undefined;
}

/** When lists in a row began that showed no VM. */
interface EmptyLists {
  readonly firstMs: number;
  readonly lastMs: number;
  /** The last one that counts: a look that began after it has listed the class, too, and has not distrusted the provider. */
  readonly countedMs?: number | undefined;
}

/** Keeps the finalizer on MachineClasses that somebody needs; finalizer-decision.ts has the rules. */
export class MachineClassController {
  readonly #deps: MachineClassDeps;
  readonly #unused = new Map<string, Unused>();
  /** When it was last told of a class that its deletion waits, and why. Monotonic. */
  readonly #reported = new Map<string, { readonly uid: string; readonly reason: string; readonly atMs: number }>();

  constructor(deps: MachineClassDeps) {
    this.#deps = deps;
  }

  async reconcile(key: string, signal: AbortSignal): Promise<StepResult> {
    const seen = this.#deps.classes.get(key);
    if (seen === undefined || this.#hasMachines(key)) this.#unused.delete(key);
    if (seen === undefined) {
      this.#reported.delete(key);
      return stop;
    }

    const decision = this.#decide(key, seen, undefined, 0);
    if (decision !== 'ask') return this.#act(decision, key, seen, undefined, signal);

    const askedAtMs = this.#deps.clock.monotonicMs();
    const lateMs = this.#deps.late.leftMs(key);
    const answer = await this.#ownerlessVMs(seen, this.#unusedSince(key, seen), signal);
    // Machines and class may have changed while the provider was asked.
    const current = this.#deps.classes.get(key);
    if (current === undefined || versionOf(current) !== versionOf(seen))
      return requeue(0, 'the latest version of the class');
    const ownerless = this.#noteList(key, current, answer, askedAtMs);
    return this.#act(this.#decide(key, current, ownerless, lateMs), key, current, ownerless, signal);
  }

  /** `lateMs`: for how long VMs could still appear when the provider was asked. */
  #decide(
    key: string,
    machineClass: MachineClass,
    ownerless: LeftoverVMs | undefined,
    lateMs: number,
  ): FinalizerDecision {
    const hasMachines = this.#hasMachines(key);
    const sinceMs = hasMachines ? undefined : this.#unusedSince(key, machineClass);
    const { empty, hasLeft = false } = this.#unused.get(key) ?? {};
    return decideFinalizer({
      hasMachines,
      isHeld: hasFinalizer(machineClass, MACHINE_FINALIZER),
      isDeleting: isBeingDeleted(machineClass),
      isUnconfirmed: isUnconfirmed(machineClass),
      hasLost: this.#deps.hasLost(key),
      hasLeft,
      mayComeLate: lateMs > 0,
      ownerless,
      waitedMs: sinceMs === undefined ? 0 : this.#deps.clock.monotonicMs() - sinceMs,
      emptyForMs: empty?.countedMs === undefined ? undefined : empty.countedMs - empty.firstMs,
      uncountedForMs: empty === undefined ? 0 : empty.lastMs - (empty.countedMs ?? empty.firstMs),
      graceMs: this.#deps.graceMs,
    });
  }

  async #act(
    decision: FinalizerDecision,
    key: string,
    machineClass: MachineClass,
    ownerless: LeftoverVMs | undefined,
    signal: AbortSignal,
  ): Promise<StepResult> {
    if (decision === 'leave') return isBeingDeleted(machineClass) ? this.#waitForMachines(key, machineClass) : stop;
    if (decision === 'ask') return requeue(0, 'the latest version of the class');
    if (decision === 'wait') {
      const lateMs = this.#deps.late.leftMs(key);
      if (ownerless === 'none' && lateMs > 0) return requeue(lateMs, 'VMs of CreateMachine calls to appear');
      this.#reportWait(key, machineClass, ownerless);
      if (ownerless === 'none')
        return requeue(Math.min(ASK_AGAIN_MS, this.#deps.graceMs), 'a second VM list without VMs');
      if (ownerless !== 'some') return requeue(ASK_AGAIN_MS, 'a VM list');
      const isLong = this.#waitedMs(key, machineClass) >= LONGEST_HOLD_MS;
      return requeue(isLong ? ASK_SELDOM_MS : ASK_AGAIN_MS, 'VMs without a Machine to be deleted');
    }
    if (decision === 'remove-unproven') {
      const minutes = Math.round(this.#waitedMs(key, machineClass) / MINUTE_MS);
      const released = ownerless === 'none' ? releasedUncounted : releasedUnproven;
      this.#deps.recorder.event(released(machineClass, minutes));
    }
    if (decision === 'remove' && this.#unused.get(key)?.isLeftBehind === true)
      this.#deps.recorder.event(releasedAfterEdit(machineClass));
    const next = decision === 'add' ? withFinalizer : withoutFinalizer;
    await this.#write(machineClass, next(machineClass, MACHINE_FINALIZER), signal);
    return stop;
  }

  /** Told when the wait begins, and now and then for as long as it lasts: Events do not live forever. */
  #waitForMachines(key: string, machineClass: MachineClass): StepResult {
    const users = this.#deps.machines.byIndex(CLASS_INDEX, key).map(({ metadata }) => metadata.name);
    if (users.length === 0) return waitFor('other finalizers');
    this.#report(key, inUse(machineClass, users.toSorted()));
    const toldMs = this.#reported.get(key)?.atMs ?? 0;
    return requeue(toldMs + REPORT_AGAIN_MS - this.#deps.clock.monotonicMs(), 'its last Machine to be removed');
  }

  /** Why a class that is being deleted is kept although it has no Machines; what passes by itself within minutes is not told. */
  #reportWait(key: string, machineClass: MachineClass, ownerless: LeftoverVMs | undefined): void {
    if (!isBeingDeleted(machineClass)) return;
    const isLong = this.#waitedMs(key, machineClass) >= LONGEST_HOLD_MS;
    if (isUnconfirmed(machineClass)) {
      if (ownerless !== 'none' || isLong) this.#report(key, unconfirmed(machineClass));
    } else if (ownerless !== 'unknown' && isLong) {
      const hasLeft = this.#unused.get(key)?.hasLeft === true;
      this.#report(key, hasLeft ? leftVMs(machineClass) : vanishedMachines(machineClass));
    }
  }

  /** Tells of a class unless it has told the same of it a while ago. */
  #report(key: string, event: ObjectEvent<MachineClass>): void {
    const { uid } = event.object.metadata;
    const { reason } = event;
    const nowMs = this.#deps.clock.monotonicMs();
    const told = this.#reported.get(key);
    if (told?.uid === uid && told.reason === reason && nowMs - told.atMs < REPORT_AGAIN_MS) return;
    this.#reported.set(key, { uid, reason, atMs: nowMs });
    this.#deps.recorder.event(event);
  }

  #waitedMs(key: string, machineClass: MachineClass): number {
    return this.#deps.clock.monotonicMs() - this.#unusedSince(key, machineClass);
  }

  async #ownerlessVMs(machineClass: MachineClass, sinceMs: number, signal: AbortSignal): Promise<LeftoverVMs> {
    try {
      return await this.#deps.ownerlessVMs(machineClass, sinceMs, signal);
    } catch (err) {
      signal.throwIfAborted();
      this.#deps.log.warn({ err, class: machineClass.metadata.name }, 'could not list VMs of unused class');
      return 'unknown';
    }
  }

  /** Monotonic. A class whose deletion begins is given the whole time again. */
  #unusedSince(key: string, machineClass: MachineClass): number {
    const { uid } = machineClass.metadata;
    const version = versionOf(machineClass);
    const isDeleting = isBeingDeleted(machineClass);
    const known = this.#unused.get(key);
    const isSame = known?.uid === uid && known.isDeleting === isDeleting;
    if (isSame && known.version === version) return known.sinceMs;
    const sinceMs = isSame ? known.sinceMs : this.#deps.clock.monotonicMs();
    const hasLeft = known?.uid === uid && known.hasLeft;
    // The begin of the deletion is another version, too, and no edit.
    const isLeftBehind = hasLeft && (isSame || known.isLeftBehind);
    this.#unused.set(key, { uid, version, isDeleting, sinceMs, hasLeft, isLeftBehind });
    return sinceMs;
  }

  /**
   * Remembers what a list that began at `atMs` says, for as long as the class has no Machine. Returns what is known by now: who does not answer,
   * or cannot list any more, has not deleted what was there. Where there may be VMs, an empty list of a provider that omits others is no answer,
   * and one that no look has followed yet does not count: the last look may have been before an outage.
   */
  #noteList(key: string, machineClass: MachineClass, answer: LeftoverVMs, atMs: number): LeftoverVMs {
    const unused = this.#unused.get(key);
    if (unused === undefined) return answer;
    const mayHaveLeft = unused.hasLeft || this.#deps.hasLost(key) || isUnconfirmed(machineClass);
    const isBelieved = answer !== 'none' || !mayHaveLeft || !this.#deps.isDistrusted(machineClass);
    const isKept = !isBelieved || (unused.hasLeft && (answer === 'unknown' || answer === 'unsupported'));
    const known = isKept ? 'some' : answer;
    const isEmpty = known === 'none' && !this.#hasMachines(key);
    const isLeftBehind = unused.isLeftBehind && answer !== 'some';
    const hasLeft = unused.hasLeft || answer === 'some';
    this.#unused.set(key, {
      ...unused,
      hasLeft,
      isLeftBehind,
      empty: isEmpty ? this.#emptyLists(key, unused, atMs) : undefined,
    });
    return known;
  }

  #emptyLists(key: string, { empty }: Unused, atMs: number): EmptyLists {
    const lookedMs = this.#deps.lookedMs(key);
    const counting = [atMs, empty?.lastMs ?? Infinity].find((listedMs) => listedMs <= lookedMs);
    return { firstMs: empty?.firstMs ?? atMs, lastMs: atMs, countedMs: counting ?? empty?.countedMs };
  }

  #hasMachines(key: string): boolean {
    return this.#deps.machines.byIndex(CLASS_INDEX, key).length > 0;
  }

  async #write(machineClass: MachineClass, finalizers: string[], signal: AbortSignal): Promise<void> {
    const { namespace = '', name } = machineClass.metadata;
    const confirmed = finalizers.includes(MACHINE_FINALIZER) ? [] : forcedRemovalsOf(machineClass);
    const annotations = Object.fromEntries(confirmed.map((one) => [one.key, null]));
    const metadata = confirmed.length === 0 ? { finalizers } : { finalizers, annotations };
    const patch = mergePatchIfUnchanged(machineClass, { metadata });
    await this.#deps.writer.patch('change', machineClasses, { namespace, name }, patch, { signal });
  }
}

function isUnconfirmed(machineClass: MachineClass): boolean {
  return forcedRemovalsOf(machineClass).length > 0;
}

/** Changes with what the class says, and not with its metadata: others annotate classes at any time. */
function versionOf({ metadata: { uid, generation, resourceVersion } }: MachineClass): string {
  return `${uid}/${generation ?? resourceVersion}`;
}
