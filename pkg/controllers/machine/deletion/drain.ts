import { nodeNameOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import { DRAIN_SINCE_ANNOTATION, FORCE_DELETION_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import { isBeingDeleted } from '../../../apis/meta.ts';
import type { Node } from '../../../apis/wire.ts';
import { fromTimestamp } from '../../../base/clock/clock.ts';
import { next, waitFor, type StepResult } from '../../../work/reconcile/result.ts';
import { policyInForce } from '../../machine-facts/deletion-policy.ts';
import type { NodeAccess } from '../../machine-facts/node-access.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineContext, MachineStep } from '../context.ts';
import type { DrainPlan } from '../drain/plan.ts';
import { DRAIN_TIMEOUT_EXCEEDED, reportProgress } from '../drain/report.ts';
import type { DrainState } from '../drain/drains.ts';
import { nodeToDrain } from './nodes.ts';
import { isAt, isForced, untilRecorded } from './cursor.ts';

type Deps = Pick<Collaborators, 'clock' | 'machines' | 'metrics' | 'cursor' | 'drains' | 'reportedOnce'>;

/**
 * Empties the Node. What a forced drain leaves behind does not stop the deletion.
 *
 * | drain  | ended                     | next stage                |
 * |--------|---------------------------|---------------------------|
 * | any    | Node gone                 | delete-vm                 |
 * | normal | drained                   | delete-vm                 |
 * | normal | pods left, or an error    | drain, tried again        |
 * | forced | drained, pods left, error | detach-volumes            |
 */
export const drain = (deps: Deps): MachineStep => ({
  name: 'drain',

  async run(ctx) {
    if (!isAt(ctx, 'drain')) return next;
    const { nodes, machine } = ctx;
    const node =
      nodes === undefined || deps.cursor.isNodeAbandoned(ctx)
        ? undefined
        : await nodeToDrain(deps.machines, ctx, nodes);
    if (nodes === undefined || node === undefined) {
      deps.drains.end(ctx);
      const name = nodeNameOf(machine);
      deps.cursor.advance(
        ctx,
        'delete-vm',
        name === '' ? '' : `Node ${name} does not exist, so there is nothing to drain.`,
      );
      return next;
    }
    return (
      untilRecorded(ctx, 'drain') ?? follow(deps, ctx, await deps.drains.advance(ctx, planOf(deps, ctx, nodes, node)))
    );
  },
});

function planOf(deps: Deps, ctx: MachineContext, nodes: NodeAccess, node: Node): DrainPlan {
  const { machine, signal } = ctx;
  const { name, deletionTimestamp, annotations } = machine.metadata;
  return {
    purpose: 'deletion',
    nodes,
    node,
    barrier: 'cordon',
    nodeCondition: {
      type: 'Terminating',
      status: 'True',
      reason: 'ScaleDown',
      message: `Machine ${name} is being deleted.`,
    },
    startMs:
      fromTimestamp(annotations?.[DRAIN_SINCE_ANNOTATION]) ?? fromTimestamp(deletionTimestamp) ?? deps.clock.now(),
    forcedBy: isForced(ctx) ? `the Machine has label ${FORCE_DELETION_LABEL}` : undefined,
    forceRule: policyInForce(machine) === 'graceful' ? 'request' : 'usual',
    isWanted: isBeingDeleted,
    mayBegin: () => deps.cursor.isStillOurs(ctx, signal),
    onForcedFailure: 'go-on',
  };
}

function follow(deps: Deps, ctx: MachineContext, state: DrainState): StepResult {
  const { machine, pass } = ctx;
  switch (state.kind) {
    case 'running':
      reportProgress(deps, ctx, 'Delete', state);
      if (state.isLate && deps.reportedOnce.isNew(machine.metadata.uid, DRAIN_TIMEOUT_EXCEEDED))
        pass.event('DrainFailed', DRAIN_TIMEOUT_EXCEEDED);
      return waitFor(state.waitingFor);
    case 'failed':
      deps.cursor.stay(ctx, 'drain', state.text);
      if (state.isNews) pass.event('DrainFailed', state.text);
      return waitFor('the next drain retry');
    case 'node-gone':
      deps.cursor.advance(ctx, 'delete-vm', 'The Node no longer exists, so there is nothing to drain.');
      break;
    case 'left-pods':
      pass.event('DrainFailed', `The forced drain failed. ${state.text}`);
      deps.cursor.advance(ctx, 'detach-volumes', `Force Drain failed. ${state.text}`);
      break;
    case 'drained': {
      const { isForced: byForce, tookMs } = state;
      pass.event('Drained', `The Node was drained ${byForce ? 'by force ' : ''}in ${Math.round(tookMs / 1_000)} s.`);
      pass.afterWrite(() => deps.metrics.drained(machine, tookMs, byForce));
      deps.cursor.advance(
        ctx,
        byForce ? 'detach-volumes' : 'delete-vm',
        byForce ? 'Force Drain successful.' : 'Drain successful.',
      );
      break;
    }
  }
  pass.afterWrite(() => deps.drains.end(ctx));
  return next;
}
