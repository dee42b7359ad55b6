import { phaseOf, providerIDOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import { toTimestamp } from '../../../base/clock/clock.ts';
import { repeatableTimeoutMs } from '../../../driver/deadlines.ts';
import { DriverError } from '../../../driver/error.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { next, waitFor } from '../../../work/reconcile/result.ts';
import { creationTimeoutMsOf } from '../../machine-facts/settings.ts';
import { isUninitialized } from '../../machine-facts/joining.ts';
import { INITIALIZE_FAILED } from '../../machine-facts/original-texts.ts';
import { BEING_INITIALIZED, PREPARATION_FAILED } from '../../machine-facts/status-texts.ts';
import { isBeingCreated, restartPhase, setFailure } from '../../machine-facts/status.ts';
import type { Collaborators } from '../collaborators.ts';
import { storeDriverState } from '../calls/driver-call.ts';
import type { MachineContext, MachineStep, ResolvedClass } from '../context.ts';
import type { CallFailure } from '../calls/retries.ts';
import { afterInitialize } from '../calls/reactions.ts';
import type { ActivityResults } from '../calls/results.ts';
import { requireStillDesired } from './launch.ts';
import { initializingSinceMs } from './waiting-since.ts';

type Deps = Pick<Collaborators, 'clock' | 'settings' | 'activities' | 'metrics' | 'calls' | 'tokens' | 'machines'>;

/**
 * Has a new VM initialized by drivers that do this in a step of its own, once the VM's identity is recorded. A driver that
 * does not know the call has nothing to initialize.
 */
export const initialize = (deps: Deps): MachineStep => ({
  name: 'initialize',

  run(ctx) {
    const { machine, observed, launched, resolved, pass } = ctx;
    if (launched?.needsInitialize !== true || resolved === undefined) return next;
    // With the identity, before the call: whatever fails from here on, also in another process, the VM is still to be initialized.
    if (isBeingCreated(observed) && !isUninitialized(observed)) {
      showProgress(deps, ctx, 'the driver is asked to.');
      return waitFor('it to be recorded that the VM is to be initialized');
    }
    if (observed.spec.providerID !== machine.spec.providerID) return waitFor('the identity of the VM to be recorded');

    const progress = deps.calls.advance(ctx, {
      kind: 'initialize',
      resolved,
      waitingFor: { answer: 'the VM to be initialized', attempt: 'the next InitializeMachine retry' },
      send: (signal) => send(deps, ctx, resolved, signal),
      underWay(error) {
        storeDriverState(machine, 'initialize', error);
        showProgress(deps, ctx, error.detail);
      },
      unprepared: (error) => showUnprepared(deps, ctx, error),
      show: (failure) => showFailure(deps, ctx, failure),
    });
    if (progress.kind === 'waiting') return progress.result;
    // Told where a failure was told before; a life without trouble has no word of it.
    if (phaseOf(observed) === 'CrashLoopBackOff') {
      pass.event('VMInitialized', `VM ${providerIDOf(machine)} was initialized.`);
    }
    const { tookMs, vm } = progress.answer;
    ctx.launched = {
      ...launched,
      addresses: [...launched.addresses, ...vm.addresses],
      capacity: launched.capacity ?? vm.capacity,
    };
    pass.afterWrite(() => deps.metrics.initialized(machine, resolved.machineClass, tookMs));
    return next;
  },
});

async function send(
  deps: Deps,
  ctx: MachineContext,
  resolved: ResolvedClass,
  signal: AbortSignal,
): Promise<ActivityResults['initialize']> {
  const { observed } = ctx;
  const { driver, machineClass, secretData } = resolved;
  const startedMs = deps.clock.monotonicMs();
  await driver.turn(machineClass, signal);
  requireStillDesired(deps, ctx, observed);
  const data = await deps.tokens.startingData(ctx, secretData, 'before', signal);
  const timeouts = deps.calls.timeoutsOf(ctx, resolved, 'initialize');
  const timeoutMs = repeatableTimeoutMs(creationTimeoutMsOf(observed, deps.settings), timeouts);
  const request = { machine: observed, machineClass, secretData: data };
  const vm = await driver.initialize(request, signal, timeoutMs).catch((err: unknown) => {
    if (!(err instanceof DriverError) || afterInitialize(err.code) === 'retry') throw err;
    return { addresses: [] };
  });
  return { tookMs: deps.clock.monotonicMs() - startedMs, vm };
}

/** When (ms since the epoch) this process learned that the VM is there. */
function launchedAtMs({ activities, clock }: Deps, { observed }: MachineContext): number {
  const creation = activities.get(observed.metadata.uid, 'create');
  const agoMs = creation?.state === 'done' ? clock.monotonicMs() - creation.settledAtMs : 0;
  return clock.now() - agoMs;
}

/** What the provider waits for; from when the VM was there is recorded, so that a restart does not give its time anew. */
function showProgress(deps: Deps, ctx: MachineContext, what: string): void {
  const { machine, observed } = ctx;
  if (initializingSinceMs(observed) === undefined) {
    const lastUpdateTime = toTimestamp(launchedAtMs(deps, ctx));
    machine.status.currentStatus = { ...machine.status.currentStatus, lastUpdateTime };
  }
  const description = `${BEING_INITIALIZED}${what}`;
  const errorCode = 'VMBeingInitialized';
  setFailure(machine, { type: 'Create', state: 'Processing', errorCode, description }, deps.clock.now());
}

/** The API server refuses what is needed beforehand: the bootstrap token. By another code it would run as soon as its Node is healthy. */
function showUnprepared(deps: Deps, ctx: MachineContext, error: unknown): void {
  if (!(error instanceof ApiError)) return;
  const { machine, observed } = ctx;
  const description = `${PREPARATION_FAILED}${error.message}`;
  restartPhase(machine, 'CrashLoopBackOff', initializingSinceMs(observed) ?? launchedAtMs(deps, ctx));
  const told = { type: 'Create', state: 'Failed', errorCode: 'VMBeingInitialized', description } as const;
  setFailure(machine, told, deps.clock.now());
}

/** The same again is no write and no Event. */
function showFailure(deps: Deps, ctx: MachineContext, { error }: CallFailure): void {
  const { machine, observed, pass } = ctx;
  storeDriverState(machine, 'initialize', error);
  const description = `${INITIALIZE_FAILED}${error.message}. Initialize VM Instance`;
  // From here on the time to be initialized is recorded, so that a restart does not give it anew.
  restartPhase(machine, 'CrashLoopBackOff', initializingSinceMs(observed) ?? launchedAtMs(deps, ctx));
  setFailure(machine, { type: 'Create', state: 'Failed', errorCode: error.code, description }, deps.clock.now());
  if (machine.status.lastOperation?.description === observed.status?.lastOperation?.description) return;
  pass.event('InitializeFailed', description);
}
