import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { CREATION_SENT_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import { fromTimestamp, type Clock } from '../../../base/clock/clock.ts';
import { wholeTimeoutMs } from '../../../driver/deadlines.ts';
import { mayHaveMade } from '../../../driver/creation-outcome.ts';
import { DriverError } from '../../../driver/error.ts';
import { creationTimeoutMsOf, type MachineSettings } from '../../machine-facts/settings.ts';
import type { Launched } from '../context.ts';
import type { MachineCopy } from '../../machine-facts/status.ts';
import { UNANSWERED_MS } from '../../vms/late-vms.ts';

/** While the VM of a call without answer may appear it is looked for so often. */
const UNANSWERED_CHECK_MS = 15_000;

/** In place of the time until which a VM may show: the answer has come, only the annotation that told of the call is left. */
const ANSWERED = Number.NEGATIVE_INFINITY;

/** CreateMachine calls of which no answer says whether they made a VM: it may show yet, and they must not be repeated before it has had its time. */
export class UnansweredCreations {
  readonly #clock: Clock;
  readonly #settings: MachineSettings;
  /** Until when (monotonic) their VM may show, or ANSWERED; by the UID of the Machine. */
  readonly #until = new Map<string, number>();
  /** UIDs of Machines of which a call is on its way that must not be repeated. */
  readonly #underWay = new Set<string>();

  constructor({ clock, settings }: { readonly clock: Clock; readonly settings: MachineSettings }) {
    this.#clock = clock;
    this.#settings = settings;
  }

  /** Where a second call could make a second VM, CreateMachine is on its way now: the process may die before the answer. */
  sent(machine: Machine): void {
    const { uid } = machine.metadata;
    this.#underWay.add(uid);
    this.#until.set(uid, this.#clock.monotonicMs() + this.#callMs(machine) + UNANSWERED_MS);
  }

  /**
   * Remembers how a creation ended at `endedMs` (monotonic); undefined: well. If it may have made a VM of which nobody has told, a driver whose
   * creation is idempotent finds that with the next call; with others it may show for two minutes yet.
   */
  ended({ metadata: { uid } }: Machine, error: unknown, endedMs: number): void {
    const wasSent = this.#underWay.delete(uid);
    const isUnanswered = error instanceof DriverError && error.unanswered;
    if (isUnanswered || (wasSent && mayHaveMade(error))) this.#until.set(uid, endedMs + UNANSWERED_MS);
    else if (wasSent) this.#until.set(uid, ANSWERED);
  }

  /**
   * Remembers that a creation has told of a VM at `endedMs` (monotonic) that is perhaps recorded never: as another's, or because the API server refuses
   * it. By its name, one that was made just before may not show for two minutes.
   */
  told(machine: Machine, how: Launched['how'] | undefined, endedMs: number): void {
    this.ended(machine, undefined, endedMs);
    if (how === 'created') this.#until.set(machine.metadata.uid, endedMs + UNANSWERED_MS);
  }

  /** Takes the annotation that told of the call off the copy, once its answer has come: nothing is missing any more. */
  clearAnswered({ metadata }: MachineCopy): void {
    const { uid, annotations } = metadata;
    if (this.#until.get(uid) !== ANSWERED) return;
    const { [CREATION_SENT_ANNOTATION]: sent, ...others } = annotations ?? {};
    if (sent === undefined) this.#until.delete(uid);
    else metadata.annotations = others;
  }

  /** Milliseconds after which to look again for the VM of a creation without answer; 0: none can show any more. */
  checkMs(machine: Machine): number {
    const untilMs = this.#until.get(machine.metadata.uid) ?? this.#recall(machine);
    return Math.max(0, Math.min(untilMs - this.#clock.monotonicMs(), UNANSWERED_CHECK_MS));
  }

  /** The VM is there, or the Machine is gone. */
  forget(machineUID: string): void {
    this.#until.delete(machineUID);
    this.#underWay.delete(machineUID);
  }

  #callMs(machine: Machine): number {
    return wholeTimeoutMs(creationTimeoutMsOf(machine, this.#settings));
  }

  /**
   * Until when (monotonic) the VM of a CreateMachine may show that another process has sent. That process has ended by now, or
   * gave the call up at its deadline, whichever was sooner.
   */
  #recall(machine: Machine): number {
    const { uid, annotations } = machine.metadata;
    const sentMs = fromTimestamp(annotations?.[CREATION_SENT_ANNOTATION]);
    if (sentMs === undefined) return 0;
    const endedAgoMs = Math.max(0, this.#clock.now() - (sentMs + this.#callMs(machine)));
    const untilMs = this.#clock.monotonicMs() + UNANSWERED_MS - endedAgoMs;
    this.#until.set(uid, untilMs);
    return untilMs;
  }
}
