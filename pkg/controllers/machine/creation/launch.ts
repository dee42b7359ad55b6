import { classNameOf, nodeNameOf, phaseOf, providerIDOf, showsNode } from '../../../apis/machine/v1alpha1/defaults.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { isBeingDeleted } from '../../../apis/meta.ts';
import { fromTimestamp } from '../../../base/clock/clock.ts';
import { repeatableTimeoutMs, wholeTimeoutMs } from '../../../driver/deadlines.ts';
import { DRIVER_CODES, DriverError } from '../../../driver/error.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { next, waitFor, type StepResult } from '../../../work/reconcile/result.ts';
import { isUninitialized, failureOfCreation } from '../../machine-facts/joining.ts';
import { CREATE_FAILED, failedCallOf, providerTextOf } from '../../machine-facts/original-texts.ts';
import { creationTimeoutMsOf } from '../../machine-facts/settings.ts';
import { beginPhase, isBeingCreated, setFailure } from '../../machine-facts/status.ts';
import { BEING_CREATED, PREPARATION_FAILED } from '../../machine-facts/status-texts.ts';
import type { Collaborators } from '../collaborators.ts';
import { storeDriverState, StaleCallError, type MachineCall } from '../calls/driver-call.ts';
import { requireConfirmed } from '../identity/confirmation.ts';
import type { Launched, MachineContext, MachineStep, ResolvedClass } from '../context.ts';
import { afterStatus } from '../calls/reactions.ts';

type Deps = Pick<
  Collaborators,
  | 'clock'
  | 'settings'
  | 'machines'
  | 'markCreationSent'
  | 'calls'
  | 'unanswered'
  | 'vmClasses'
  | 'activities'
  | 'tokens'
>;

/**
 * Gets the VM, as an activity: GetMachineStatus first, CreateMachine only if there is none. A failure is shown in the status
 * and repeated when its wait is over or the input has changed; meanwhile passes only show it again.
 */
export const launch = (deps: Deps): MachineStep => ({
  name: 'launch',

  run(ctx) {
    const { resolved } = ctx;
    if (resolved === undefined) return waitFor('the MachineClass');
    deps.unanswered.clearAnswered(ctx.machine);
    const isAsking = deps.activities.get(ctx.machine.metadata.uid, 'create')?.state === 'running';
    // A class that the Machine no longer names would lose its finalizer before the answer. Usual ones are recorded with that, in one write.
    if (!isAsking || deps.vmClasses.hasFormer(ctx.machine, classNameOf(ctx.machine)))
      deps.vmClasses.record(ctx.machine);
    const call = creationOf(deps, ctx, resolved);
    const progress = deps.calls.advance(ctx, call);
    if (progress.kind === 'waiting') return progress.result;
    // The driver shows no VM, but no answer to a CreateMachine says that there is none, and the provider may be slow to show it.
    if (progress.answer === undefined) {
      if (!deps.calls.hasFailed(ctx, resolved, 'create')) showUnanswered(deps, ctx);
      return deps.calls.postpone(
        ctx,
        call,
        deps.unanswered.checkMs(ctx.machine),
        'the VM of a CreateMachine call without a clear answer to appear',
      );
    }
    deps.unanswered.ended(ctx.machine, undefined, deps.clock.monotonicMs());
    ctx.launched = progress.answer;
    return next;
  },
});

/** Takes back what the driver told of the VM, because it cannot be true: it is asked again later. Returns what ends the pass. */
export function refuseVM(
  deps: Pick<Deps, 'calls' | 'clock'>,
  ctx: MachineContext,
  resolved: ResolvedClass,
  error: DriverError,
  waitingFor: string,
): StepResult {
  return deps.calls.refuse(ctx, { kind: 'create', resolved, show: showIn(deps, ctx) }, error, waitingFor);
}

function creationOf(deps: Deps, ctx: MachineContext, resolved: ResolvedClass): MachineCall<'create'> {
  const { observed } = ctx;
  return {
    kind: 'create',
    resolved,
    waitingFor: { answer: 'the VM to be created', attempt: 'the next CreateMachine retry' },
    recorded: () => recordedFailure(deps, ctx),
    send: (signal) => findOrCreate(deps, ctx, observed, resolved, signal),
    ended: (error) => {
      deps.unanswered.ended(ctx.machine, error, deps.clock.monotonicMs());
      deps.vmClasses.record(ctx.machine);
    },
    underWay: (error) => showProgress(deps, ctx, error),
    unprepared: (error) => reportPreparation(deps, ctx, error),
    show: showIn(deps, ctx),
  };
}

