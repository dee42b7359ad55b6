import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { Node } from '../../../apis/wire.ts';
import { MINUTE_MS } from '../../../base/clock/clock.ts';
import type { DrainRequest } from '../../../drain/drain.ts';
import type { PodRules } from '../../machine-facts/pod-rules.ts';
import type { NodeAccess } from '../../machine-facts/node-access.ts';
import { drainTimeoutMsOf, maxEvictRetriesOf, type MachineSettings } from '../../machine-facts/settings.ts';
import type { Collaborators } from '../collaborators.ts';
import { isUnresolved, type ResolveClass } from '../calls/class-resolution.ts';
import type { MachineContext } from '../context.ts';
import type { DrainPurpose, ForceReason, ForceRule } from './record.ts';

const FORCED_MS = MINUTE_MS;

/** What is to be drained, for what, and what follows for the pods. */
export interface DrainPlan extends Pick<DrainRequest, 'barrier' | 'nodeCondition'> {
  readonly purpose: DrainPurpose;
  /** Those of its cluster. */
  readonly nodes: NodeAccess;
  readonly node: Node;
  /** Wall time from which the drain timeout counts; persisted somewhere, so that a restart does not give it anew. */
  readonly startMs: number;
  /** In words why pods are to be deleted instead of evicted at once; undefined unless somebody asks for that. */
  readonly forcedBy: string | undefined;
  /**
   * What may force it besides that: `usual`, its timeout and a broken Node; `broken-node`, that alone; `request`, nothing: who asks for it
   * waits as long as it takes.
   */
  readonly forceRule: ForceRule;
  /** Whether a live Machine is (still) one whose Node is to be drained for this purpose. */
  readonly isWanted: (live: Machine) => boolean;
  /** Asked right before the drain begins, when the cache alone is no proof; the pass ends when the answer is no. */
  readonly mayBegin?: () => Promise<boolean>;
  /** What a forced drain that fails is followed by: the rest goes on without it, or it is tried again. */
  readonly onForcedFailure: 'go-on' | 'retry';
}

export type DeadlineDeps = Pick<Collaborators, 'clock' | 'settings'>;

/** When pods that are left are deleted, or, where nothing forces the drain, when it counts as failed. Wall time. */
export function deadlineOf({ settings }: DeadlineDeps, { machine }: MachineContext, { startMs }: DrainPlan): number {
  return startMs + drainTimeoutMsOf(machine, settings);
}

/** When pods that are left are deleted; undefined when they never are. Wall time. */
export function forceAtOf(deps: DeadlineDeps, ctx: MachineContext, plan: DrainPlan): number | undefined {
  return plan.forceRule === 'usual' ? deadlineOf(deps, ctx, plan) : undefined;
}

/** When an attempt to drain ends: at the deadline, and one that is made after it although nothing forces it has the whole time again. */
function endOf(deps: DeadlineDeps, ctx: MachineContext, plan: DrainPlan): number {
  const deadlineMs = deadlineOf(deps, ctx, plan);
  const nowMs = deps.clock.now();
  const isLate = plan.forceRule !== 'usual' && deadlineMs <= nowMs;
  return isLate ? nowMs + Math.max(drainTimeoutMsOf(ctx.machine, deps.settings), MINUTE_MS) : deadlineMs;
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
