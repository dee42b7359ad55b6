import { phaseOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import { isBeingDeleted } from '../../../apis/meta.ts';
import type { Node } from '../../../apis/wire.ts';
import { fromTimestamp, MINUTE_MS } from '../../../base/clock/clock.ts';
import { next, waitFor } from '../../../work/reconcile/result.ts';
import { isUnderMaintenance } from '../../machine-facts/maintenance.ts';
import { isReady } from '../../machine-facts/node-health.ts';
import { hold } from '../../machine-facts/replacement-hold.ts';
import { stoppedZoneOf, type TurnDeps } from '../../machine-facts/replacement-turn.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineContext, MachineStep } from '../context.ts';
import { REPLACEMENT_RETRY_MS, reportHold } from '../failure/held-back.ts';
import { isManaged } from './lost-nodes.ts';
import { namedNode } from './named-node.ts';

/** So long the other machines of its zone have to become Unknown too: Nodes that are cut off together are found out one after the other. */
const TOGETHER_MS = MINUTE_MS;

/** Phases of machines that were well. */
const WERE_WELL: ReadonlySet<string> = new Set([
  'Running',
  'Unknown',
  'InPlaceUpdating',
  'InPlaceUpdateSuccessful',
  'InPlaceUpdateFailed',
]);

type Deps = TurnDeps & Pick<Collaborators, 'lostNodes' | 'deleteMachine' | 'machines' | 'reportedOnce' | 'clock'>;

/**
 * Deletes the Machine of a Node that somebody deleted: our finalizer keeps such a Node until it is drained and its VM gone. One
 * that was deleted before or while it got our finalizer is gone by now; its Machine is deleted all the same. Any other Node with
 * our finalizer that vanished has lost it by force, or with its cluster's data: that is a matter of health.
 *
 * A Node that is not ready may have been deleted by a cloud controller manager that does not see its VM: with a whole zone, if the provider
 * shows nothing of it. Its Machine waits, and goes through the other steps meanwhile. A VM that is gone indeed is found out by the
 * orphan safety.
 *
 * | deleted Node                | machine                                    | its Machine                      |
 * |-----------------------------|--------------------------------------------|----------------------------------|
 * | ready                       | any                                        | is deleted                       |
 * | not ready                   | has not been well yet, or has failed       | is deleted                       |
 * | not ready                   | in maintenance, or its zone is stopped     | waits until that is over         |
 * | not ready                   | Running, or Unknown for less than a minute | waits for others to be Unknown   |
 * | not ready                   | any other                                  | is deleted                       |
 */
export const nodeDeleted = (deps: Deps): MachineStep => ({
  name: 'node-deleted',

  async run(ctx) {
    const { machine, observed, nodes, pass, log, signal } = ctx;
    const deleted = nodes?.ofMachine(machine).find((node) => isBeingDeleted(node) && isManaged(node));
    if (deleted !== undefined && isHeld(deps, ctx, deleted)) return next;
    const name = deleted?.metadata.name ?? (await lostNodeOf(deps, ctx));
    if (name === undefined) return next;

    await deps.deleteMachine(observed, signal);
    log.info({ node: name }, 'deleted the machine of a deleted node');
    pass.event('NodeDeleted', `Node ${name} was deleted, so the machine is deleted too.`);
    return waitFor('the deletion to be recorded');
  },
});

/** Whether the Machine of this deleted Node is kept for now; says why. */
function isHeld(deps: Deps, ctx: MachineContext, node: Node): boolean {
  const { machine, observed, pass } = ctx;
  const named = namedNode(ctx, deps.machines);
  // Health goes by the Node that the Machine names.
  const isNamed = typeof named === 'object' && named.metadata.uid === node.metadata.uid;
  if (!isNamed || isReady(node) || !WERE_WELL.has(phaseOf(machine))) return false;
  const zone = stoppedZoneOf(deps, observed);
  if (zone !== undefined) {
    const held = hold('zone', zone.name);
    if (phaseOf(machine) === 'Unknown') reportHold(deps, ctx, held);
    reportOnce(deps, ctx, node, held.text);
    pass.alsoAfter(REPLACEMENT_RETRY_MS, 'more machines of its zone to be healthy');
    return true;
  }
  if (isUnderMaintenance(machine)) {
    reportOnce(deps, ctx, node, 'it is in maintenance; end the maintenance, or delete the Machine.');
    return true;
  }
  const waitMs = togetherInMs(deps, ctx);
  if (waitMs > 0) pass.alsoAfter(waitMs, 'other machines of its zone to be found unhealthy');
  return waitMs > 0;
}

/** Milliseconds until it is known whether others of its zone became unhealthy with it; 0: now, or nobody can tell. */
function togetherInMs({ clock }: Deps, { machine }: MachineContext): number {
  const phase = phaseOf(machine);
  if (phase === 'Running') return TOGETHER_MS;
  const sinceMs = fromTimestamp(machine.status.currentStatus?.lastUpdateTime);
  if (phase !== 'Unknown' || sinceMs === undefined) return 0;
  return Math.max(0, sinceMs + TOGETHER_MS - clock.now());
}

function reportOnce({ reportedOnce }: Deps, { machine, pass }: MachineContext, { metadata }: Node, why: string): void {
  if (!reportedOnce.isNew(machine.metadata.uid, `NodeDeleted ${metadata.uid} ${why}`)) return;
  pass.event(
    'ReplacementDelayed',
    `Node ${metadata.name} was deleted while it was not ready. The Machine is kept for now: ${why}`,
  );
}

/** The name of a Node whose deletion was seen; a live look has the last word. */
async function lostNodeOf(deps: Deps, { machine, nodes, signal }: MachineContext): Promise<string | undefined> {
  const lost = deps.lostNodes.of(machine);
  if (lost === undefined || nodes === undefined) return undefined;
  const live = await nodes.read(lost.name, signal);
  if (live?.metadata.uid !== lost.uid) return lost.name;
  deps.lostNodes.noteSeen(machine);
  return undefined;
}