/** Undefined: there is no VM that can be seen, and it is too early to make one. */
async function findOrCreate(
  deps: Deps,
  ctx: MachineContext,
  machine: Machine,
  resolved: ResolvedClass,
  signal: AbortSignal,
): Promise<Launched | undefined> {
  const { driver, machineClass, secretData } = resolved;
  const className = machineClass.metadata.name;
  const isLeaving = className !== classNameOf(machine);
  const mayCreate = deps.unanswered.checkMs(ctx.machine) === 0;
  const { methods, idempotentCreate } = await driver.capabilities(signal);
  const canInitialize = methods.has('InitializeMachine');
  await driver.turn(machineClass, signal);
  const found = await findVM(ctx, machine, resolved, { canInitialize, idempotentCreate }, signal);
  if (found !== undefined && found !== 'begun') {
    deps.vmClasses.requested(machine, className);
    return found;
  }
  if (isLeaving && found === undefined) {
    // Another class is wanted by now: what its driver knows nothing of says nothing of a VM that was requested with this one.
    if (mayCreate) deps.vmClasses.left(machine, className);
    return undefined;
  }
  if (!(mayCreate || idempotentCreate)) return undefined;
  await driver.turn(machineClass, signal);
  requireStillDesired(deps, ctx, machine);
  const data = await deps.tokens.startingData(ctx, secretData, 'now', signal);
  requireStillDesired(deps, ctx, machine);
  requireSameClass(deps, ctx, machine);
  if (!idempotentCreate || deps.vmClasses.hasFormer(machine, className))
    await markSent(deps, ctx, machine, className, signal);
  deps.vmClasses.requested(machine, className);
  const creationTimeoutMs = creationTimeoutMsOf(machine, deps.settings);
  const timeoutMs = idempotentCreate
    ? repeatableTimeoutMs(creationTimeoutMs, deps.calls.timeoutsOf(ctx, resolved, 'create'))
    : wholeTimeoutMs(creationTimeoutMs);
  const vm = await driver
    .create({ machine, machineClass, secretData: data }, signal, timeoutMs)
    // Its Machine may have been forgotten meanwhile, because it was not shown for a while.
    .finally(() => deps.vmClasses.requested(machine, className))
    .catch((err: unknown) => {
      if (DriverError.hasCode(err, 'InvalidArgument')) deps.vmClasses.refused(machine);
      throw err;
    });
  await requireConfirmed(deps, ctx, resolved, machine, vm, signal);
  return { ...vm, how: 'created', needsInitialize: canInitialize };
}

/** Throws StaleCallError. Work may have waited for its turn: a machine that was deleted or given up meanwhile needs no VM any more. */
export function requireStillDesired(
  { machines }: Pick<Deps, 'machines'>,
  { key }: MachineContext,
  { metadata }: Machine,
): void {
  const current = machines.get(key);
  const isSame = current?.metadata.uid === metadata.uid;
  if (isSame && !isBeingDeleted(current) && phaseOf(current) !== 'Failed') return;
  throw new StaleCallError('the machine is no longer needed');
}

/** Throws StaleCallError. The pass that has seen another class has recorded none: nothing was requested by then. */
function requireSameClass({ machines }: Pick<Deps, 'machines'>, { key }: MachineContext, machine: Machine): void {
  const current = machines.get(key);
  if (current === undefined || classNameOf(current) === classNameOf(machine)) return;
  throw new StaleCallError('the machine refers to another class');
}

/**
 * Records that CreateMachine is being sent, where a second call could make a second VM: if this process is killed, the next one
 * knows that an answer is missing, and with which class the VM was requested.
 */
async function markSent(
  deps: Deps,
  ctx: MachineContext,
  machine: Machine,
  className: string,
  signal: AbortSignal,
): Promise<void> {
  await deps.markCreationSent(machine, className, signal);
  deps.unanswered.sent(ctx.machine);
}

