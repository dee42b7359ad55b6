import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { CREATION_SENT_ANNOTATION, NODE_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import { isBeingDeleted } from '../../../apis/meta.ts';
import { fromTimestamp } from '../../../clock/clock.ts';
import { repeatableTimeoutMs, wholeTimeoutMs } from '../../../driver/deadlines.ts';
import { DRIVER_CODES, DriverError } from '../../../driver/error.ts';
import { GateClosedError } from '../../../gate/gate.ts';
import { retryOf, type RetriedCall } from '../../../driver/retry.ts';
import { ApiError } from '../../../kube/errors.ts';
import { next, requeue, waitFor, type StepResult } from '../../../reconcile/result.ts';
import type { Launched, MachineContext, MachineStep, ResolvedClass } from '../context.ts';
import type { CallInput } from '../retries.ts';
import { afterStatus } from '../reactions.ts';
import { creationTimeoutMsOf } from '../settings.ts';
import { beginPhase, phaseOf, setFailure } from '../status.ts';
import { startingData } from './bootstrap.ts';
import { CREATE_FAILED, INITIALIZE_FAILED, PREPARATION_FAILED } from '../status-texts.ts';
import { ANSWERED, SENT } from '../memory.ts';

/** A CreateMachine without answer may have made a VM that the provider does not show yet. */
const UNANSWERED_MS = 120_000;
/** Meanwhile it is looked for so often. */
const UNANSWERED_LOOK_MS = 15_000;
/** When to try again after a call was given up by ourselves. */
export const GIVEN_UP_RETRY_MS = 5_000;

/**
 * Gets the VM, as an activity: GetMachineStatus first, CreateMachine only if there is none. A failure is shown in the status
 * and repeated when its wait is over or the input has changed; meanwhile passes only show it again.
 */
export const launch: MachineStep = {
  name: 'launch',

  run(ctx) {
    const { machine, activities, retries, resolved } = ctx;
    if (resolved === undefined) return waitFor('the MachineClass');
    const { uid } = machine.metadata;
    const input = inputOf(ctx, resolved, 'create');
    if (ctx.memory.unanswered.get(uid) === ANSWERED) unmark(ctx);
    const activity = activities.get<Launched | undefined>(uid, 'create');
    if (activity === undefined) return start(ctx, resolved, input);
    switch (activity.state) {
      case 'running':
        return waitFor('the VM to be created');
      case 'failed':
        activities.forget(uid, 'create');
        return failed(ctx, input, activity.error);
      default:
        retries.succeeded(input);
        if (activity.result === undefined) return notFoundYet(ctx, input);
        ctx.launched = activity.result;
        return next;
    }
  },
};

/** What a call about this machine is made of. */
export function inputOf(
  { machine }: Pick<MachineContext, 'machine'>,
  { fingerprint, machineClass }: ResolvedClass,
  call: CallInput['call'],
): CallInput {
  return { machineUID: machine.metadata.uid, call, fingerprint, classUID: machineClass.metadata.uid };
}

function start(ctx: MachineContext, resolved: ResolvedClass, input: CallInput): StepResult {
  const { machine, observed, key, activities, retries } = ctx;
  restoreFailure(ctx, input);
  const waitMs = retries.waitMs(input);
  if (waitMs > 0) {
    showAgain(ctx, input);
    return requeue(waitMs, 'the next attempt to create the VM');
  }
  const { uid } = machine.metadata;
  const { provider } = resolved.driver;
  const mayCreate = unansweredLookMs(ctx) === 0;
  activities.startOrGet({ uid, key, provider }, 'create', (signal) =>
    findOrCreate(ctx, observed, resolved, mayCreate, signal),
  );
  return waitFor('the VM to be created');
}

/** Undefined: there is no VM that can be seen, and it is too early to make one. */
async function findOrCreate(
  ctx: MachineContext,
  machine: Machine,
  resolved: ResolvedClass,
  mayCreate: boolean,
  signal: AbortSignal,
): Promise<Launched | undefined> {
  const { driver, machineClass, secretData } = resolved;
  const { methods, idempotentCreate } = await driver.capabilities(signal);
  const canInitialize = methods.has('InitializeMachine');
  const found = await findVM(machine, resolved, canInitialize, signal);
  if (found !== undefined || !(mayCreate || idempotentCreate)) return found;
  requireWanted(ctx, machine);
  const data = await startingData(ctx, secretData, 'now', signal);
  requireWanted(ctx, machine);
  if (!idempotentCreate) await markSent(ctx, machine, signal);
  const creationTimeoutMs = creationTimeoutMsOf(machine, ctx.settings);
  const timeoutMs = idempotentCreate
    ? repeatableTimeoutMs(creationTimeoutMs, ctx.retries.timeoutsOf(inputOf(ctx, resolved, 'create')))
    : wholeTimeoutMs(creationTimeoutMs);
  const vm = await driver.create({ machine, machineClass, secretData: data }, signal, timeoutMs);
  return { ...vm, how: 'created', needsInitialize: canInitialize };
}

/** Work may have waited for its turn: a machine that was deleted or given up meanwhile needs no VM any more. */
function requireWanted({ machines, key }: MachineContext, { metadata }: Machine): void {
  const current = machines.get(key);
  const isSame = current?.metadata.uid === metadata.uid;
  if (isSame && !isBeingDeleted(current) && phaseOf(current) !== 'Failed') return;
  throw new DriverError('Canceled', 'the machine is not wanted any more');
}

/**
 * Records that CreateMachine is being sent, where a second call could make a second VM: if this process is killed, the next one
 * knows that an answer is missing.
 */
async function markSent(
  { memory, markCreationSent }: MachineContext,
  machine: Machine,
  signal: AbortSignal,
): Promise<void> {
  await markCreationSent(machine, signal);
  memory.unanswered.set(machine.metadata.uid, SENT);
}

/** The answer has come: nothing is missing any more. */
function unmark({ machine, memory }: MachineContext): void {
  const { [CREATION_SENT_ANNOTATION]: sent, ...others } = machine.metadata.annotations ?? {};
  if (sent === undefined) memory.unanswered.delete(machine.metadata.uid);
  else machine.metadata.annotations = others;
}

async function findVM(
  machine: Machine,
  { driver, machineClass, secretData }: ResolvedClass,
  canInitialize: boolean,
  signal: AbortSignal,
): Promise<Launched | undefined> {
  const recorded = {
    providerID: machine.spec.providerID ?? '',
    nodeName: machine.metadata.labels?.[NODE_LABEL] ?? '',
    addresses: [],
    lastKnownState: undefined,
    needsInitialize: false,
  };
  try {
    const vm = await driver.getStatus({ machine, machineClass, secretData }, signal);
    return { ...recorded, ...vm, how: 'adopted' };
  } catch (err) {
    if (!(err instanceof DriverError)) throw err;
    const reaction = afterStatus(err.code, recorded.providerID !== '');
    if (reaction === 'initialize') {
      const { providerID = recorded.providerID, nodeName = recorded.nodeName } = err.result ?? {};
      return { ...recorded, how: 'uninitialized', providerID, nodeName, needsInitialize: canInitialize };
    }
    if (reaction === 'create') return undefined;
    if (reaction === 'trust') return { ...recorded, how: 'known' };
    throw err;
  }
}

function failed(ctx: MachineContext, input: CallInput, error: unknown): StepResult {
  const { retries } = ctx;
  noteUnanswered(ctx, error, ctx.clock.monotonicMs());
  if (wasGivenUp(error)) {
    retries.postpone(input, GIVEN_UP_RETRY_MS);
    return requeue(GIVEN_UP_RETRY_MS, 'the clusters to be reachable');
  }
  if (!(error instanceof DriverError)) {
    tellOfPreparation(ctx, error);
    // Events must not ask the provider again and again while the API server refuses.
    retries.postpone(input, GIVEN_UP_RETRY_MS);
    throw error;
  }
  retries.failed(input, error);
  showAgain(ctx, input);
  return requeue(retries.waitMs(input), 'the next attempt to create the VM');
}

/** Whether it was we who ended a call, at a closed gate or at the end of the process: no fault of the provider. */
export function wasGivenUp(error: unknown): boolean {
  if (error instanceof GateClosedError) return true;
  return DriverError.hasCode(error, 'Canceled') && error.unanswered;
}

/**
 * Remembers that a CreateMachine which ended at `endedMs` (monotonic) had no answer. With a driver whose creation is idempotent
 * the next call finds what it made; with others the VM may show for two minutes yet.
 */
export function noteUnanswered(
  { machine, memory }: Pick<MachineContext, 'machine' | 'memory'>,
  error: unknown,
  endedMs: number,
): void {
  const { uid } = machine.metadata;
  if (error instanceof DriverError && error.unanswered) memory.unanswered.set(uid, endedMs + UNANSWERED_MS);
  else if (memory.unanswered.get(uid) === SENT) memory.unanswered.set(uid, ANSWERED);
}

/** Milliseconds after which to look again for the VM of a creation without answer; 0: none can show any more. */
export function unansweredLookMs(ctx: Unanswered): number {
  const { machine, memory, clock } = ctx;
  const untilMs = memory.unanswered.get(machine.metadata.uid) ?? recallUnanswered(ctx);
  return Math.max(0, Math.min(untilMs - clock.monotonicMs(), UNANSWERED_LOOK_MS));
}

type Unanswered = Pick<MachineContext, 'machine' | 'memory' | 'clock' | 'settings'>;

/**
 * Until when (monotonic) the VM of a CreateMachine may show that another process has sent. That process has ended by now, or
 * gave the call up at its deadline, whichever was sooner.
 */
function recallUnanswered({ machine, memory, clock, settings }: Unanswered): number {
  const { uid, annotations } = machine.metadata;
  const sentMs = fromTimestamp(annotations?.[CREATION_SENT_ANNOTATION]);
  if (sentMs === undefined) return 0;
  const callMs = wholeTimeoutMs(creationTimeoutMsOf(machine, settings));
  const endedAgoMs = Math.max(0, clock.now() - (sentMs + callMs));
  const untilMs = clock.monotonicMs() + UNANSWERED_MS - endedAgoMs;
  memory.unanswered.set(uid, untilMs);
  return untilMs;
}

/** The API server refused what a creation needs beforehand: the bootstrap token. */
function tellOfPreparation({ machine, clock }: MachineContext, error: unknown): void {
  if (!(error instanceof ApiError)) return;
  const description = `${PREPARATION_FAILED}${error.message}`;
  beginPhase(machine, 'CrashLoopBackOff', clock.now());
  setFailure(machine, { type: 'Create', state: 'Failed', description }, clock.now());
}

/** The driver's scratch state: what it sent along, or as the code says. */
export function keepState({ machine }: Pick<MachineContext, 'machine'>, call: RetriedCall, error: DriverError): void {
  const { lastKnownState = '' } = error;
  if (lastKnownState !== '') machine.status.lastKnownState = lastKnownState;
  else if (retryOf(call, error.code).clearsLastKnownState) delete machine.status.lastKnownState;
}

/**
 * Shows a failure of the provider in every pass while the next attempt is waited for: a write that was lost is made up for. The
 * same again is no write and no Event.
 */
export function showAgain(ctx: MachineContext, input: CallInput): void {
  const { machine, observed, clock, pass, log, retries } = ctx;
  const failure = retries.failureOf(input);
  if (failure === undefined) return;
  const { error, isOwn } = failure;
  if (isOwn) keepState(ctx, 'create', error);
  const description = `${CREATE_FAILED}${error.message}`;
  beginPhase(machine, 'CrashLoopBackOff', clock.now());
  setFailure(machine, { type: 'Create', state: 'Failed', errorCode: error.code, description }, clock.now());
  if (machine.status.lastOperation?.description === observed.status?.lastOperation?.description) return;
  pass.event('CreateFailed', description);
  pass.afterWrite(() => log.info({ code: error.code }, 'creating a VM failed'));
}

/** What another process has written before us still holds: of the same call. */
function restoreFailure({ machine, retries, clock }: MachineContext, input: CallInput): void {
  const { type, state, errorCode, lastUpdateTime, description = '' } = machine.status.lastOperation ?? {};
  const code = DRIVER_CODES.find((known) => known === errorCode);
  if (type !== 'Create' || state !== 'Failed' || code === undefined || description.startsWith(INITIALIZE_FAILED))
    return;
  const agoMs = clock.now() - (fromTimestamp(lastUpdateTime) ?? 0);
  retries.restore(input, new DriverError(code, detailOf(description)), agoMs);
}

/** What the provider's words stand behind in the text form of an error. */
const MESSAGE = 'message = [';

/** The provider's words in the text form of an error. */
function detailOf(description: string): string {
  const begin = description.indexOf(MESSAGE);
  return begin >= 0 && description.endsWith(']') ? description.slice(begin + MESSAGE.length, -1) : description;
}

/** The driver shows no VM, but the answer to a CreateMachine is missing and the provider may be slow to show it. */
function notFoundYet(ctx: MachineContext, input: CallInput): StepResult {
  const { machine, activities, retries } = ctx;
  activities.forget(machine.metadata.uid, 'create');
  const waitMs = unansweredLookMs(ctx);
  retries.postpone(input, waitMs);
  return requeue(waitMs, 'an unanswered creation to show');
}
