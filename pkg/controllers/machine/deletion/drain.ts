import { hasForceDeletionLabel, nodeNameOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import { DRAIN_SINCE_ANNOTATION, FORCE_DELETION_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import { isBeingDeleted } from '../../../apis/meta.ts';
import type { Node } from '../../../apis/wire.ts';
import { fromTimestamp, MINUTE_MS } from '../../../base/clock/clock.ts';
import { next, requeue, waitFor, type StepResult } from '../../../work/reconcile/result.ts';
import { policyInForce } from '../../machine-facts/deletion-policy.ts';
import type { NodeAccess } from '../../machine-facts/node-access.ts';
import { isInDoubt } from '../../machine-facts/node-owner.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineContext, MachineStep } from '../context.ts';
import { forceAtOf } from '../drain/force.ts';
import type { DrainPlan } from '../drain/plan.ts';
import { DRAIN_TIMEOUT_EXCEEDED, reportProgress } from '../drain/report.ts';
import type { DrainState } from '../drain/drains.ts';
import { NODE_TERMINATING } from '../../machine-facts/node-condition.ts';
import { foreignNode, nodeToDrain } from './nodes.ts';
import { isAt, untilRecorded } from './cursor.ts';

type Deps = Pick<
  Collaborators,
  'clock' | 'settings' | 'machines' | 'namesakes' | 'metrics' | 'cursor' | 'drains' | 'reportedOnce'
>;

const FOREIGN = 'is not known to be that of this Machine, so it is not drained';

/** A Node of which nobody can say whose it is is looked at again so often, apart from when it changes or a Machine of its name goes. */
const RECHECK_MS = MINUTE_MS;

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
    if (nodes === undefined || deps.cursor.isNodeAbandoned(ctx)) return withoutNode(deps, ctx, nodeNameOf(machine));
    const node = await nodeToDrain(deps.machines, ctx, nodes);
    if (node === undefined) return await withoutOwnNode(deps, ctx, nodes);
    return (
      untilRecorded(ctx, 'drain') ?? follow(deps, ctx, await deps.drains.advance(ctx, planOf(deps, ctx, nodes, node)))
    );
  },
});

function withoutNode(
  { drains, cursor }: Deps,
  ctx: MachineContext,
  name: string,
  why = 'does not exist, so there is nothing to drain',
): StepResult {
  drains.end(ctx);
  cursor.advance(ctx, 'delete-vm', name === '' ? '' : `Node ${name} ${why}.`);
  return next;
}

/**
 * Where namespaces share a target cluster, a Node may be there that is another machine's, and one of which nobody can say whose it is: the VM is
 * not deleted under its pods before the drain timeout, unless somebody asks for that.
 */
async function withoutOwnNode(deps: Deps, ctx: MachineContext, nodes: NodeAccess): Promise<StepResult> {
  const { machine, pass } = ctx;
  const name = nodeNameOf(machine);
  const isShared = deps.namesakes !== undefined;
  const foreign = isShared ? await foreignNode(ctx, nodes) : nodes.get(name);
  if (foreign === undefined) return withoutNode(deps, ctx, name);
  if (!isShared) return withoutNode(deps, ctx, name, FOREIGN);
  const plan = planOf(deps, ctx, nodes, foreign);
  const isForcedByNow = plan.forcedBy !== undefined || (forceAtOf(deps, ctx, plan) ?? Infinity) <= deps.clock.now();
  if (isForcedByNow || !isInDoubt(foreign, machine, deps.machines)) return withoutNode(deps, ctx, name, FOREIGN);

  deps.drains.end(ctx);
  const text = `Node ${name} may be that of a Machine of the same name in another namespace, because it does not show the provider ID of either. Waiting until it does, the other Machine is deleted, or ${plan.forceRule === 'usual' ? 'the drain timeout expires' : 'the deletion policy is changed'}; label ${FORCE_DELETION_LABEL}=True deletes the VM without a drain at once.`;
  if (deps.cursor.stay(ctx, 'drain', text)) pass.event('DrainFailed', text);
  return requeue(RECHECK_MS, 'the Node to show whose it is');
}

function planOf(deps: Deps, ctx: MachineContext, nodes: NodeAccess, node: Node): DrainPlan {
  const { machine, signal } = ctx;
  const { name, deletionTimestamp, annotations } = machine.metadata;
  return {
    purpose: 'deletion',
    nodes,
    node,
    barrier: 'deletion-cordon',
    nodeCondition: {
      ...NODE_TERMINATING,
      status: 'True',
      message: `Machine ${name} is being deleted.`,
    },
    startMs:
      fromTimestamp(annotations?.[DRAIN_SINCE_ANNOTATION]) ?? fromTimestamp(deletionTimestamp) ?? deps.clock.now(),
    forcedBy: hasForceDeletionLabel(ctx.machine) ? `the Machine has label ${FORCE_DELETION_LABEL}` : undefined,
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
