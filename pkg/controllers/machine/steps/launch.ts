import { phaseOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { NODE_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import { isBeingDeleted } from '../../../apis/meta.ts';
import { fromTimestamp } from '../../../clock/clock.ts';
import { repeatableTimeoutMs, wholeTimeoutMs } from '../../../driver/deadlines.ts';
import { DRIVER_CODES, DriverError } from '../../../driver/error.ts';
import { ApiError } from '../../../kube/errors.ts';
import { next, waitFor, type StepResult } from '../../../reconcile/result.ts';
import { advanceCall, inputOf, keepState, postponeCall, refuseAnswer, StaleCallError } from '../calls/driver-call.ts';
import type { DriverCall } from '../calls/driver-call.ts';
import { clearAnswered, noteSent, noteUnanswered, unansweredLookMs } from '../calls/unanswered.ts';
import { requireConfirmed } from '../confirmation.ts';
import type { Launched, MachineContext, MachineStep, ResolvedClass } from '../context.ts';
import type { CallFailure, CallInput } from '../retries.ts';
import { afterStatus } from '../reactions.ts';
import { creationTimeoutMsOf } from '../../machines/settings.ts';
import { beginPhase, setFailure } from '../../machines/status.ts';
import { startingData } from './bootstrap.ts';
import { CREATE_FAILED, INITIALIZE_FAILED, PREPARATION_FAILED } from '../../machines/status-texts.ts';

/**
 * Gets the VM, as an activity: GetMachineStatus first, CreateMachine only if there is none. A failure is shown in the status
 * and repeated when its wait is over or the input has changed; meanwhile passes only show it again.
 */
export const launch: MachineStep = {
  name: 'launch',

  run(ctx) {
    const { resolved } = ctx;
    if (resolved === undefined) return waitFor('the MachineClass');
    clearAnswered(ctx);
    const call = creationOf(ctx, resolved);
    const progress = advanceCall(ctx, call);
    if (progress.kind === 'waiting') return progress.result;
    // The driver shows no VM, but the answer to a CreateMachine is missing and the provider may be slow to show it.
    if (progress.answer === undefined)
      return postponeCall(ctx, call, unansweredLookMs(ctx), 'an unanswered creation to show');
    ctx.launched = progress.answer;
    return next;
  },
};

/** Takes back what the driver told of the VM, because it cannot be true: it is asked again later. Returns what ends the pass. */
export function refuseVM(
  ctx: MachineContext,
  resolved: ResolvedClass,
  error: DriverError,
  waitingFor: string,
): StepResult {
  return refuseAnswer(ctx, creationOf(ctx, resolved), error, waitingFor);
}

function creationOf(ctx: MachineContext, resolved: ResolvedClass): DriverCall<'create'> {
  const { observed } = ctx;
  return {
    kind: 'create',
    resolved,
    waitingFor: { answer: 'the VM to be created', attempt: 'the next attempt to create the VM' },
    begin: (input) => restoreFailure(ctx, input),
    send: (signal) => findOrCreate(ctx, observed, resolved, signal),
    ended: (error) => noteUnanswered(ctx, error, ctx.clock.monotonicMs()),
    unprepared: (error) => tellOfPreparation(ctx, error),
    show: (failure) => showFailure(ctx, failure),
  };
}

/** Undefined: there is no VM that can be seen, and it is too early to make one. */
async function findOrCreate(
  ctx: MachineContext,
  machine: Machine,
  resolved: ResolvedClass,
  signal: AbortSignal,
): Promise<Launched | undefined> {
  const { driver, machineClass, secretData } = resolved;
  const mayCreate = unansweredLookMs(ctx) === 0;
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
  await requireConfirmed(ctx, resolved, machine, vm, signal);
  return { ...vm, how: 'created', needsInitialize: canInitialize };
}

/** Work may have waited for its turn: a machine that was deleted or given up meanwhile needs no VM any more. */
function requireWanted({ machines, key }: MachineContext, { metadata }: Machine): void {
  const current = machines.get(key);
  const isSame = current?.metadata.uid === metadata.uid;
  if (isSame && !isBeingDeleted(current) && phaseOf(current) !== 'Failed') return;
  throw new StaleCallError('the machine is not wanted any more');
}

/**
 * Records that CreateMachine is being sent, where a second call could make a second VM: if this process is killed, the next one
 * knows that an answer is missing.
 */
async function markSent(ctx: MachineContext, machine: Machine, signal: AbortSignal): Promise<void> {
  await ctx.markCreationSent(machine, signal);
  noteSent(ctx);
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

/** The API server refused what a creation needs beforehand: the bootstrap token. */
function tellOfPreparation({ machine, clock }: MachineContext, error: unknown): void {
  if (!(error instanceof ApiError)) return;
  const description = `${PREPARATION_FAILED}${error.message}`;
  beginPhase(machine, 'CrashLoopBackOff', clock.now());
  setFailure(machine, { type: 'Create', state: 'Failed', description }, clock.now());
}

/** The same again is no write and no Event. */
function showFailure(ctx: MachineContext, { error, isOwn }: CallFailure): void {
  const { machine, observed, clock, pass, log } = ctx;
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
