import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { NODE_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import { fromTimestamp } from '../../../clock/clock.ts';
import { DriverError } from '../../../driver/error.ts';
import { GateClosedError } from '../../../gate/gate.ts';
import { next, requeue, waitFor, type StepResult } from '../../../reconcile/result.ts';
import { isUnresolved, resolveClass } from '../class-resolution.ts';
import type { MachineContext, MachineStep, ResolvedClass } from '../context.ts';
import { inputOf, keepState } from '../steps/launch.ts';
import { phaseOf } from '../status.ts';
import { advance, isAt, stay, untilRecorded } from './cursor.ts';

/** When to try again after the gate was closed. */
const GATE_RETRY_MS = 5_000;

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
    return untilRecorded(ctx, 'delete-vm') ?? look(ctx, resolved);
  },
};

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
    (observed.spec?.providerID ?? '') === '' &&
    (observed.metadata.labels?.[NODE_LABEL] ?? '') === ''
  );
}

function look(ctx: MachineContext, resolved: ResolvedClass): StepResult {
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
      return deleted(ctx, resolved, activity.error.lastKnownState);
    default:
      return deleted(ctx, resolved, activity.result.lastKnownState);
  }
}

function start(ctx: MachineContext, resolved: ResolvedClass): StepResult {
  const { observed, key, activities, retries } = ctx;
  const { uid } = observed.metadata;
  const waitMs = retries.waitMs(inputOf(ctx, resolved, 'delete'));
  if (waitMs > 0) return requeue(waitMs, 'the next attempt to delete the VM');
  const { driver, machineClass, secretData } = resolved;
  activities.startOrGet({ uid, key }, 'delete', (signal) =>
    driver.delete({ machine: observed, machineClass, secretData }, signal),
  );
  return waitFor('the VM to be deleted');
}

function deleted(ctx: MachineContext, { machineClass }: ResolvedClass, state: string | undefined): StepResult {
  const { machine, activities, clock, pass, log, metrics } = ctx;
  const { uid, deletionTimestamp } = machine.metadata;
  const { providerID = '' } = machine.spec;
  if (state !== undefined && state !== '') machine.status.lastKnownState = state;
  else delete machine.status.lastKnownState;
  const tookMs = clock.now() - (fromTimestamp(deletionTimestamp) ?? clock.now());
  pass.event('VMDeleted', providerID === '' ? 'No VM is left.' : `VM ${providerID} was deleted.`);
  pass.afterWrite(() => {
    activities.forget(uid, 'delete');
    log.info({ providerID, ms: tookMs }, 'deleted a VM');
    metrics.deleted(machine, machineClass, tookMs);
  });
  advance(ctx, 'delete-node');
  return next;
}

function failed(ctx: MachineContext, resolved: ResolvedClass, error: unknown): StepResult {
  const { retries, pass } = ctx;
  if (error instanceof GateClosedError) return requeue(GATE_RETRY_MS, 'the clusters to be reachable');
  if (!(error instanceof DriverError)) throw error;
  const input = inputOf(ctx, resolved, 'delete');
  const retry = retries.failed(input, error);
  keepState(ctx, error, retry.clearsLastKnownState);
  const text = `Cloud provider message - ${error.message}.`;
  if (stay(ctx, 'delete-vm', text)) pass.event('VMDeletionFailed', text);
  return requeue(retries.waitMs(input), 'the next attempt to delete the VM');
}
