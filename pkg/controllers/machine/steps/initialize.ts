import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { fromTimestamp } from '../../../clock/clock.ts';
import { repeatableTimeoutMs } from '../../../driver/deadlines.ts';
import { DriverError } from '../../../driver/error.ts';
import { next, requeue, waitFor, type StepResult } from '../../../reconcile/result.ts';
import type { MachineContext, MachineStep, ResolvedClass } from '../context.ts';
import type { CallInput } from '../retries.ts';
import { afterInitialize } from '../reactions.ts';
import { creationTimeoutMsOf } from '../settings.ts';
import { INITIALIZE_FAILED } from '../status-texts.ts';
import { phaseOf, restartPhase, setFailure } from '../status.ts';
import { startingData } from './bootstrap.ts';
import { GIVEN_UP_RETRY_MS, inputOf, keepState, wasGivenUp } from './launch.ts';

/**
 * Has a new VM initialized by drivers that do this in a step of its own, once the VM's identity is recorded. A driver that
 * does not know the call has nothing to initialize.
 */
export const initialize: MachineStep = {
  name: 'initialize',

  run(ctx) {
    const { machine, observed, launched, resolved, activities, retries, metrics, pass } = ctx;
    if (launched?.needsInitialize !== true || resolved === undefined) return next;
    if (observed.spec.providerID !== machine.spec.providerID) return waitFor('the identity of the VM to be seen');

    const { uid } = machine.metadata;
    const activity = activities.get<number>(uid, 'initialize');
    if (activity === undefined) return start(ctx, resolved);
    switch (activity.state) {
      case 'running':
        return waitFor('the VM to be initialized');
      case 'failed':
        activities.forget(uid, 'initialize');
        return failed(ctx, resolved, activity.error);
      default:
        retries.succeeded(inputOf(ctx, resolved, 'initialize'));
        // Told where a failure was told before; a life without trouble has no word of it.
        if (phaseOf(observed) === 'CrashLoopBackOff') {
          pass.event('VMInitialized', `VM ${machine.spec.providerID ?? ''} was initialized.`);
        }
        pass.afterWrite(() => metrics.initialized(machine, resolved.machineClass, activity.result));
        return next;
    }
  },
};

function start(ctx: MachineContext, resolved: ResolvedClass): StepResult {
  const { machine, observed, key, activities, retries } = ctx;
  const input = inputOf(ctx, resolved, 'initialize');
  const waitMs = retries.waitMs(input);
  if (waitMs > 0) {
    showAgain(ctx, input);
    return requeue(waitMs, 'the next attempt to initialize the VM');
  }
  const { uid } = machine.metadata;
  const { driver, machineClass, secretData } = resolved;
  activities.startOrGet({ uid, key, provider: driver.provider }, 'initialize', async (signal) => {
    const startedMs = ctx.clock.monotonicMs();
    const data = await startingData(ctx, secretData, 'before', signal);
    const timeoutMs = repeatableTimeoutMs(creationTimeoutMsOf(observed, ctx.settings), retries.timeoutsOf(input));
    try {
      await driver.initialize({ machine: observed, machineClass, secretData: data }, signal, timeoutMs);
    } catch (err) {
      if (!(err instanceof DriverError) || afterInitialize(err.code) === 'retry') throw err;
    }
    return ctx.clock.monotonicMs() - startedMs;
  });
  return waitFor('the VM to be initialized');
}

function failed(ctx: MachineContext, resolved: ResolvedClass, error: unknown): StepResult {
  const { retries } = ctx;
  const input = inputOf(ctx, resolved, 'initialize');
  if (wasGivenUp(error)) {
    retries.postpone(input, GIVEN_UP_RETRY_MS);
    return requeue(GIVEN_UP_RETRY_MS, 'the clusters to be reachable');
  }
  if (!(error instanceof DriverError)) throw error;
  retries.failed(input, error);
  showAgain(ctx, input);
  return requeue(retries.waitMs(input), 'the next attempt to initialize the VM');
}

/**
 * Since when (ms since the epoch) the VM of this machine has been there and waits to be initialized; undefined unless a failure
 * of that is recorded.
 */
export function initializingSinceMs(machine: Pick<Machine, 'status'>): number | undefined {
  const { description = '' } = machine.status?.lastOperation ?? {};
  if (phaseOf(machine) !== 'CrashLoopBackOff' || !description.startsWith(INITIALIZE_FAILED)) return undefined;
  return fromTimestamp(machine.status?.currentStatus?.lastUpdateTime);
}

/** When (ms since the epoch) this process learned that the VM is there. */
function launchedAtMs({ observed, activities, clock }: MachineContext): number {
  const creation = activities.get(observed.metadata.uid, 'create');
  const agoMs = creation?.state === 'done' ? clock.monotonicMs() - creation.settledAtMs : 0;
  return clock.now() - agoMs;
}

/** Shows a failure in every pass while the next attempt is waited for; the same again is no write and no Event. */
function showAgain(ctx: MachineContext, input: CallInput): void {
  const { machine, observed, clock, retries, pass } = ctx;
  const failure = retries.failureOf(input);
  if (failure === undefined) return;
  const { error } = failure;
  keepState(ctx, 'initialize', error);
  const description = `${INITIALIZE_FAILED}${error.message}. Initialize VM Instance`;
  // From here on the time to be initialized is recorded, so that a restart does not give it anew.
  if (initializingSinceMs(observed) === undefined) restartPhase(machine, 'CrashLoopBackOff', launchedAtMs(ctx));
  setFailure(machine, { type: 'Create', state: 'Failed', errorCode: error.code, description }, clock.now());
  if (machine.status.lastOperation?.description === observed.status?.lastOperation?.description) return;
  pass.event('InitializeFailed', description);
}
