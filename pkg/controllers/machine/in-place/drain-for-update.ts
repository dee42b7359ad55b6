import { phaseOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import { CANDIDATE_FOR_UPDATE_LABEL, SELECTED_FOR_UPDATE_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import { isBeingDeleted } from '../../../apis/meta.ts';
import type { Node } from '../../../apis/wire.ts';
import { fromTimestamp } from '../../../clock/clock.ts';
import { next } from '../../../reconcile/result.ts';
import { describeStage } from '../../machines/deletion-stage.ts';
import type { NodeAccess } from '../../machines/node-access.ts';
import { beginPhase, setFailure, setOperation } from '../../machines/status.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineContext, MachineStep } from '../context.ts';
import { reportProgress } from '../drain/report.ts';
import type { DrainState } from '../drain/session.ts';
import { namedNode } from '../node/named-node.ts';
import { nodeConditionOf, setCondition } from '../../machines/node-condition.ts';
import { IN_PLACE_UPDATE, inPlaceCondition, inPlaceFacts, nextReason, type InPlaceFacts } from './reason.ts';

/** Phases in which a machine is taken for an update: one that does not work yet, or is given up, is not. */
const UPDATABLE: ReadonlySet<string> = new Set([
  'Running',
  'Unknown',
  'InPlaceUpdating',
  'InPlaceUpdateFailed',
  'InPlaceUpdateSuccessful',
]);
/** The original's words. */
const READY_TEXT = 'Node drain successful. Node is ready for update';

type Deps = Pick<Collaborators, 'drains' | 'reportedOnce' | 'clock' | 'machines'>;

/**
 * Brings an update in place forward, one change a pass: the Node's labels are told as condition `InPlaceUpdate`, a selected Node is
 * drained, the machine becomes InPlaceUpdating, and then the condition says that the Node is ready. The phase is recorded before
 * the condition says that the drain is over, so that the timeout counts whenever somebody may be updating the Node. Who gives the
 * Node back to its pods afterwards is the MachineDeployment controller. Never ends the pass.
 *
 * | condition says     | what happens                                            | then it says    |
 * |--------------------|---------------------------------------------------------|-----------------|
 * | SelectedForUpdate  | cordon and drain; the machine becomes InPlaceUpdating   | DrainSuccessful |
 * | DrainSuccessful    |                                                         | ReadyForUpdate  |
 * | ReadyForUpdate     | the agent on the Node, or a person, updates and labels it |                 |
 */
export const inPlaceProgress = (deps: Deps): MachineStep => ({
  name: 'in-place-progress',

  async run(ctx) {
    const { machine, observed, nodes } = ctx;
    const node = namedNode(ctx, deps.machines);
    const phase = phaseOf(machine);
    // What the Node is told follows from a phase that was recorded: the write of this pass starts the next one.
    if (nodes === undefined || typeof node !== 'object' || isBeingDeleted(node)) return next;
    if (phase === '' || phaseOf(observed) !== phase) return next;

    const facts = inPlaceFacts(node, phase);
    if (facts.reason !== 'SelectedForUpdate' || !UPDATABLE.has(phase)) deps.drains.end(ctx, 'in-place-update');
    reportIgnoredSelection(deps, ctx, node, facts);
    const reason = nextReason(facts);
    if (reason !== undefined) await setCondition(deps, ctx, nodes, node, inPlaceCondition(node, reason), true);
    else if (UPDATABLE.has(phase)) await act(deps, ctx, nodes, node, facts.reason, facts.result !== undefined);
    return next;
  },
});

/** Anyone who selects a Node by hand and forgets the other label waits for nothing. */
function reportIgnoredSelection(
  deps: Deps,
  { machine, pass }: MachineContext,
  node: Node,
  { isCandidate, isSelected }: InPlaceFacts,
): void {
  if (!deps.reportedOnce.becomes(machine.metadata.uid, 'NotACandidate', isSelected && !isCandidate)) return;
  pass.event(
    'NotACandidate',
    `Node ${node.metadata.name} has label ${SELECTED_FOR_UPDATE_LABEL}, which has no effect without ` +
      `${CANDIDATE_FOR_UPDATE_LABEL}: set that label to true as well to update the Node in place, or remove both.`,
  );
}

async function act(
  deps: Deps,
  ctx: MachineContext,
  nodes: NodeAccess,
  node: Node,
  reason: string | undefined,
  hasResult: boolean,
): Promise<void> {
  const { machine } = ctx;
  if (reason === 'SelectedForUpdate') return await empty(deps, ctx, nodes, node);
  if (reason !== 'DrainSuccessful' && reason !== 'ReadyForUpdate') return;

  // A phase that was lost when the condition was written is made up for: without it no timeout would count.
  const phase = phaseOf(machine);
  if ((phase === 'Running' || phase === 'Unknown') && !hasResult) beginUpdate(deps, ctx);
  else if (reason === 'DrainSuccessful' && phase === 'InPlaceUpdating')
    await setCondition(deps, ctx, nodes, node, inPlaceCondition(node, 'ReadyForUpdate'), true);
}

async function empty(deps: Deps, ctx: MachineContext, nodes: NodeAccess, node: Node): Promise<void> {
  const { machine } = ctx;
  const startMs = fromTimestamp(nodeConditionOf(node, IN_PLACE_UPDATE)?.lastTransitionTime) ?? deps.clock.now();
  const plan = { purpose: 'in-place-update', nodes, node, barrier: 'cordon', startMs, forceRule: 'usual' } as const;
  const state = await deps.drains.advanceKept(ctx, plan);
  if (state.kind !== 'drained') return show(deps, ctx, state);

  if (phaseOf(machine) !== 'InPlaceUpdating') return beginUpdate(deps, ctx);
  await setCondition(deps, ctx, nodes, node, inPlaceCondition(node, 'DrainSuccessful'), true);
  deps.drains.end(ctx, 'in-place-update');
}

function beginUpdate({ clock }: Deps, { machine, pass, log }: MachineContext): void {
  beginPhase(machine, 'InPlaceUpdating', clock.now());
  setOperation(machine, { type: 'InPlaceUpdate', state: 'Processing', description: READY_TEXT }, clock.now());
  pass.event('UpdateReady', 'The Node was drained and can be updated in place.');
  pass.afterWrite(() => log.info({}, 'machine ready for in-place update'));
}

/** Tells on the Machine how the drain stands, at the pace of any drain. */
function show(deps: Deps, ctx: MachineContext, state: Exclude<DrainState, { kind: 'drained' | 'left-pods' }>): void {
  const { machine, pass } = ctx;
  if (state.kind === 'failed') {
    const description = describeStage('drain', state.text);
    setFailure(machine, { type: 'DrainNode', state: 'Processing', description }, deps.clock.now());
    if (state.isNews) pass.event('DrainFailed', state.text);
    return;
  }
  if (state.kind === 'node-gone') {
    // A Node of the same name may join; it says by itself what is to be done with it.
    deps.drains.end(ctx, 'in-place-update');
    return;
  }
  const { record, deadlineMs } = state;
  if (record === undefined) return;
  if (deps.reportedOnce.isNew(machine.metadata.uid, `UpdateSelected ${deadlineMs}`)) {
    pass.event('UpdateSelected', 'The Node was selected for an in-place update. Draining it first.');
  }
  // Of a machine that is not well the last operation tells that.
  if (phaseOf(machine) === 'Running') reportProgress(deps, ctx, 'DrainNode', state);
}