/** `begun`: there is none that could be told of, but CreateMachine goes on with what is there. */
async function findVM(
  ctx: Pick<MachineContext, 'nodes'>,
  machine: Machine,
  { driver, machineClass, secretData }: ResolvedClass,
  { canInitialize, idempotentCreate }: { readonly canInitialize: boolean; readonly idempotentCreate: boolean },
  signal: AbortSignal,
): Promise<Launched | 'begun' | undefined> {
  const recorded = {
    providerID: providerIDOf(machine),
    nodeName: nodeNameOf(machine),
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
      // Begun, and without an id by which it could be initialized: the creation goes on with what is there.
      if (providerID === '' && idempotentCreate) return 'begun';
      return { ...recorded, how: 'uninitialized', providerID, nodeName, needsInitialize: canInitialize };
    }
    if (reaction === 'create') return undefined;
    if (reaction === 'trust')
      return {
        ...recorded,
        how: 'known',
        isUnseen: err.code === 'NotFound',
        needsInitialize: canInitialize && (await mayBeUninitialized(ctx, machine, signal)),
      };
    throw err;
  }
}

/**
 * Whether a recorded VM is to be initialized: its Machine says so, or the process has died before it could, and no Node shows that the VM works.
 * Throws ApiError where the Node cannot be read.
 */
async function mayBeUninitialized(
  { nodes }: Pick<MachineContext, 'nodes'>,
  machine: Machine,
  signal: AbortSignal,
): Promise<boolean> {
  if (isUninitialized(machine)) return true;
  if (!isBeingCreated(machine) || showsNode(machine) || nodes === undefined || nodeNameOf(machine) === '') return false;
  // Live: where the process starts in an outage of the target cluster, its cache is empty.
  return (await nodes.read(nodeNameOf(machine), signal)) === undefined;
}

/** The API server refused what a creation needs beforehand: the bootstrap token. */
function reportPreparation({ clock }: Deps, { machine, observed }: MachineContext, error: unknown): void {
  if (!(error instanceof ApiError)) return;
  const description = `${PREPARATION_FAILED}${error.message}`;
  beginPhase(machine, 'CrashLoopBackOff', clock.now());
  const told = { type: 'Create', state: 'Failed', errorCode: 'PreparationFailed', description } as const;
  setFailure(machine, failureOfCreation(observed, told), clock.now());
}

/** What the provider waits for. A phase that tells of an earlier failure stays until there is a VM; the last operation says that it is over. */
function showProgress({ clock }: Pick<Deps, 'clock'>, { machine }: MachineContext, error: DriverError): void {
  storeDriverState(machine, 'create', error);
  const description = `${BEING_CREATED}${error.detail}`;
  const errorCode = 'VMBeingCreated';
  setFailure(machine, { type: 'Create', state: 'Processing', errorCode, description }, clock.now());
}

/** Of a call that was made of something else, such as a class that was corrected since, the failure is over although the next call has to wait. */
function showUnanswered({ clock }: Pick<Deps, 'clock'>, { machine, observed }: MachineContext): void {
  if (failedCallOf(observed.status?.lastOperation) !== 'create') return;
  const description = `${BEING_CREATED}the last CreateMachine call did not report whether it created a VM. Unless one appears, it is repeated after 2 minutes.`;
  const told = { type: 'Create', state: 'Processing', errorCode: 'VMBeingCreated', description } as const;
  setFailure(machine, failureOfCreation(observed, told), clock.now());
}

/** How a failure shows on the copy. The same again is no write and no Event. */
function showIn(
  { clock }: Pick<Deps, 'clock'>,
  { machine, observed, pass }: MachineContext,
): MachineCall<'create'>['show'] {
  return ({ error, isOwn }) => {
    if (isOwn) storeDriverState(machine, 'create', error);
    const description = `${CREATE_FAILED}${error.message}`;
    beginPhase(machine, 'CrashLoopBackOff', clock.now());
    const told = { type: 'Create', state: 'Failed', errorCode: error.code, description } as const;
    setFailure(machine, failureOfCreation(observed, told), clock.now());
    if (machine.status.lastOperation?.description === observed.status?.lastOperation?.description) return;
    pass.event('CreateFailed', description);
  };
}

/** What another process has written before us still holds: of the same call. */
function recordedFailure(
  { clock }: Deps,
  { machine }: MachineContext,
): { readonly error: DriverError; readonly agoMs: number } | undefined {
  const { lastOperation = {} } = machine.status;
  const { type, state, errorCode, lastUpdateTime } = lastOperation;
  const code = DRIVER_CODES.find((known) => known === errorCode);
  if (type !== 'Create' || state !== 'Failed' || code === undefined || failedCallOf(lastOperation) === 'initialize')
    return undefined;
  const agoMs = clock.now() - (fromTimestamp(lastUpdateTime) ?? 0);
  return { error: new DriverError(code, providerTextOf(lastOperation)), agoMs };
}
