import { NODE_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import { formatDuration } from '../../../apis/duration.ts';
import { isBeingDeleted } from '../../../apis/meta.ts';
import { fromTimestamp } from '../../../clock/clock.ts';
import { next, requeue, stop, type StepResult } from '../../../reconcile/result.ts';
import type { MachineContext, MachineStep } from '../context.ts';
import { isHealthy } from '../node-health.ts';
import { healthTimeoutMsOf, watchedConditionsOf } from '../settings.ts';
import { phaseOf, setOperation } from '../status.ts';
import { becomeFailed, clustersOf } from './fail.ts';

/** When to look again after a live read that contradicts the cache: the watch delivers it soon. */
const CATCH_UP_MS = 1_000;
/** When to look again while others are being replaced; their changes concern other keys. */
const REPLACEMENT_RETRY_MS = 10_000;

/**
 * Fails a machine that was Unknown for its whole health timeout, unless it was told not to. Before that it is looked at live,
 * Machine and Node, and the write holds only for the Machine that was read. Time before we could trust what we see (before
 * our leadership, before an unfreeze) does not count. Of one MachineDeployment only so many are failed at once.
 */
export const healthTimeout: MachineStep = {
  name: 'health-timeout',

  async run(ctx) {
    const { machine, settings, clock, trust, pass } = ctx;
    if (phaseOf(machine) !== 'Unknown' || machine.spec.disableHealthTimeout === true) return next;

    const timeoutMs = healthTimeoutMsOf(machine, settings);
    const sinceMs = fromTimestamp(machine.status.currentStatus?.lastUpdateTime) ?? clock.now();
    const clusters = clustersOf(ctx);
    const unhealthyMs = Math.min(clock.now() - sinceMs, trust.trustedForMs(clusters));
    const leftMs = Math.max(timeoutMs - unhealthyMs, trust.graceLeftMs(clusters));
    if (leftMs > 0) {
      pass.alsoAfter(leftMs, 'the Node to become healthy');
      return next;
    }
    return await replace(ctx, timeoutMs);
  },
};

async function replace(ctx: MachineContext, timeoutMs: number): Promise<StepResult> {
  const { machine, observed, fleet, pass, clock, log } = ctx;
  const grant = fleet.condemn(observed);
  if (grant === undefined) {
    if (ctx.memory.isNews(machine.metadata.uid, 'ReplacementDelayed'))
      pass.event('ReplacementDelayed', 'Others of its MachineDeployment are being replaced; this one waits.');
    return requeue(REPLACEMENT_RETRY_MS, 'other replacements to end');
  }
  // Held until the write has been made and is visible to the next pass.
  pass.hold(grant);

  const doubt = await lastLook(ctx);
  if (doubt !== undefined) return requeue(CATCH_UP_MS, doubt);

  await becomeFailed(ctx);
  const description = `Machine ${machine.metadata.name} health checks failing since last ${formatDuration(timeoutMs)}, changing MachineState to Failed. ${machine.status.lastOperation?.description ?? ''}`;
  setOperation(
    machine,
    { type: machine.status.lastOperation?.type ?? 'HealthCheck', state: 'Failed', description },
    clock.now(),
  );
  pass.event('HealthTimeout', `The Node was not healthy for ${formatDuration(timeoutMs)}.`);
  pass.afterWrite(() => log.warn({}, 'machine failed by health timeout'));
  return stop;
}

/** What speaks against it, read live; undefined when nothing does. */
async function lastLook({
  machine,
  observed,
  nodes,
  settings,
  readMachine,
  signal,
}: MachineContext): Promise<string | undefined> {
  const name = machine.metadata.labels?.[NODE_LABEL] ?? '';
  const [live, node] = await Promise.all([
    readMachine(observed, signal),
    name === '' ? undefined : nodes?.read(name, signal),
  ]);
  if (live === undefined || live.metadata.uid !== observed.metadata.uid || isBeingDeleted(live)) {
    return 'the deletion to be seen';
  }
  if (live.metadata.resourceVersion !== observed.metadata.resourceVersion) return 'the newest version of the machine';
  const conditions = node?.status?.conditions ?? [];
  if (isHealthy(conditions, watchedConditionsOf(machine, settings))) return 'the recovery of the Node to be seen';
  return undefined;
}
