import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { MINUTE_MS } from '../../../base/clock/clock.ts';
import type { DrainRequest } from '../../../drain/drain.ts';
import type { PodRules } from '../../machine-facts/pod-rules.ts';
import { drainTimeoutMsOf, maxEvictRetriesOf, type MachineSettings } from '../../machine-facts/settings.ts';
import { isUnresolved, type ResolveClass } from '../calls/class-resolution.ts';
import type { MachineContext } from '../context.ts';
import { deadlineOf, type DeadlineDeps } from './force.ts';
import type { DrainPlan, ForceReason } from './plan.ts';

const FORCED_MS = MINUTE_MS;

/** When an attempt to drain ends: at the deadline, and one that is made after it although nothing forces it has the whole time again. */
function endOf(deps: DeadlineDeps, ctx: MachineContext, plan: DrainPlan): number {
  const deadlineMs = deadlineOf(deps, ctx, plan);
  const nowMs = deps.clock.now();
  const isLate = plan.forceRule !== 'usual' && deadlineMs <= nowMs;
  return isLate ? nowMs + Math.max(drainTimeoutMsOf(ctx.machine, deps.settings), MINUTE_MS) : deadlineMs;
}

export function requestOf(
  deps: DeadlineDeps & { readonly resolveClass: ResolveClass; readonly rules?: Pick<PodRules, 'of'> | undefined },
  ctx: MachineContext,
  plan: DrainPlan,
  force: ForceReason | undefined,
): DrainRequest {
  const { settings, clock, rules } = deps;
  const { machine } = ctx;
  const { nodes, node, barrier, nodeCondition } = plan;
  return {
    target: nodes.target,
    nodeName: node.metadata.name,
    nodeUID: node.metadata.uid,
    barrier,
    ...(nodeCondition !== undefined && { nodeCondition }),
    ...(rules !== undefined && {
      rules: (signal: AbortSignal) =>
        rules.of(
          { namespace: machine.metadata.namespace, labels: machine.metadata.labels, clusterLabels: undefined },
          nodes.target,
          signal,
        ),
    }),
    force: force !== undefined,
    deadlineMs: force === undefined ? endOf(deps, ctx, plan) : clock.now() + FORCED_MS,
    maxEvictRetries: force === undefined ? retriesOf(plan, machine, settings) : 1,
    pvDetachTimeoutMs: settings.pvDetachTimeoutMs,
    pvReattachTimeoutMs: settings.pvReattachTimeoutMs,
    volumeIDOf: async (spec: unknown, signal: AbortSignal) => {
      const resolved = await deps.resolveClass(machine, signal);
      return isUnresolved(resolved) ? undefined : (await resolved.driver.volumeIDs([spec], signal))[0];
    },
  };
}

/** A pod is deleted after its last retry, which is force too. */
function retriesOf({ forceRule }: DrainPlan, machine: Machine, settings: MachineSettings): number {
  return forceRule === 'usual' ? maxEvictRetriesOf(machine, settings) : Number.POSITIVE_INFINITY;
}
