import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { NODE_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import { isBeingDeleted } from '../../../apis/meta.ts';
import { fromTimestamp } from '../../../clock/clock.ts';
import { DRIVER_CODES, DriverError, type DriverCode } from '../../../driver/error.ts';
import { GateClosedError } from '../../../gate/gate.ts';
import { next, requeue, waitFor, type StepResult } from '../../../reconcile/result.ts';
import type { Launched, MachineContext, MachineStep, ResolvedClass } from '../context.ts';
import type { CallInput } from '../retries.ts';
import { creationTimeoutMsOf } from '../settings.ts';
import { beginPhase, setFailure } from '../status.ts';
import { startingData } from './bootstrap.ts';

/** A CreateMachine without answer may have made a VM that the provider does not show yet. */
const UNANSWERED_MS = 120_000;
/** When to try again after the gate was closed. */
const GATE_RETRY_MS = 5_000;

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
    const activity = activities.get<Launched | undefined>(uid, 'create');
    if (activity === undefined) return start(ctx, resolved, input);
    switch (activity.state) {
      case 'running':
        return waitFor('the VM to be created');
      case 'failed':
        activities.forget(uid, 'create');
        return failed(ctx, resolved, input, activity.error);
      default:
        retries.succeeded(input);
        if (activity.result === undefined) return notFoundYet(ctx);
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
  const { machine, observed, key, activities, retries, clock, memory } = ctx;
  restoreFailure(ctx, input);
  const waitMs = retries.waitMs(input);
  if (waitMs > 0) {
    const failure = retries.failureOf(input);
    if (failure !== undefined) show(ctx, failure);
    return requeue(waitMs, 'the next attempt to create the VM');
  }
  const { uid } = machine.metadata;
  const mayCreate = (memory.unanswered.get(uid) ?? 0) <= clock.monotonicMs();
  activities.startOrGet({ uid, key }, 'create', (signal) => findOrCreate(ctx, observed, resolved, mayCreate, signal));
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
  if (!isStillWanted(ctx, machine)) throw new DriverError('Canceled', 'the machine is being deleted');
  const data = await startingData(ctx, secretData, 'now', signal);
  const vm = await driver.create(
    { machine, machineClass, secretData: data },
    signal,
    creationTimeoutMsOf(machine, ctx.settings),
  );
  return { ...vm, how: 'created', needsInitialize: canInitialize };
}

/** Work may have waited for its turn: a machine that is deleted meanwhile needs no VM any more. */
function isStillWanted({ machines, key }: MachineContext, { metadata }: Machine): boolean {
  const current = machines.get(key);
  return current?.metadata.uid === metadata.uid && !isBeingDeleted(current);
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
    if (DriverError.hasCode(err, 'Uninitialized')) {
      const { providerID = recorded.providerID, nodeName = recorded.nodeName } = err.result ?? {};
      return { ...recorded, how: 'uninitialized', providerID, nodeName, needsInitialize: canInitialize };
    }
    if (!DriverError.hasCode(err, 'NotFound', 'Unimplemented')) throw err;
    return recorded.providerID === '' ? undefined : { ...recorded, how: 'known' };
  }
}

async function failed(
  ctx: MachineContext,
  resolved: ResolvedClass,
  input: CallInput,
  error: unknown,
): Promise<StepResult> {
  const { machine, clock, retries, memory, signal } = ctx;
  if (error instanceof GateClosedError) return requeue(GATE_RETRY_MS, 'the clusters to be reachable');
  if (!(error instanceof DriverError)) {
    const text = error instanceof Error ? error.message : String(error);
    const description = `Could not prepare the creation of the VM: ${text}`;
    setFailure(machine, { type: 'Create', state: 'Failed', description }, clock.now());
    throw error;
  }
  const retry = retries.failed(input, error);
  if (error.unanswered) {
    const { idempotentCreate } = await resolved.driver.capabilities(signal).catch(() => ({ idempotentCreate: false }));
    if (!idempotentCreate) memory.unanswered.set(machine.metadata.uid, clock.monotonicMs() + UNANSWERED_MS);
  }
  keepState(ctx, error, retry.clearsLastKnownState);
  show(ctx, error);
  return requeue(retries.waitMs(input), 'the next attempt to create the VM');
}

/** The driver's scratch state: what it sent along, or as the code says. */
export function keepState({ machine }: Pick<MachineContext, 'machine'>, error: DriverError, clears: boolean): void {
  if (error.lastKnownState !== undefined && error.lastKnownState !== '')
    machine.status.lastKnownState = error.lastKnownState;
  else if (clears) delete machine.status.lastKnownState;
}

/** Shows a failure of the provider; the same again is no write and no Event. */
function show({ machine, observed, clock, pass, log }: MachineContext, error: DriverError): void {
  const description = `Cloud provider message - ${error.message}`;
  beginPhase(machine, 'CrashLoopBackOff', clock.now());
  setFailure(machine, { type: 'Create', state: 'Failed', errorCode: error.code, description }, clock.now());
  if (machine.status.lastOperation?.description === observed.status?.lastOperation?.description) return;
  pass.event('CreateFailed', description);
  pass.afterWrite(() => log.info({ code: error.code }, 'creating a VM failed'));
}

/** What another process has written before us still holds. */
function restoreFailure({ machine, retries, clock }: MachineContext, input: CallInput): void {
  const { type, state, errorCode, lastUpdateTime } = machine.status.lastOperation ?? {};
  const code = DRIVER_CODES.find((known) => known === errorCode);
  if (type !== 'Create' || state !== 'Failed' || code === undefined) return;
  const agoMs = clock.now() - (fromTimestamp(lastUpdateTime) ?? 0);
  retries.restore(input, code satisfies DriverCode, agoMs);
}

/** The driver shows no VM, but the answer to a CreateMachine is missing and the provider may be slow to show it. */
function notFoundYet({ machine, activities, memory, clock }: MachineContext): StepResult {
  const { uid } = machine.metadata;
  activities.forget(uid, 'create');
  const leftMs = (memory.unanswered.get(uid) ?? 0) - clock.monotonicMs();
  return requeue(Math.max(0, leftMs), 'an unanswered creation to show');
}
