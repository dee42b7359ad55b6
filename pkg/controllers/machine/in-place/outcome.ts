import { phaseOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import { formatDuration } from '../../../apis/duration.ts';
import { UPDATE_RESULT_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { Node } from '../../../apis/wire.ts';
import { fromTimestamp } from '../../../base/clock/clock.ts';
import { next } from '../../../work/reconcile/result.ts';
import { inPlaceUpdateTimeoutMsOf } from '../../machine-facts/settings.ts';
import { beginPhase, setOperation } from '../../machine-facts/status.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineContext, MachineStep } from '../context.ts';
import { namedNode } from '../node/named-node.ts';
import { nodeConditionOf } from '../../machine-facts/node-condition.ts';
import { clustersOf } from '../failure/fail.ts';
import { isSuspended } from '../node/suspended.ts';
import { failureOn, IN_PLACE_UPDATE } from './reason.ts';

type Deps = Pick<Collaborators, 'clock' | 'settings' | 'machines' | 'trust'>;

/**
 * Ends an update in place: by the result that the agent on the Node puts on it as a label, or by its timeout, counted from when
 * the Node was drained, while the machine is not in maintenance; what went by in an outage, in which no Node can be labelled, does not count. A success also repairs an update that had failed before. Never ends the pass.
 *
 * | phase                                          | label `update-result` | becomes                                     |
 * |------------------------------------------------|-----------------------|---------------------------------------------|
 * | InPlaceUpdating, InPlaceUpdateFailed           | successful            | InPlaceUpdateSuccessful, and Running by its |
 * | Failed, because the update did                 | successful            | Node's health                               |
 * | InPlaceUpdating                                | failed                | InPlaceUpdateFailed                         |
 * | InPlaceUpdating                                | none, timeout passed  | InPlaceUpdateFailed                         |
 */
export const inPlaceOutcome = (deps: Deps): MachineStep => ({
  name: 'in-place-outcome',

  run(ctx) {
    const { machine, pass } = ctx;
    const phase = phaseOf(machine);
    const isOpen = phase === 'InPlaceUpdating' || phase === 'InPlaceUpdateFailed' || hasFailedUpdate(machine);
    if (!isOpen) return next;

    const node = namedNode(ctx, deps.machines);
    if (typeof node === 'object' && isUpdateSuccessful(node)) {
      succeed(deps, ctx);
      return next;
    }
    if (phase !== 'InPlaceUpdating') return next;
    if (typeof node === 'object' && resultOn(node) === 'failed') {
      fail(deps, ctx, failureOn(node) || 'The Node reported that the update failed.');
      return next;
    }
    if (isSuspended(deps, ctx)) return next;
    const timeoutMs = inPlaceUpdateTimeoutMsOf(machine, deps.settings);
    const sinceMs = fromTimestamp(machine.status.currentStatus?.lastUpdateTime) ?? deps.clock.now();
    const goneMs = Math.max(0, deps.clock.now() - sinceMs);
    const clusters = clustersOf(ctx);
    const unseenMs = deps.trust.blindMs(clusters, deps.clock.monotonicMs() - goneMs);
    const leftMs = Math.max(timeoutMs - (goneMs - unseenMs), deps.trust.graceLeftMs(clusters));
    if (leftMs > 0) pass.alsoAfter(leftMs, 'the update on the Node');
    else fail(deps, ctx, noResultWithin(timeoutMs));
    return next;
  },
});

/** An agent that finds its Node up to date, as after a rollback, may do nothing. */
function noResultWithin(timeoutMs: number): string {
  return (
    `The Node reported no result within ${formatDuration(timeoutMs)}. ` +
    `If it is up to date already, set label ${UPDATE_RESULT_LABEL}=successful on the Node.`
  );
}

/** Whether the machine is Failed because its update in place did: a healthy Node alone does not fix it. */
export function hasFailedUpdate(machine: Pick<Machine, 'status'>): boolean {
  return phaseOf(machine) === 'Failed' && machine.status?.lastOperation?.type === 'InPlaceUpdate';
}

export function isUpdateSuccessful(node: Node): boolean {
  return resultOn(node) === 'successful';
}

/** The result of this update: what the label says before the Node was ready for it is of another, or came too early. */
function resultOn(node: Node): string | undefined {
  const reason = nodeConditionOf(node, IN_PLACE_UPDATE)?.reason;
  if (reason === 'CandidateForUpdate' || reason === 'SelectedForUpdate') return undefined;
  return node.metadata.labels?.[UPDATE_RESULT_LABEL];
}

function succeed({ clock }: Deps, { machine, pass, log }: MachineContext): void {
  const description = `Machine ${machine.metadata.name} was updated in place successfully`;
  beginPhase(machine, 'InPlaceUpdateSuccessful', clock.now());
  setOperation(machine, { type: 'InPlaceUpdate', state: 'Successful', description }, clock.now());
  pass.event('UpdateSucceeded', 'The machine was updated in place.');
  pass.afterWrite(() => log.info({}, 'updated a machine in place'));
}

function fail({ clock }: Deps, { machine, pass, log }: MachineContext, why: string): void {
  const description = `Machine ${machine.metadata.name} failed to update in place. ${why}`;
  beginPhase(machine, 'InPlaceUpdateFailed', clock.now());
  setOperation(machine, { type: 'InPlaceUpdate', state: 'Failed', description }, clock.now());
  pass.event('UpdateFailed', why);
  pass.afterWrite(() => log.warn({ why }, 'in-place update failed'));
}
