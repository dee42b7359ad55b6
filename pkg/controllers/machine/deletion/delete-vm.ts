import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { NODE_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import { fromTimestamp } from '../../../clock/clock.ts';
import { DriverError } from '../../../driver/error.ts';
import { next, requeue, waitFor, type StepResult } from '../../../reconcile/result.ts';
import { isUnresolved, resolveClass } from '../class-resolution.ts';
import type { MachineContext, MachineStep, ResolvedClass } from '../context.ts';
import type { CallInput } from '../retries.ts';
import { GIVEN_UP_RETRY_MS, inputOf, keepState, unansweredLookMs, wasGivenUp } from '../steps/launch.ts';
import { phaseOf, wasNeverAsked } from '../status.ts';
import { advance, isAt, stay, untilRecorded } from './cursor.ts';
import { isStillOurs, NotOursError } from './still-ours.ts';
import { sharedWith } from '../identity-claims.ts';

/**
 * Has the driver delete the VM, as an activity; also when it is said not to exist, because something of it may. Only success
 * and NotFound end this stage. Without its MachineClass nobody can tell the driver what to delete: the machine waits, and
 * says so, unless it is certain that no VM was ever asked for.
 */
export const deleteVM: MachineStep = {
  name: 'delete-vm',

  async run(ctx) {
    if (!isAt(ctx, 'delete-vm')) return next;
    const { machine, observed, pass } = ctx;
    const resolved = await resolveClass(ctx, machine);
    if (isUnresolved(resolved)) {
      if (wasNeverLaunched(observed)) {
        advance(ctx, 'delete-node', 'No VM was ever asked for.');
        return next;
      }
      const text = `${resolved.problem} Without it the VM cannot be deleted.`;
      if (stay(ctx, 'delete-vm', text)) pass.event('InvalidClass', text);
      return waitFor('the MachineClass or its Secret to be corrected');
    }
    return untilRecorded(ctx, 'delete-vm') ?? (await look(ctx, resolved));
  },
};

/**
 * Whether this machine has waited for its class from the beginning: it never had a phase, a VM or a provider's error. Its
 * class would have been protected by a finalizer if it had ever been used.
 */
export function wasNeverLaunched(observed: Machine): boolean {
  const { type, state, errorCode = '' } = observed.status?.lastOperation ?? {};
  if (wasNeverAsked(observed) && (observed.metadata.labels?.[NODE_LABEL] ?? '') === '') return true;
  return (
    phaseOf(observed) === '' &&
    type === 'Create' &&
    state === 'Failed' &&
    errorCode === '' &&
    (observed.spec?.providerID ?? '') === '' &&
    (observed.metadata.labels?.[NODE_LABEL] ?? '') === ''
  );
}

async function look(ctx: MachineContext, resolved: ResolvedClass): Promise<StepResult> {
  const { machine, activities } = ctx;
  const { uid } = machine.metadata;
  const activity = activities.get<{ lastKnownState: string | undefined }>(uid, 'delete');
  if (activity === undefined) return start(ctx, resolved);
  switch (activity.state) {
    case 'running':
      return waitFor('the VM to be deleted');
    case 'failed':
      activities.forget(uid, 'delete');
      if (!DriverError.hasCode(activity.error, 'NotFound')) return failed(ctx, resolved, activity.error);
      return (await mayShowYet(ctx, resolved)) ?? deleted(ctx, resolved, activity.error.lastKnownState);
    default:
      return (await mayShowYet(ctx, resolved)) ?? deleted(ctx, resolved, activity.result.lastKnownState);
  }
}

/**
 * The VM of a creation without answer may come after the driver said that nothing is there, where the driver cannot promise to
 * find it: until that is over the deletion is repeated. Undefined when nothing can come any more.
 */
async function mayShowYet(ctx: MachineContext, resolved: ResolvedClass): Promise<StepResult | undefined> {
  const { machine, activities, retries, signal } = ctx;
  const waitMs = unansweredLookMs(ctx);
  if (waitMs === 0 || (machine.spec.providerID ?? '') !== '') return undefined;
  const { idempotentCreate } = await resolved.driver.capabilities(signal).catch(() => ({ idempotentCreate: false }));
  if (idempotentCreate) return undefined;
  activities.forget(machine.metadata.uid, 'delete');
  retries.postpone(inputOf(ctx, resolved, 'delete'), waitMs);
  advance(ctx, 'delete-vm', 'The creation of a VM was not answered: it may show yet.');
  return requeue(waitMs, 'an unanswered creation to show');
}

function start(ctx: MachineContext, resolved: ResolvedClass): StepResult {
  const { observed, key, activities, retries } = ctx;
  const { uid } = observed.metadata;
  const input = inputOf(ctx, resolved, 'delete');
  const waitMs = retries.waitMs(input);
  if (waitMs > 0) {
    showAgain(ctx, input);
    return requeue(waitMs, 'the next attempt to delete the VM');
  }
  tellShared(ctx);
  const { driver, machineClass, secretData } = resolved;
  activities.startOrGet({ uid, key, provider: driver.provider }, 'delete', async (signal) => {
    if (!(await isStillOurs(ctx, signal))) throw new NotOursError();
    return await driver.delete({ machine: asOwnVM(ctx), machineClass, secretData }, signal);
  });
  return waitFor('the VM to be deleted');
}

/**
 * The Machine as the driver is told of it. A provider id that another Machine has too may be that one's VM: without it drivers look
 * for the VM by the machine's name.
 */
function asOwnVM(ctx: MachineContext): Machine {
  const { observed, machines, nodes } = ctx;
  if (sharedWith(observed, machines, nodes) === undefined) return observed;
  const { providerID: _shared, ...spec } = observed.spec;
  return { ...observed, spec };
}

function textOfDeleted({ observed, machines, nodes }: MachineContext): string {
  const { providerID = '' } = observed.spec;
  if (sharedWith(observed, machines, nodes) !== undefined)
    return `The VM of name ${observed.metadata.name} was deleted.`;
  return providerID === '' ? 'No VM is left.' : `VM ${providerID} was deleted.`;
}

function tellShared({ observed, machines, nodes, memory, pass }: MachineContext): void {
  const other = sharedWith(observed, machines, nodes);
  if (other === undefined || !memory.isNews(observed.metadata.uid, `SharedProviderID ${other}`)) return;
  const { providerID = '' } = observed.spec;
  pass.event(
    'SharedProviderID',
    `Field spec.providerID is ${providerID}, which is the VM of Machine ${other} too: it is left alone, and the VM of this machine is looked for by name.`,
  );
}

function deleted(ctx: MachineContext, { machineClass }: ResolvedClass, state: string | undefined): StepResult {
  const { machine, activities, clock, pass, log, metrics } = ctx;
  const { uid, deletionTimestamp } = machine.metadata;
  const { providerID = '' } = machine.spec;
  if (state !== undefined && state !== '') machine.status.lastKnownState = state;
  else delete machine.status.lastKnownState;
  const tookMs = clock.now() - (fromTimestamp(deletionTimestamp) ?? clock.now());
  pass.event('VMDeleted', textOfDeleted(ctx));
  pass.afterWrite(() => {
    activities.forget(uid, 'delete');
    log.info({ providerID, ms: tookMs }, 'deleted a VM');
    metrics.deleted(machine, machineClass, tookMs);
  });
  advance(ctx, 'delete-node');
  return next;
}

function failed(ctx: MachineContext, resolved: ResolvedClass, error: unknown): StepResult {
  const { retries } = ctx;
  const input = inputOf(ctx, resolved, 'delete');
  if (wasGivenUp(error)) {
    retries.postpone(input, GIVEN_UP_RETRY_MS);
    return requeue(GIVEN_UP_RETRY_MS, 'the clusters to be reachable');
  }
  if (error instanceof NotOursError) return waitFor('the Machine as it is now');
  if (!(error instanceof DriverError)) throw error;
  retries.failed(input, error);
  showAgain(ctx, input);
  return requeue(retries.waitMs(input), 'the next attempt to delete the VM');
}

/** Shows a failure in every pass while the next attempt is waited for; much the same again is no write and no Event. */
function showAgain(ctx: MachineContext, input: CallInput): void {
  const failure = ctx.retries.failureOf(input);
  if (failure === undefined) return;
  keepState(ctx, 'delete', failure.error);
  const text = `Cloud provider message - ${failure.error.message}.`;
  if (stay(ctx, 'delete-vm', text)) ctx.pass.event('VMDeletionFailed', text);
}
