import { DriverError } from '../../../driver/error.ts';
import { retryOf, type RetriedCall } from '../../../driver/retry.ts';
import { GateClosedError } from '../../../gate/gate.ts';
import { requeue, waitFor, type StepResult } from '../../../reconcile/result.ts';
import type { MachineContext, ResolvedClass } from '../context.ts';
import type { CallFailure, CallInput } from '../retries.ts';
import type { ActivityResults } from './results.ts';

/** The kinds of long work that are calls of a driver, and under which name each is retried. */
const RETRIED_AS = {
  create: 'create',
  initialize: 'initialize',
  status: 'status-of-deleted',
  delete: 'delete',
} as const satisfies Partial<Record<keyof ActivityResults, RetriedCall>>;

/** One of them. */
export type CallKind = keyof typeof RETRIED_AS;

/** When to try again after a call was given up by ourselves, or could not be prepared. */
const GIVEN_UP_RETRY_MS = 5_000;

/** A call of a driver about the VM of one machine. */
export interface DriverCall<K extends CallKind> {
  readonly kind: K;
  readonly resolved: ResolvedClass;
  /** What the machine waits for meanwhile: the answer, and while that is not due the next attempt. */
  readonly waitingFor: { readonly answer: string; readonly attempt: string };
  /** Called in the background. Throws StaleCallError when the machine has changed so that the call is not wanted any more. */
  readonly send: (signal: AbortSignal) => Promise<ActivityResults[K]>;
  /** Shows the last failure on the copy; in every pass while the next attempt is waited for, so that a write that was lost is made up for. */
  readonly show: (failure: CallFailure) => void;
  /** Before the first look whether it may be sent. */
  readonly begin?: (input: CallInput) => void;
  /** It is being sent. */
  readonly sent?: () => void;
  /** An error that says as much as an answer would. */
  readonly answerIn?: (error: DriverError) => ActivityResults[K] | undefined;
  /** It ended without an answer: whatever the reason, before anything else follows from that. */
  readonly ended?: (error: unknown) => void;
  /** What it needs beforehand could not be got; the pass fails with the error. */
  readonly unprepared?: (error: unknown) => void;
}

/** An answer, kept until the caller forgets the activity (after its write, or a lost write would cost another call); or what to wait for. */
export type CallProgress<T> =
  { readonly kind: 'answered'; readonly answer: T } | { readonly kind: 'waiting'; readonly result: StepResult };

/** What a call about this machine is made of. */
export function inputOf(
  { machine }: Pick<MachineContext, 'machine'>,
  { fingerprint, machineClass }: ResolvedClass,
  kind: CallKind,
): CallInput {
  const { uid } = machine.metadata;
  return { machineUID: uid, call: RETRIED_AS[kind], fingerprint, classUID: machineClass.metadata.uid };
}

/**
 * Brings a call forward by one pass: it is sent as an activity when its wait is over (or what it is made of has changed), awaited,
 * and repeated after failures. Calls that we gave up ourselves, at a closed gate or at the end of a process, count as no
 * failure of the provider. Throws what is neither an answer nor an error of a driver.
 */
export function advanceCall<K extends CallKind>(
  ctx: MachineContext,
  call: DriverCall<K>,
): CallProgress<ActivityResults[K]> {
  const { activities, machine, retries } = ctx;
  const { uid } = machine.metadata;
  const { kind, resolved, answerIn, waitingFor } = call;
  const input = inputOf(ctx, resolved, kind);
  const activity = activities.get(uid, kind);
  if (activity === undefined) return waiting(start(ctx, call, input));
  if (activity.state === 'running') return waiting(waitFor(waitingFor.answer));
  const answer = activity.state === 'done' ? { value: activity.result } : answerOf(activity.error, answerIn);
  if (answer !== undefined) {
    retries.succeeded(input);
    return { kind: 'answered', answer: answer.value };
  }
  activities.forget(uid, kind);
  // `answer` is undefined only for one that failed.
  return waiting(failed(ctx, call, input, 'error' in activity ? activity.error : undefined));
}

/**
 * Takes an answer back that cannot be true, as a failure of the call; returns what ends the pass.
 */
export function refuseAnswer<K extends CallKind>(
  ctx: MachineContext,
  call: Pick<DriverCall<K>, 'kind' | 'resolved' | 'show'>,
  error: DriverError,
  waitingFor: string,
): StepResult {
  const input = inputOf(ctx, call.resolved, call.kind);
  ctx.retries.failed(input, error);
  ctx.activities.forget(ctx.machine.metadata.uid, call.kind);
  show(ctx, call, input);
  return requeue(ctx.retries.waitMs(input), waitingFor);
}

/** Puts the next attempt off by `waitMs`, because of something other than a failure; returns what ends the pass. */
export function postponeCall(
  ctx: MachineContext,
  { kind, resolved }: Pick<DriverCall<CallKind>, 'kind' | 'resolved'>,
  waitMs: number,
  waitingFor: string,
): StepResult {
  ctx.activities.forget(ctx.machine.metadata.uid, kind);
  ctx.retries.postpone(inputOf(ctx, resolved, kind), waitMs);
  return requeue(waitMs, waitingFor);
}

/** The driver's scratch state: what it sent along, or as the code says. */
export function keepState({ machine }: Pick<MachineContext, 'machine'>, call: RetriedCall, error: DriverError): void {
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

function start<K extends CallKind>(ctx: MachineContext, call: DriverCall<K>, input: CallInput): StepResult {
  const { observed, key, activities, retries } = ctx;
  const { kind, resolved, waitingFor } = call;
  call.begin?.(input);
  const waitMs = retries.waitMs(input);
  if (waitMs > 0) {
    show(ctx, call, input);
    return requeue(waitMs, waitingFor.attempt);
  }
  call.sent?.();
  activities.startOrGet({ uid: observed.metadata.uid, key, provider: resolved.driver.provider }, kind, call.send);
  return waitFor(waitingFor.answer);
}

function failed<K extends CallKind>(
  ctx: MachineContext,
  call: DriverCall<K>,
  input: CallInput,
  error: unknown,
): StepResult {
  const { retries } = ctx;
  call.ended?.(error);
  if (error instanceof StaleCallError) return waitFor('the Machine as it is now');
  if (wasGivenUp(error)) {
    retries.postpone(input, GIVEN_UP_RETRY_MS);
    return requeue(GIVEN_UP_RETRY_MS, 'the clusters to be reachable');
  }
  if (!(error instanceof DriverError)) {
    call.unprepared?.(error);
    // Events must not ask the provider again and again while the API server refuses.
    retries.postpone(input, GIVEN_UP_RETRY_MS);
    throw error;
  }
  retries.failed(input, error);
  show(ctx, call, input);
  return requeue(retries.waitMs(input), call.waitingFor.attempt);
}

function show<K extends CallKind>(
  { retries }: MachineContext,
  call: Pick<DriverCall<K>, 'show'>,
  input: CallInput,
): void {
  const failure = retries.failureOf(input);
  if (failure !== undefined) call.show(failure);
}

/** Whether it was we who ended a call, at a closed gate or at the end of the process: no fault of the provider. */
function wasGivenUp(error: unknown): boolean {
  if (error instanceof GateClosedError) return true;
  return DriverError.hasCode(error, 'Canceled') && error.unanswered;
}
