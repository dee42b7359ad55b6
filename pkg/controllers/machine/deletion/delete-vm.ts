import { nodeNameOf, phaseOf, providerIDOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { fromTimestamp, MINUTE_MS } from '../../../base/clock/clock.ts';
import { next, requeue, waitFor, type StepResult } from '../../../work/reconcile/result.ts';
import type { Node } from '../../../apis/wire.ts';
import { accountOf } from '../../../driver/account.ts';
import { DriverError } from '../../../driver/error.ts';
import { codeInDeletion, wasNeverRequested } from '../../machine-facts/status.ts';
import type { Collaborators } from '../collaborators.ts';
import { storeDriverState, StaleCallError, type MachineCall } from '../calls/driver-call.ts';
import type { CallFailure } from '../calls/retries.ts';
import { isUnresolved } from '../calls/class-resolution.ts';
import type { MachineContext, MachineStep, ResolvedClass } from '../context.ts';
import { describeRival, sharedWith } from '../identity/identity-claims.ts';
import type { ActivityResults } from '../calls/results.ts';
import { isAt, untilRecorded } from './cursor.ts';
import { isVMOfNamesake, VMInDoubtError } from './namesake-vms.ts';
import { orForcedRemoval, type ForcedRemovalDeps } from './forced-removal.ts';
import { readClass } from './read-class.ts';
import { isUnseenVM, nodeAgainst, unseenVMError } from './unseen-vm.ts';

/** So long a deletion without an end is nothing that anybody has to look at, nor is an answer that is not believed yet. */
const GOES_ON_MS = MINUTE_MS;
/** When to look again at a Node that contradicts the driver. */
const RELOOK_MS = 5_000;

type Deps = ForcedRemovalDeps &
  Pick<
    Collaborators,
    | 'machines'
    | 'namesakes'
    | 'activities'
    | 'brokenNodes'
    | 'judgedVM'
    | 'metrics'
    | 'calls'
    | 'deletionTimes'
    | 'unanswered'
    | 'cursor'
    | 'resolveClass'
  >;

/**
 * Has the driver delete the VM, as an activity; also when it is said not to exist, because something of it may. Only success
 * ends this stage, and NotFound if no Node contradicts it. Without its MachineClass nobody can tell the driver what to delete: the machine waits, and
 * says so, unless it is certain that no VM was ever asked for; so it does without a driver for its provider.
 */
export const deleteVM = (deps: Deps): MachineStep => ({
  name: 'delete-vm',

  async run(ctx) {
    if (!isAt(ctx, 'delete-vm')) return next;
    const { machine, observed, pass } = ctx;
    // A driver may take the VM of a namesake for it.
    if (deps.namesakes !== undefined && wasNeverRequested(machine)) {
      deps.cursor.advance(ctx, 'delete-node', 'No VM was requested.');
      return next;
    }
    const resolved = await readClass(deps, ctx, 'delete-vm');
    if (isUnresolved(resolved)) {
      if (wasNeverRequested(machine) || (resolved.missing === 'class' && wasNeverLaunched(observed))) {
        deps.cursor.advance(ctx, 'delete-node', 'No VM was requested.');
        return next;
      }
      const text = `${resolved.problem} Without it, the VM cannot be deleted.`;
      if (deps.cursor.stay(ctx, 'delete-vm', text)) pass.event('InvalidClass', text);
      return waitFor('the MachineClass or its Secret to be corrected');
    }
    return untilRecorded(ctx, 'delete-vm') ?? (await look(deps, ctx, resolved));
  },
});

/**
 * Whether this machine has waited for its class from the beginning: it never had a phase, a VM or a provider's error. Its
 * class would have been protected by a finalizer if it had ever been used.
 */
export function wasNeverLaunched(observed: Machine): boolean {
  const { type, state, errorCode = '' } = observed.status?.lastOperation ?? {};
  return (
    phaseOf(observed) === '' &&
    type === 'Create' &&
    state === 'Failed' &&
    errorCode === '' &&
    providerIDOf(observed) === '' &&
    nodeNameOf(observed) === ''
  );
}

async function look(deps: Deps, ctx: MachineContext, resolved: ResolvedClass): Promise<StepResult> {
  const call = deletionOf(deps, ctx, resolved);
  const progress = deps.calls.advance(ctx, call);
  if (progress.kind === 'waiting') return await orForcedRemoval(deps, ctx, resolved, progress.result);
  const { answer } = progress;
  // That there is no VM was said of the class as it was then.
  if (answer.classVersion !== undefined && answer.classVersion !== resolved.classVersion) {
    deps.judgedVM?.(ctx.machine.metadata.uid, false);
    return deps.calls.postpone(ctx, call, 0, 'the driver to look for the VM with the changed MachineClass');
  }
  const node = await contradictionOf(deps, ctx, answer);
  if (node !== undefined)
    return await orForcedRemoval(deps, ctx, resolved, disbelieve(deps, ctx, call, answer, node), true);
  // It may have stood for a while.
  if (!answer.wasFound && !(await deps.cursor.isStillOurs(ctx, ctx.signal)))
    return waitFor('the latest version of the Machine');
  const waitMs = await mayShowInMs(deps, ctx, resolved);
  if (waitMs === 0) return deleted(deps, ctx, resolved, answer);
  deps.cursor.advance(
    ctx,
    'delete-vm',
    'The CreateMachine call has not reported whether it created a VM; it may still appear.',
  );
  return deps.calls.postpone(ctx, call, waitMs, 'the VM of a CreateMachine call without a clear answer to appear');
}

/** Throws ApiError and GateClosedError. */
async function contradictionOf(
  deps: Deps,
  ctx: MachineContext,
  answer: ActivityResults['delete'],
): Promise<Node | undefined> {
  let isBelieved = false;
  try {
    const node = await nodeAgainst(deps, ctx, 'delete-vm', answer);
    isBelieved = node === undefined;
    return node;
  } finally {
    if (!isBelieved) deps.judgedVM?.(ctx.machine.metadata.uid, false);
  }
}

function deletionOf(deps: Deps, ctx: MachineContext, resolved: ResolvedClass): MachineCall<'delete'> {
  const { driver, machineClass, secretData } = resolved;
  const account = accountOf(driver.provider, machineClass);
  const timeouts = deps.calls.timeoutsOf(ctx, resolved, 'delete');
  return {
    kind: 'delete',
    resolved,
    waitingFor: { answer: 'the VM to be deleted', attempt: 'the next DeleteMachine retry' },
    send: async (signal) => {
      await driver.turn(machineClass, signal);
      if (!(await deps.cursor.isStillOurs(ctx, signal)))
        throw new StaleCallError('the Machine no longer exists, or was replaced by another one of the same name');
      const request = { machine: asOwnVM(deps, ctx), machineClass, secretData };
      if (await isVMOfNamesake(deps, driver, request, ctx.observed, signal))
        return { lastKnownState: undefined, wasFound: false, isAnothers: true };
      try {
        const answer = await deps.deletionTimes.during({ account, timeouts, signal }, (bounded) =>
          driver.delete(request, bounded),
        );
        return { ...answer, wasFound: true };
      } catch (err) {
        if (!DriverError.hasCode(err, 'NotFound')) throw err;
        return { lastKnownState: err.lastKnownState, wasFound: false, classVersion: resolved.classVersion };
      }
    },
    sent: () => reportSharedID(deps, ctx),
    show: (failure) => show(deps, ctx, failure),
  };
}

/**
 * Keeps the answer for a minute, in which the Node of a VM that is gone is no longer Ready: the driver is not asked each time that somebody looks.
 * Then it counts as a failure, and the driver is asked again as after others. Returns what ends the pass.
 */
function disbelieve(
  deps: Deps,
  ctx: MachineContext,
  call: MachineCall<'delete'>,
  { lastKnownState }: ActivityResults['delete'],
  node: Node,
): StepResult {
  const { activities, calls, clock } = deps;
  const activity = activities.get(ctx.machine.metadata.uid, 'delete');
  const nowMs = clock.monotonicMs();
  const forMs = nowMs - (activity?.state === 'done' ? activity.settledAtMs : nowMs);
  const error = unseenVMError(ctx.observed, node, call.resolved.machineClass.metadata.name, lastKnownState);
  const what = `the driver to find the VM, or Node ${node.metadata.name} to be no longer Ready`;
  if (forMs >= GOES_ON_MS || wasTold(ctx, error))
    return calls.refuse(ctx, { ...call, show: (failure) => show(deps, ctx, { ...failure, forMs }) }, error, what);
  show(deps, ctx, { error, isOwn: true, forMs });
  return requeue(RELOOK_MS, what);
}

function show({ cursor }: Deps, ctx: MachineContext, failure: CallFailure): void {
  const { error } = failure;
  storeDriverState(ctx.machine, 'delete', error);
  const isInDoubt = error instanceof VMInDoubtError;
  const how = isInDoubt ? 'not deleted yet' : 'still being deleted';
  if (goesOn(ctx, failure)) return cursor.resume(ctx, 'delete-vm', `The VM is ${how}: ${error.detail}.`);
  const text = failureText(error);
  // Much the same again is no write and no Event.
  if (cursor.stay(ctx, 'delete-vm', text, isUnseenVM(error) ? 'VMUnseen' : undefined))
    ctx.pass.event('VMDeletionFailed', text);
}

/**
 * Whether nothing is wrong with a deletion that has no end yet: providers take their time, and drivers say Aborted meanwhile; it may be in
 * doubt for a moment. A failure that was told, be it of another process, stands until the VM is gone; one that is followed by NotFound, until
 * that had its minute as well.
 */
function goesOn(ctx: MachineContext, { error, forMs }: CallFailure): boolean {
  const isNone = error.code === 'Aborted' || error instanceof VMInDoubtError;
  return isNone && forMs < GOES_ON_MS && !wasTold(ctx, error);
}

/** Whether a failure was told: any, before Aborted; before a NotFound that is not believed, just that. */
function wasTold({ machine }: MachineContext, error: DriverError): boolean {
  const { state, errorCode } = machine.status.lastOperation ?? {};
  if (state !== 'Failed') return false;
  return error.code === 'Aborted' || (isUnseenVM(error) && errorCode === codeInDeletion(machine, 'VMUnseen'));
}

export function failureText(error: DriverError): string {
  return error instanceof VMInDoubtError
    ? `The VM cannot be deleted: ${error.detail}.`
    : `Cloud provider message - ${error.message}.`;
}

/**
 * The VM of a creation without a clear answer may come after the driver said that nothing is there, where the driver cannot promise to
 * find it: until that is over the deletion is repeated. Milliseconds until the next look; 0 when nothing can come any more.
 */
async function mayShowInMs(deps: Deps, ctx: MachineContext, { driver }: ResolvedClass): Promise<number> {
  const waitMs = deps.unanswered.checkMs(ctx.machine);
  if (waitMs === 0 || providerIDOf(ctx.machine) !== '') return 0;
  const { idempotentCreate } = await driver.capabilities(ctx.signal).catch(() => ({ idempotentCreate: false }));
  return idempotentCreate ? 0 : waitMs;
}

/** The Machine with the VM that a creation has told of, also if this is not recorded yet, or cannot be: by its name, it may not show for minutes. */
function withVM({ machine, observed }: MachineContext): Machine {
  const providerID = providerIDOf(machine);
  return providerID === providerIDOf(observed) ? observed : { ...observed, spec: { ...observed.spec, providerID } };
}

/**
 * The Machine as the driver is told of it. A provider id that another Machine has too may be that one's VM: without it drivers look
 * for the VM by the machine's name.
 */
function asOwnVM(deps: Deps, ctx: MachineContext): Machine {
  const machine = withVM(ctx);
  if (sharedWith(machine, deps.machines, ctx.nodes) === undefined) return machine;
  const { providerID: _shared, ...spec } = machine.spec;
  return { ...machine, spec };
}

/** Drivers may answer OK too where there was nothing to delete: only of a VM that they told of it is certain that there was one. */
function textOfDeleted(
  { machines }: Deps,
  ctx: MachineContext,
  { wasFound: found, isAnothers = false }: ActivityResults['delete'],
): string {
  const { nodes } = ctx;
  const machine = withVM(ctx);
  const { metadata } = machine;
  const providerID = providerIDOf(machine);
  const isOwn = providerID !== '' && sharedWith(machine, machines, nodes) === undefined;
  const what = isOwn ? `VM ${providerID}` : `VM of name ${metadata.name}`;
  if (isAnothers && providerID !== '')
    return `No VM was deleted: VM ${providerID} is also that of a Machine in another namespace, and stays while that exists.`;
  if (isAnothers) return `No VM was deleted: the ${what} is that of a Machine in another namespace.`;
  if (!found) return `The provider has no ${what}.`;
  const wasShown = nodes === undefined || nodeNameOf({ metadata }) !== '';
  return isOwn && wasShown ? `${what} was deleted.` : `The provider has no ${what} left.`;
}

function reportSharedID({ machines, reportedOnce }: Deps, { observed, nodes, pass }: MachineContext): void {
  const other = sharedWith(observed, machines, nodes);
  if (other === undefined || !reportedOnce.isNew(observed.metadata.uid, `SharedProviderID ${other}`)) return;
  const { providerID = '' } = observed.spec;
  pass.event(
    'SharedProviderID',
    `Field spec.providerID is ${providerID}, which is also set on ${describeRival(other)}. The VM of this Machine is looked up by name; VMs of other Machines are not touched.`,
  );
}

function deleted(
  deps: Deps,
  ctx: MachineContext,
  { machineClass }: ResolvedClass,
  answer: ActivityResults['delete'],
): StepResult {
  const { lastKnownState: state = '', wasFound } = answer;
  const { activities, clock, metrics } = deps;
  const { machine, pass, log } = ctx;
  const { uid, deletionTimestamp } = machine.metadata;
  const { providerID = '' } = machine.spec;
  if (state !== '') machine.status.lastKnownState = state;
  else delete machine.status.lastKnownState;
  const tookMs = clock.now() - (fromTimestamp(deletionTimestamp) ?? clock.now());
  // Before the write, with which the Machine may vanish.
  deps.judgedVM?.(uid, true);
  pass.event('VMDeleted', textOfDeleted(deps, ctx, answer));
  pass.afterWrite(() => {
    activities.forget(uid, 'delete');
    log.info({ providerID, ms: tookMs }, wasFound ? 'deleted a VM' : 'found no VM to delete');
    metrics.deleted(machine, machineClass, tookMs);
  });
  deps.cursor.advance(ctx, 'delete-node');
  return next;
}
