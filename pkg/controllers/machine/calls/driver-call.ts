import { DriverError } from '../../../driver/error.ts';
import { retryOf, type RetriedCall } from '../../../driver/retry.ts';
import { GateClosedError } from '../../../kube/gate/gate.ts';
import { isReported } from '../../../base/log/reported.ts';
import { requeue, waitFor, type StepResult } from '../../../work/reconcile/result.ts';
import type { MachineCopy } from '../../machine-facts/status.ts';
import type { MachineContext, ResolvedClass } from '../context.ts';
import { accountOf } from '../../../driver/account.ts';
import { TurnAbandonedError } from '../../../driver/turn-abandoned.ts';
import type { CallFailure, CallKind, Retries } from './retries.ts';
import type { ActivityResults, MachineActivities } from './results.ts';

/** When to ask again after a provider that has begun with a VM. */
const UNDER_WAY_RETRY_MS = 5_000;
/** When to try again after a call was given up by ourselves, or could not be prepared. */
const GIVEN_UP_RETRY_MS = 5_000;

export interface MachineCall<K extends CallKind> {
  readonly kind: K;
  readonly resolved: ResolvedClass;
  /** What the machine waits for meanwhile: the answer, and while that is not due the next attempt. */
  readonly waitingFor: { readonly answer: string; readonly attempt: string };
  /** Called in the background. Throws StaleCallError when the machine has changed so that the call is not wanted any more. */
  readonly send: (signal: AbortSignal) => Promise<ActivityResults[K]>;
  /** Shows the last failure on the copy; in every pass while the next attempt is waited for, so that a write that was lost is made up for. */
  readonly show: (failure: CallFailure) => void;
  /** It goes on at the provider, in whose words: no failure. Such a call is asked again soon, and another process learns of it in the same way. */
  readonly underWay?: (error: DriverError) => void;
  /** Its last failure, when another process has recorded one: what it had to wait for still holds. */
  readonly recorded?: () => { readonly error: DriverError; readonly agoMs: number } | undefined;
  /** It is being sent. */
  readonly sent?: () => void;
  /** An error that says as much as an answer would. */
  readonly answerIn?: (error: DriverError) => ActivityResults[K] | undefined;
  /** It ended without an answer: whatever the reason, before anything else follows from that. */
  readonly ended?: (error: unknown) => void;
  /** What it needs beforehand could not be got; the pass fails with the error. */
  readonly unprepared?: (error: unknown) => void;
}

/** When calls of drivers about machines are sent, awaited and repeated. Remembers when a call that failed may be repeated. */
export class DriverCalls {
  readonly #activities: MachineActivities;
  readonly #retries: Retries;

  constructor({ activities, retries }: { readonly activities: MachineActivities; readonly retries: Retries }) {
    this.#activities = activities;
    this.#retries = retries;
  }

