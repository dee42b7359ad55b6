import type { Node } from '../../../apis/wire.ts';
import { fromTimestamp, MINUTE_MS } from '../../../base/clock/clock.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineContext } from '../context.ts';
import { clustersOf } from '../failure/fail.ts';
import { drainTimeoutMsOf } from '../../machine-facts/settings.ts';
import { isBreaking } from '../../machine-facts/node-health.ts';
import type { DrainPlan, ForceReason } from './plan.ts';

/** A Node that is broken for longer cannot end its pods by itself. Fixed, as in the original. */
const BROKEN_AFTER_MS = 5 * MINUTE_MS;

export type DeadlineDeps = Pick<Collaborators, 'clock' | 'settings'>;

/** When pods that are left are deleted, or, where nothing forces the drain, when it counts as failed. Wall time. */
export function deadlineOf(
  { settings }: DeadlineDeps,
  { machine }: MachineContext,
  { startMs, notBeforeMs = 0 }: DrainPlan,
): number {
  return Math.max(startMs + drainTimeoutMsOf(machine, settings), notBeforeMs);
}

/**
 * Until when pods are evicted although the time of their drain is over: it passed while a cluster was out of reach, or nobody led, and no pod
 * was asked. As long as the grace after that, and no longer than the drain timeout; undefined when none of its time was lost. Wall time.
 */
export function graceEndOf(
  { clock, settings, trust }: DeadlineDeps & Pick<Collaborators, 'trust'>,
  ctx: MachineContext,
  { startMs }: DrainPlan,
): number | undefined {
  const clusters = clustersOf(ctx);
  const graceLeftMs = trust.graceLeftMs(clusters);
  const trustedMs = trust.trustedForMs(clusters);
  const timeoutMs = drainTimeoutMsOf(ctx.machine, settings);
  const leftMs = Math.min(graceLeftMs, timeoutMs - trustedMs);
  const isLost = startMs < clock.now() - trustedMs && startMs + timeoutMs < clock.now() + leftMs;
  return leftMs > 0 && isLost ? clock.now() + leftMs : undefined;
}

/** When pods that are left are deleted; undefined when they never are. Wall time. */
export function forceAtOf(deps: DeadlineDeps, ctx: MachineContext, plan: DrainPlan): number | undefined {
  return plan.forceRule === 'usual' ? deadlineOf(deps, ctx, plan) : undefined;
}

export type ForceDeps = DeadlineDeps & Pick<Collaborators, 'trust' | 'readMachine' | 'brokenNodes'>;

/**
 * Why pods are to be deleted instead of evicted; undefined when they are not. That a Node is broken is believed only after a
 * live look at Machine and Node, and not in the grace after an outage, when all Nodes look broken.
 */
export async function forceReasonOf(
  deps: ForceDeps,
  ctx: MachineContext,
  plan: DrainPlan,
): Promise<ForceReason | undefined> {
  const { pass } = ctx;
  if (plan.forcedBy !== undefined) return 'label';
  if (plan.forceRule === 'request') return undefined;
  if (plan.forceRule === 'usual') {
    const leftMs = deadlineOf(deps, ctx, plan) - deps.clock.now();
    if (leftMs <= 0) return 'timeout';
    pass.alsoAfter(leftMs, 'the drain timeout');
  }

  const unhealthy = unhealthyCondition(deps, ctx, plan.node);
  if (unhealthy === undefined) return undefined;
  const graceMs = Math.max(unhealthy.forceAfterMs, deps.trust.graceLeftMs(clustersOf(ctx)));
  if (graceMs <= 0) return (await isStillUnhealthy(deps, ctx, plan)) ? unhealthy.reason : undefined;
  pass.alsoAfter(graceMs, 'the Node to recover');
  return undefined;
}

export interface UnhealthyCondition {
  readonly reason: ForceReason;
  /** In how many ms it has lasted too long; negative: it has. */
  readonly forceAfterMs: number;
}

/** The condition that will force the drain first, or does already. */
function unhealthyCondition(
  { clock, brokenNodes }: Pick<ForceDeps, 'clock' | 'brokenNodes'>,
  { machine }: MachineContext,
  node: Node,
): UnhealthyCondition | undefined {
  const nowMs = clock.now();
  const found = (node.status?.conditions ?? []).filter(isBreaking).map(({ type, lastTransitionTime }) => {
    const saidMs = nowMs - (fromTimestamp(lastTransitionTime) ?? nowMs);
    const forMs = Math.min(saidMs, brokenNodes.brokenForMs(machine, node, type));
    const reason: ForceReason = type === 'Ready' ? 'not-ready' : 'readonly-filesystem';
    return { reason, forceAfterMs: BROKEN_AFTER_MS - forMs };
  });
  return found.toSorted((a, b) => a.forceAfterMs - b.forceAfterMs)[0];
}

async function isStillUnhealthy(deps: ForceDeps, ctx: MachineContext, plan: DrainPlan): Promise<boolean> {
  const { observed, signal } = ctx;
  const { nodes, node, isWanted } = plan;
  const [machine, live] = await Promise.all([
    deps.readMachine(observed, signal),
    nodes.read(node.metadata.name, signal),
  ]);
  if (machine?.metadata.uid !== observed.metadata.uid || !isWanted(machine)) return false;
  if (live?.metadata.uid !== node.metadata.uid) return false;
  return (unhealthyCondition(deps, ctx, live)?.forceAfterMs ?? 1) <= 0;
}

export function describeForce(reason: ForceReason, { forcedBy = '' }: Pick<DrainPlan, 'forcedBy'>): string {
  switch (reason) {
    case 'label':
      return forcedBy;
    case 'timeout':
      return 'the drain timeout expired';
    case 'not-ready':
      return 'the Node was not ready for 5 min';
    case 'readonly-filesystem':
      return 'the Node had a read-only file system for 5 min';
  }
}
