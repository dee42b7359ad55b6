import { phaseOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import {
  CANDIDATE_FOR_UPDATE_LABEL,
  FORCE_DRAIN_LABEL,
  SELECTED_FOR_UPDATE_LABEL,
} from '../../../apis/machine/v1alpha1/labels.ts';
import { isBeingDeleted } from '../../../apis/meta.ts';
import type { Node } from '../../../apis/wire.ts';
import { MINUTE_MS } from '../../../base/clock/clock.ts';
import { next } from '../../../work/reconcile/result.ts';
import { describeStage } from '../../machine-facts/deletion-stage.ts';
import { beginPhase, setFailure, setOperation } from '../../machine-facts/status.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineContext, MachineStep } from '../context.ts';
import { reportProgress } from '../drain/report.ts';
import { namedNode } from '../node/named-node.ts';
import { nodeConditionOf, setCondition } from '../../machine-facts/node-condition.ts';
import { zoneStopped, type NotYet } from '../failure/turn.ts';
import { isUnhealthy } from '../../machine-facts/zones.ts';
import { NodeHold, refusedChange, type HoldDeps, type HoldKind } from '../node-hold/node-hold.ts';
import {
  IN_PLACE_UPDATE,
  inPlaceCondition,
  inPlaceFacts,
  isWithdrawn,
  nextReason,
  type InPlaceFacts,
  type InPlaceReason,
} from './reason.ts';

/** Phases in which a machine is taken for an update: one that does not work yet, or is given up, is not. */
const UPDATABLE: ReadonlySet<string> = new Set([
  'Running',
  'Unknown',
  'InPlaceUpdating',
  'InPlaceUpdateFailed',
  'InPlaceUpdateSuccessful',
]);
const HOUR_MS = 60 * MINUTE_MS;
/** The original's words. */
const READY_TEXT = 'Node drain successful. Node is ready for update';
const CANCELED_TEXT = 'The drain of the Node for an in-place update was canceled.';

/** The Node is cordoned and emptied; the MachineDeployment controller gives it back, or `preparation` when the selection is taken back. */
const IN_PLACE_HOLD: HoldKind = {
  purpose: 'in-place-update',
  since: ({ on }) => on && nodeConditionOf(on.node, IN_PLACE_UPDATE)?.lastTransitionTime,
  barrier: 'marked-cordon',
  forceRule: () => 'usual',
  refused: refusedChange('NodeChangeRefused', 'its update in place'),
  say({ ctx, deps }, _stage, text) {
    if (ctx.held !== undefined) return;
    const description = describeStage('drain', text);
    setFailure(ctx.machine, { type: 'DrainNode', state: 'Processing', description }, deps.clock.now());
  },
  report(hold, drain) {
    if (drain.record === undefined) return;
    const text = 'The Node was selected for an in-place update. Draining it first.';
    hold.reportOnce('UpdateSelected', text, `UpdateSelected ${drain.deadlineMs}`);
    // Of a machine that is not well the last operation tells that.
    if (phaseOf(hold.ctx.machine) === 'Running') reportProgress(hold.deps, hold.ctx, 'DrainNode', drain);
  },
};

type Deps = HoldDeps & Pick<Collaborators, 'machines' | 'zones'>;

/**
 * Brings an update in place forward, one change a pass: the Node's labels are told as condition `InPlaceUpdate`, a selected Node is
 * drained, the machine becomes InPlaceUpdating, and then the condition says that the Node is ready. The phase is recorded before
 * the condition says that the drain is over, so that the timeout counts whenever somebody may be updating the Node. Who gives the
 * Node back to its pods afterwards is the MachineDeployment controller. An unhealthy machine of a stopped zone is not
 * drained; selected meanwhile, it stays a candidate, and becomes one again if its drain has begun: the drain timeout does not count. The update may be what repairs it, and only a
 * person knows that: label `force-drain` ends the delay. Never ends the pass.
 *
 * | condition says     | what happens                                            | then it says    |
 * |--------------------|---------------------------------------------------------|-----------------|
 * | SelectedForUpdate  | cordon and drain; the machine becomes InPlaceUpdating   | DrainSuccessful |
 * | the same, but the labels were taken back | the drain is canceled, the Node uncordoned | CandidateForUpdate |
 * | DrainSuccessful    |                                                         | ReadyForUpdate  |
 * | ReadyForUpdate     | the agent on the Node, or a person, updates and labels it |                 |
 */
export const inPlaceProgress = (deps: Deps): MachineStep => ({
  name: 'in-place-progress',

  async run(ctx) {
    const { machine, observed } = ctx;
    const node = namedNode(ctx, deps.machines);
    const phase = phaseOf(machine);
    // What the Node is told follows from a phase that was recorded: the write of this pass starts the next one.
    if (typeof node !== 'object') return next;
    if (isBeingDeleted(node)) {
      // Where its Machine is kept, others may have to drain it.
      cancelDrain(deps, ctx);
      return next;
    }
    if (phase === '' || phaseOf(observed) !== phase) return next;

    const hold = new NodeHold(IN_PLACE_HOLD, deps, ctx, node);
    const facts = inPlaceFacts(node, phase);
    const isToDrain = facts.reason === 'SelectedForUpdate' && UPDATABLE.has(phase) && !isWithdrawn(facts);
    if (!isToDrain) cancelDrain(deps, ctx);
    reportIgnoredSelection(deps, ctx, node, facts);
    const reason = nextReason(facts);
    // It goes on being what it is: that it is unhealthy tells of its zone, whether it is held back yet or not.
    const notYet = isUnhealthy(observed) && !isForced(machine) ? zoneStopped(deps, observed) : undefined;
    const isDelayed = notYet !== undefined && (isToDrain || reason === 'SelectedForUpdate');
    // Its phase was lost, as in a restore: that it is ready for its update is not recorded anew yet.
    const isWaiting = isEmpty(facts.reason) && reason === undefined && facts.result === undefined;
    reportDelay(hold, isDelayed || isWaiting ? notYet : undefined);
    if (isDelayed) await putOff(hold, isToDrain);
    else if (reason !== undefined) await tell(hold, reason);
    else if (UPDATABLE.has(phase) && notYet === undefined) await act(hold, facts.reason, facts.result !== undefined);
    return next;
  },
});

/** Whether somebody says that its pods may be deleted, whatever it is that broke its Node. */
function isForced({ metadata }: MachineContext['machine']): boolean {
  return metadata.labels?.[FORCE_DRAIN_LABEL] === 'True';
}

/**
 * Says that the update waits, and for what, and looks again: what the zone's other machines do wakes no pass of this one. Without a health timeout
 * nothing but this Event tells of it, and an API server keeps Events for an hour: it is said anew in each.
 */
function reportDelay({ ctx: { machine, pass }, deps: { clock, reportedOnce } }: NodeHold, notYet?: NotYet): void {
  if (notYet !== undefined) pass.alsoAfter(notYet.afterMs, notYet.waitingFor);
  const hour = Math.floor(clock.monotonicMs() / HOUR_MS);
  if (!reportedOnce.becomes(machine.metadata.uid, `UpdateDelayed ${hour}`, notYet !== undefined)) return;
  pass.event(
    'UpdateDelayed',
    'The Node was selected for an in-place update, which waits: too many machines of its zone, this one among them, are unhealthy. ' +
      `If the update is to repair them, set label ${FORCE_DRAIN_LABEL}=True on the Machine: its pods are then deleted, and the Node is updated.`,
  );
}

/** The time of a drain that is broken off does not go on: when the zone is back, its pods would be deleted at once. What is empty stays so. */
async function putOff(hold: NodeHold, isToDrain: boolean): Promise<void> {
  const { deps, ctx } = hold;
  if (!isToDrain || deps.drains.hasEmptied(ctx, 'in-place-update')) return;
  cancelDrain(deps, ctx);
  await tell(hold, 'CandidateForUpdate');
}

/** What holds a drain up is no failure of a machine whose Node is not drained. */
function cancelDrain({ drains, clock }: HoldDeps, ctx: MachineContext): void {
  drains.end(ctx, 'in-place-update');
  const { machine, held } = ctx;
  const { type, state } = machine.status.lastOperation ?? {};
  // The original says nothing else until the update itself has ended. Of a machine that is held back the last operation tells that.
  if (held !== undefined || type !== 'DrainNode' || state === 'Successful') return;
  setOperation(machine, { type: 'DrainNode', state: 'Processing', description: CANCELED_TEXT }, clock.now());
}

async function tell(hold: NodeHold, reason: InPlaceReason): Promise<void> {
  const { ctx, deps, on } = hold;
  if (on === undefined) return;
  await hold.attempt(() => setCondition(deps, ctx, on.nodes, on.node, inPlaceCondition(on.node, reason), true));
}

/** Anyone who selects a Node by hand and forgets the other label waits for nothing. */
function reportIgnoredSelection(
  deps: HoldDeps,
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

async function act(hold: NodeHold, reason: string | undefined, hasResult: boolean): Promise<void> {
  if (reason === 'SelectedForUpdate') return await empty(hold);
  if (!isEmpty(reason)) return;

  // A phase that was lost when the condition was written is made up for: without it no timeout would count.
  const phase = phaseOf(hold.ctx.machine);
  if ((phase === 'Running' || phase === 'Unknown') && !hasResult) beginUpdate(hold);
  else if (reason === 'DrainSuccessful' && phase === 'InPlaceUpdating') await tell(hold, 'ReadyForUpdate');
}

/** Whether the Node was drained, and nothing has been said of its update yet. */
function isEmpty(reason: string | undefined): boolean {
  return reason === 'DrainSuccessful' || reason === 'ReadyForUpdate';
}

async function empty(hold: NodeHold): Promise<void> {
  const { ctx, deps } = hold;
  const state = await hold.empty();
  if (state?.kind !== 'drained' && state?.kind !== 'node-gone') return;
  if (state.kind === 'drained') {
    if (phaseOf(ctx.machine) !== 'InPlaceUpdating') return beginUpdate(hold);
    await tell(hold, 'DrainSuccessful');
  }
  // Another Node of the same name may join; it says by itself what is to be done with it.
  deps.drains.end(ctx, 'in-place-update');
}

function beginUpdate({ ctx: { machine, pass, log }, deps: { clock } }: NodeHold): void {
  beginPhase(machine, 'InPlaceUpdating', clock.now());
  setOperation(machine, { type: 'InPlaceUpdate', state: 'Processing', description: READY_TEXT }, clock.now());
  pass.event('UpdateReady', 'The Node was drained and can be updated in place.');
  pass.afterWrite(() => log.info({}, 'machine ready for in-place update'));
}