  /**
   * Brings a call forward by one pass: it is sent as an activity when its wait is over (or what it is made of has changed), awaited,
   * and repeated after failures. Calls that we gave up ourselves, at a closed gate or at the end of a process, count as no
   * failure of the provider. Throws what is neither an answer nor an error of a driver.
   *
   * An answer is kept until the caller forgets the activity, after its write, or a lost write would cost another call.
   */
  advance<K extends CallKind>(
    ctx: MachineContext,
    call: MachineCall<K>,
  ): { kind: 'answered'; answer: ActivityResults[K] } | { kind: 'waiting'; result: StepResult } {
    const { machine } = ctx;
    const { uid } = machine.metadata;
    const { kind, resolved, answerIn, waitingFor } = call;
    this.#retries.see(resolved);
    const activity = this.#activities.get(uid, kind);
    if (activity === undefined) return waiting(this.#start(ctx, call));
    this.#retries.resumed(machine, kind, resolved);
    if (activity.state === 'running') return waiting(waitFor(waitingFor.answer));
    const answer = activity.state === 'done' ? { value: activity.result } : answerOf(activity.error, answerIn);
    if (answer !== undefined) {
      // "Not yet" is no success: nothing was learned of what the provider can give.
      if (answer.value !== undefined) this.#retries.succeeded(machine, kind);
      return { kind: 'answered', answer: answer.value };
    }
    this.#activities.forget(uid, kind);
    // `answer` is undefined only for one that failed.
    const result = this.#failed(ctx, call, 'error' in activity ? activity.error : undefined);
    return waiting(this.#asItIsNow(ctx, call, result));
  }

  /** A call that would be made of something else than it was when it was sent waits for nothing that its failure asks for. */
  #asItIsNow(
    { machine }: MachineContext,
    { kind, resolved }: Pick<MachineCall<CallKind>, 'kind' | 'resolved'>,
    result: StepResult,
  ): StepResult {
    if (result.kind !== 'requeue' || this.#retries.wasMadeOf(machine, kind, resolved)) return result;
    return requeue(this.#retries.waitMs(machine, kind, resolved), result.waitingFor);
  }

  /** Takes an answer back that cannot be true, as a failure of the call; returns what ends the pass. */
  refuse<K extends CallKind>(
    ctx: MachineContext,
    call: Pick<MachineCall<K>, 'kind' | 'resolved' | 'show'>,
    error: DriverError,
    waitingFor: string,
  ): StepResult {
    const { machine } = ctx;
    const { kind, resolved } = call;
    this.#activities.forget(machine.metadata.uid, kind);
    this.#tell(ctx, call, error, true);
    return requeue(this.#retries.waitMs(machine, kind, resolved), waitingFor);
  }

  /** Puts the next attempt off by `waitMs`, because of something other than a failure; returns what ends the pass. */
  postpone(
    ctx: MachineContext,
    call: Pick<MachineCall<CallKind>, 'kind' | 'resolved'>,
    waitMs: number,
    waitingFor: string,
  ): StepResult {
    const { machine } = ctx;
    this.#activities.forget(machine.metadata.uid, call.kind);
    this.#retries.postpone(machine, call.kind, waitMs);
    return this.#asItIsNow(ctx, call, requeue(waitMs, waitingFor));
  }

  /** How often in a row this call had no answer in its time. */
  timeoutsOf({ machine }: MachineContext, resolved: ResolvedClass, kind: CallKind): number {
    return this.#retries.timeoutsOf(machine, kind, resolved);
  }

  /** Whether this call has failed, as far as this process knows, and nothing that it is made of has changed since. */
  hasFailed({ machine }: MachineContext, resolved: ResolvedClass, kind: CallKind): boolean {
    return this.#retries.failuresOf(machine, kind, resolved) > 0;
  }

  forget(machineUID: string): void {
    this.#retries.forget(machineUID);
  }

  #start<K extends CallKind>({ machine, key }: MachineContext, call: MachineCall<K>): StepResult {
    const { kind, resolved, waitingFor } = call;
    const recorded = call.recorded?.();
    if (recorded !== undefined) this.#retries.restore(machine, kind, resolved, recorded);
    const waitMs = this.#retries.waitMs(machine, kind, resolved);
    if (waitMs > 0) {
      const failure = this.#retries.failureOf(machine, kind, resolved);
      if (failure !== undefined) call.show(failure);
      return requeue(waitMs, waitingFor.attempt);
    }
    call.sent?.();
    this.#retries.sent(machine, kind, resolved);
    const { uid } = machine.metadata;
    const account = accountOf(resolved.driver.provider, resolved.machineClass);
    const subject = { uid, key, account };
    this.#activities.startOrGet(subject, kind, call.send);
    return waitFor(waitingFor.answer);
  }

  #failed<K extends CallKind>(ctx: MachineContext, call: MachineCall<K>, error: unknown): StepResult {
    const { machine } = ctx;
    const { kind, underWay, waitingFor } = call;
    call.ended?.(error);
    // The pass for what has changed may have been while the call waited for its turn.
    if (error instanceof StaleCallError) return requeue(0, 'the latest version of the Machine');
    if (wasGivenUp(error)) {
      this.#retries.postpone(machine, kind, GIVEN_UP_RETRY_MS);
      return requeue(GIVEN_UP_RETRY_MS, 'the clusters to be reachable');
    }
    if (!(error instanceof DriverError)) {
      call.unprepared?.(error);
      // Events must not ask the provider again and again while the API server refuses.
      this.#retries.postpone(machine, kind, GIVEN_UP_RETRY_MS);
      throw error;
    }
    if (underWay !== undefined && error.code === 'Uninitialized') return this.#continue(ctx, underWay, call, error);
    return requeue(this.#tell(ctx, call, error), waitingFor.attempt);
  }

  #continue<K extends CallKind>(
    { machine, log }: MachineContext,
    show: (error: DriverError) => void,
    { kind, resolved, waitingFor }: MachineCall<K>,
    error: DriverError,
  ): StepResult {
    const waitMs = Math.max(UNDER_WAY_RETRY_MS, error.retryAfterMs ?? 0);
    this.#retries.postpone(machine, kind, waitMs);
    log.debug({ call: kind, provider: resolved.driver.provider, err: error.detail }, 'VM operation in progress');
    show(error);
    return requeue(waitMs, waitingFor.answer);
  }

  /** Remembers a failure, logs it in the provider's words, and shows it; returns how long the call waits. */
  #tell(
    { machine, log }: MachineContext,
    { kind, resolved, show }: Pick<MachineCall<CallKind>, 'kind' | 'resolved' | 'show'>,
    error: DriverError,
    isAnswer = false,
  ): number {
    const { failures, forMs, waitMs } = this.#retries.failed(machine, kind, error, isAnswer);
    const { code, detail } = error;
    const { provider } = resolved.driver;
    const fields = { call: kind, provider, code, err: detail, attempt: failures, retryInMs: waitMs };
    log[isReported(failures) ? 'warn' : 'debug'](fields, 'driver call failed, retrying');
    show({ error, isOwn: true, forMs });
    return waitMs;
  }
}

/** The driver's scratch state: what it sent along, or as the code says. */
export function storeDriverState(machine: MachineCopy, call: RetriedCall, error: DriverError): void {
  const { lastKnownState = '' } = error;
  if (lastKnownState !== '') machine.status.lastKnownState = lastKnownState;
  else if (retryOf(call, error.code).clearsLastKnownState) delete machine.status.lastKnownState;
}

/** Thrown by a call whose turn comes too late: the machine it was for is gone, or wanted otherwise. The cache tells as much in a moment. */
export class StaleCallError extends Error {
  override readonly name = 'StaleCallError';
}

function waiting(result: StepResult): { kind: 'waiting'; result: StepResult } {
  return { kind: 'waiting', result };
}

function answerOf<T>(
  error: unknown,
  answerIn: ((error: DriverError) => T | undefined) | undefined,
): { value: T } | undefined {
  const value = error instanceof DriverError ? answerIn?.(error) : undefined;
  return value === undefined ? undefined : { value };
}

/** Whether it was we who ended a call, at a closed gate or at the end of the process: no fault of the provider. */
function wasGivenUp(error: unknown): boolean {
  if (error instanceof GateClosedError || error instanceof TurnAbandonedError) return true;
  return DriverError.hasCode(error, 'Canceled') && error.unanswered;
}
