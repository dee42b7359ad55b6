import { FORCE_DELETION_LABEL, NODE_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import { isBeingDeleted } from '../../../apis/meta.ts';
import type { Node } from '../../../apis/wire.ts';
import { fromTimestamp } from '../../../clock/clock.ts';
import { next, waitFor, type StepResult } from '../../../reconcile/result.ts';
import type { Target } from '../../../targets/targets.ts';
import type { MachineContext, MachineStep } from '../context.ts';
import type { DrainPlan } from '../drain/plan.ts';
import { reportProgress } from '../drain/report.ts';
import { advanceDrain, endDrain, type DrainState } from '../drain/session.ts';
import type { NodeAccess } from '../../machines/node-access.ts';
import { goesWith } from '../../machines/node-owner.ts';
import { advance, isAt, isForced, isNodeAbandoned, stay, untilRecorded } from './cursor.ts';
import { isStillOurs } from './still-ours.ts';

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
export const drain: MachineStep = {
  name: 'drain',

  async run(ctx) {
    if (!isAt(ctx, 'drain')) return next;
    const { target, nodes, machine } = ctx;
    const node = nodes === undefined || isNodeAbandoned(ctx) ? undefined : await nodeOf(ctx, nodes);
    if (target === undefined || node === undefined) {
      endDrain(ctx);
      const name = machine.metadata.labels?.[NODE_LABEL] ?? '';
      advance(ctx, 'delete-vm', name === '' ? '' : `Node ${name} is not there, so nothing is drained.`);
      return next;
    }
    return untilRecorded(ctx, 'drain') ?? follow(ctx, await advanceDrain(ctx, planOf(ctx, target, node)));
  },
};

/** A Node that the cache does not know is looked for live: no pod is to be killed because a watch is late. */
async function nodeOf({ machine, machines, signal }: MachineContext, nodes: NodeAccess): Promise<Node | undefined> {
  const known = nodes.ofMachine(machine);
  const name = machine.metadata.labels?.[NODE_LABEL] ?? '';
  const cached = known.find((node) => node.metadata.name === name) ?? known[0];
  if (cached !== undefined || name === '' || nodes.get(name) !== undefined) return cached;
  const live = await nodes.read(name, signal);
  return live !== undefined && goesWith(live, machine, machines) ? live : undefined;
}

function planOf(ctx: MachineContext, target: Target, node: Node): DrainPlan {
  const { machine, memory, clock, signal } = ctx;
  const { name, uid, deletionTimestamp } = machine.metadata;
  return {
    purpose: 'deletion',
    target,
    node,
    barrier: 'cordon',
    nodeCondition: {
      type: 'Terminating',
      status: 'True',
      reason: 'ScaleDown',
      message: `Machine ${name} is being deleted.`,
    },
    startMs: fromTimestamp(deletionTimestamp) ?? clock.now(),
    forcedBy: isForced(ctx) ? `the Machine carries label ${FORCE_DELETION_LABEL}` : undefined,
    isWanted: isBeingDeleted,
    // What was written for it a moment ago was as good as a look; a deletion that was taken over has no such proof.
    mayBegin: async () => memory.advanced.has(uid) || (await isStillOurs(ctx, signal)),
    onForcedFailure: 'go-on',
  };
}

function follow(ctx: MachineContext, state: DrainState): StepResult {
  const { machine, metrics, pass } = ctx;
  switch (state.kind) {
    case 'running':
      reportProgress(ctx, 'Delete', state);
      return waitFor(state.waitingFor);
    case 'failed':
      stay(ctx, 'drain', state.text);
      if (state.isNews) pass.event('DrainFailed', state.text);
      return waitFor('the next attempt to drain');
    case 'node-gone':
      advance(ctx, 'delete-vm', 'The Node is gone, so there is nothing to drain.');
      break;
    case 'left-pods':
      pass.event('DrainFailed', `The forced drain failed. ${state.text}`);
      advance(ctx, 'detach-volumes', `Force Drain failed. ${state.text}`);
      break;
    case 'drained': {
      const { isForced: byForce, tookMs } = state;
      pass.event('Drained', `The Node was drained ${byForce ? 'by force ' : ''}in ${Math.round(tookMs / 1_000)} s.`);
      pass.afterWrite(() => metrics.drained(machine, tookMs));
      advance(ctx, byForce ? 'detach-volumes' : 'delete-vm', byForce ? 'Force Drain successful.' : 'Drain successful.');
      break;
    }
  }
  pass.afterWrite(() => endDrain(ctx));
  return next;
}
