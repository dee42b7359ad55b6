import { phaseOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { OperationType } from '../../../apis/machine/v1alpha1/phases.ts';
import { formatDuration } from '../../../apis/duration.ts';
import { fromTimestamp, toTimestamp } from '../../../base/clock/clock.ts';
import { next, requeue, stop, type StepResult } from '../../../work/reconcile/result.ts';
import { hold, withHold } from '../../machine-facts/replacement-hold.ts';
import { isMaintenanceRequested } from '../../machine-facts/maintenance.ts';
import { isHealthy } from '../../machine-facts/node-health.ts';
import { healthTimeoutMsOf, watchedConditionsOf } from '../../machine-facts/settings.ts';
import { setOperation } from '../../machine-facts/status.ts';
import { HEALTH_LIMITED } from '../../machine-facts/zones.ts';
import { paceFactsOf, type TurnDeps } from '../../machine-facts/replacement-turn.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineContext, MachineStep } from '../context.ts';
import { isUpdateSuccessful } from '../in-place/outcome.ts';
import { isSuspended } from '../node/suspended.ts';
import { becomeFailed, clustersOf, type FailDeps } from '../failure/fail.ts';
import { endHold, reportHold } from '../failure/held-back.ts';
import { CATCH_UP_MS, isUnseen, liveCheck, type LiveCheckDeps, UNSEEN_NODE } from '../failure/live-check.ts';
import { nodesMissing, type NotYet, paced, takeGrant, zoneStopped } from '../failure/turn.ts';

type Deps = FailDeps &
  LiveCheckDeps &
  TurnDeps &
  Pick<Collaborators, 'machines' | 'settings' | 'trust' | 'budget' | 'pace' | 'nodesInTarget'>;

/**
 * Fails a machine that was Unknown, or not well after an update in place, for its whole health timeout, unless it was told not
 * to, or is in maintenance. Before that it is looked at live, Machine and Node, and the write holds only for the Machine that was read. Time before
 * we could trust what we see (before our leadership, during an outage) does not count. Of one MachineDeployment only so many
 * are failed at once, of several that are unhealthy only so many within one health timeout, none of a zone of which half
 * of the machines became unhealthy together, and none whose Node is missing while those of all others are. A machine that is held back says why,
 * and goes through the other steps meanwhile: that may last for ever, and what is asked of it is done all the same.
 */
export const healthTimeout = (deps: Deps): MachineStep => ({
  name: 'health-timeout',

  async run(ctx) {
    const time = healthTime(deps, ctx);
    if (time === undefined) {
      // Those of other phases are not held here.
      if (HEALTH_LIMITED.has(phaseOf(ctx.machine))) endHold(deps, ctx);
      return next;
    }
    const { sinceMs, timeoutMs, leftMs } = time;
    const nowMs = deps.clock.now();
    // Of a process whose clock was ahead, or of ours before it was set back: all that is known is that it is unhealthy now.
    if (sinceMs > nowMs)
      ctx.machine.status.currentStatus = { ...ctx.machine.status.currentStatus, lastUpdateTime: toTimestamp(nowMs) };
    if (leftMs <= 0) return await replace(deps, ctx, timeoutMs);

    // Its time has passed, but not under our eyes.
    if (nowMs - sinceMs >= timeoutMs) reportHold(deps, ctx, hold('grace'));
    else endHold(deps, ctx);
    ctx.pass.alsoAfter(leftMs, 'the Node to become healthy');
    return next;
  },
});

/** How long a machine may still be unhealthy; undefined when its health has no limit. */
export function healthTime(
  deps: Pick<Deps, 'settings' | 'clock' | 'trust' | 'machines'>,
  ctx: Pick<MachineContext, 'machine' | 'nodes'>,
): { readonly sinceMs: number; readonly timeoutMs: number; readonly leftMs: number } | undefined {
  const { settings, clock, trust } = deps;
  const { machine } = ctx;
  if (!HEALTH_LIMITED.has(phaseOf(machine)) || machine.spec.disableHealthTimeout === true) return undefined;
  if (isSuspended(deps, ctx)) return undefined;
  const timeoutMs = healthTimeoutMsOf(machine, settings);
  const sinceMs = fromTimestamp(machine.status.currentStatus?.lastUpdateTime) ?? clock.now();
  const clusters = clustersOf(ctx);
  const unhealthyMs = Math.min(Math.max(0, clock.now() - sinceMs), trust.trustedForMs(clusters));
  return { sinceMs, timeoutMs, leftMs: Math.max(timeoutMs - unhealthyMs, trust.graceLeftMs(clusters)) };
}

async function replace(deps: Deps, ctx: MachineContext, timeoutMs: number): Promise<StepResult> {
  const { budget, pace, clock } = deps;
  const { machine, observed, pass, log } = ctx;
  const stopped = nodesMissing(deps, observed) ?? zoneStopped(deps, observed);
  if (stopped !== undefined) return heldBack(deps, ctx, stopped);
  const pool = budget.poolOf(observed);
  const facts = pool && paceFactsOf(deps, observed, pool);
  const notYet = paced(deps, facts) ?? takeGrant(deps, ctx);
  if (notYet !== undefined) return heldBack(deps, ctx, notYet);

  const doubt = await doubtOf(deps, ctx);
  if (doubt !== undefined) return requeue(CATCH_UP_MS, doubt);
  // Another machine of the zone may have begun during the look.
  const tooLate = paced(deps, facts);
  if (tooLate !== undefined) return heldBack(deps, ctx, tooLate);
  if (facts !== undefined) pace.begin(facts);

  const type = failedOperationOf(machine);
  await becomeFailed(deps, ctx, 'health-timeout');
  const description = `Machine ${machine.metadata.name} health checks failing since last ${formatDuration(timeoutMs)}, changing MachineState to Failed. ${withHold(machine.status.lastOperation?.description ?? '', undefined)}`;
  setOperation(machine, { type, state: 'Failed', description }, clock.now());
  const what = type === 'InPlaceUpdate' ? 'updated despite the failure' : 'healthy';
  pass.event('HealthTimeout', `The Node was not ${what} for ${formatDuration(timeoutMs)}.`);
  pass.afterWrite(() => log.warn({}, 'machine failed by health timeout'));
  return stop;
}

function heldBack(deps: Deps, ctx: MachineContext, { held, afterMs, waitingFor }: NotYet): StepResult {
  reportHold(deps, ctx, held);
  ctx.pass.alsoAfter(afterMs, waitingFor);
  return next;
}

/** What speaks against it, read live; undefined when nothing does. */
async function doubtOf(deps: Deps, ctx: MachineContext): Promise<string | undefined> {
  const { machine } = ctx;
  const look = await liveCheck(deps, ctx);
  if (look.doubt !== undefined) return look.doubt;
  const { node } = look;
  if (isMaintenanceRequested(machine, node)) return 'the maintenance request to be recorded';
  if (phaseOf(machine) === 'InPlaceUpdateFailed') {
    if (node !== undefined && isUpdateSuccessful(node)) return 'the success of the update to be recorded';
  } else if (isHealthy(node?.status?.conditions ?? [], watchedConditionsOf(machine, deps.settings))) {
    return 'the recovery of the Node to be recorded';
  }
  // Whether it recovered in between was not seen.
  return isUnseen(ctx, node) ? UNSEEN_NODE : undefined;
}

/** What has failed: an update that had succeeded did not, the Node's health did. */
function failedOperationOf(machine: Machine): OperationType {
  const { type = 'HealthCheck', state } = machine.status?.lastOperation ?? {};
  return type === 'InPlaceUpdate' && state === 'Successful' ? 'HealthCheck' : type;
}
