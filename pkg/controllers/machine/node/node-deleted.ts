import { nodeNameOf, phaseOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { isBeingDeleted } from '../../../apis/meta.ts';
import type { Node } from '../../../apis/wire.ts';
import { fromTimestamp, MINUTE_MS } from '../../../base/clock/clock.ts';
import { next, waitFor } from '../../../work/reconcile/result.ts';
import { deletedOrChangedMs, wasDeletedUnready } from '../../machine-facts/deleted-node.ts';
import { isUnderMaintenance } from '../../machine-facts/maintenance.ts';
import { isReady } from '../../machine-facts/node-health.ts';
import { belongsTo } from '../../machine-facts/node-owner.ts';
import type { PaceFacts } from '../../machine-facts/pace.ts';
import { hold } from '../../machine-facts/replacement-hold.ts';
import { deletionPaceOf, type TurnDeps } from '../../machine-facts/replacement-turn.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineContext, MachineStep } from '../context.ts';
import { clustersOf } from '../failure/fail.ts';
import { reportHold } from '../failure/held-back.ts';
import { type NotYet, paced, takeGrant, zoneStopped } from '../failure/turn.ts';
import { isManaged } from './lost-nodes.ts';
import { namedNode } from './named-node.ts';

/** So long the other machines of its zone have to become Unknown too: Nodes that are cut off together are found out one after the other. */
const TOGETHER_MS = MINUTE_MS;
/** So often it is told again why a Machine is kept, well before the Event is gone. */
const TELL_AGAIN_MS = 30 * MINUTE_MS;

/** Phases of machines that were well. */
const WERE_WELL: ReadonlySet<string> = new Set([
  'Running',
  'Unknown',
  'InPlaceUpdating',
  'InPlaceUpdateSuccessful',
  'InPlaceUpdateFailed',
]);

type Deps = TurnDeps &
  Pick<Collaborators, 'lostNodes' | 'deleteMachine' | 'machines' | 'clock' | 'trust' | 'budget' | 'pace'>;

/** Why its Machine was said to be kept, by the UID of the Machine, and when (monotonic). */
type Told = Map<string, { readonly text: string; readonly atMs: number }>;

/**
 * Deletes the Machine of a Node that somebody deleted: our finalizer keeps such a Node until it is drained and its VM gone. One
 * that was deleted before or while it got our finalizer is gone by now; its Machine is deleted all the same. Any other Node with
 * our finalizer that vanished has lost it by force, or with its cluster's data: that is a matter of health.
 *
 * A Node that is not ready may have been deleted by a cloud controller manager that does not see its VM: with a whole zone, if the provider
 * shows nothing of it. Its Machine is replaced as by the health timeout, in its turn, and goes through the other steps meanwhile. A Node that
 * is ready again stays deleted, which nobody can undo: its Machine waits for its turn too. All that follows from the Node and the Machines.
 *
 * | Node when it was deleted    | machine                                    | its Machine                      |
 * |-----------------------------|--------------------------------------------|----------------------------------|
 * | ready, and is now           | any                                        | is deleted                       |
 * | not ready, or is not now    | has not been well yet, or has failed       | is deleted                       |
 * | not ready, or is not now    | in maintenance, or its zone is stopped     | waits until that is over         |
 * | not ready, or is not now    | Running or Unknown for less than a minute  | waits for others to be Unknown   |
 * | not ready, or is not now    | any other                                  | is deleted in its turn           |
 */
export function nodeDeleted(deps: Deps): MachineStep {
  const told: Told = new Map();
  return {
    name: 'node-deleted',

    async run(ctx) {
      const { machine, observed, nodes, pass, log, signal } = ctx;
      const deleted = nodes?.ofMachine(machine).find((node) => isBeingDeleted(node) && isManaged(node));
      if (deleted !== undefined && isHeld(deps, ctx, deleted, told)) return next;
      const name = deleted?.metadata.name ?? (await lostNodeOf(deps, ctx));
      if (name === undefined) return next;

      await deps.deleteMachine(observed, signal);
      log.info({ node: name }, 'deleted the machine of a deleted node');
      pass.event('NodeDeleted', `Node ${name} was deleted, so the machine is deleted too.`);
      return waitFor('the deletion to be recorded');
    },

    forget: (uid) => void told.delete(uid),
  };
}

/** Whether the Machine of this deleted Node is kept for now; says why. */
function isHeld(deps: Deps, ctx: MachineContext, node: Node, told: Told): boolean {
  const { machine, observed, pass } = ctx;
  const named = namedNode(ctx, deps.machines);
  // Health goes by the Node that the Machine names.
  const isNamed = typeof named === 'object' && named.metadata.uid === node.metadata.uid;
  if (!isNamed || !waitsForItsTurn(machine, node)) return false;
  if (isUnderMaintenance(machine)) {
    tell(deps, ctx, node, told, 'it is in maintenance; end the maintenance, or delete the Machine.');
    pass.alsoAfter(TELL_AGAIN_MS, 'the maintenance to end');
    return true;
  }
  const notYet = zoneStopped(deps, observed) ?? ownTurn(deps, ctx, node);
  if (notYet === undefined) return false;
  const { held, afterMs, waitingFor } = notYet;
  pass.alsoAfter(afterMs, waitingFor);
  if (held === undefined) return true;
  if (phaseOf(machine) === 'Unknown' && !isReady(node)) reportHold(deps, ctx, held);
  if (held.kind !== 'grace') tell(deps, ctx, node, told, held.text);
  return true;
}

/** Whether the Machine of this deleted Node is replaced as by the health timeout. */
function waitsForItsTurn(machine: Machine, node: Node): boolean {
  return WERE_WELL.has(phaseOf(machine)) && (wasDeletedUnready(node) || becameWellAfter(machine, node));
}

/** Whether the Machine says so. The Node says it by the clock of its kubelet, and a VM that stood still may go on with the time of then. */
function becameWellAfter(machine: Machine, { metadata }: Node): boolean {
  if (phaseOf(machine) === 'Unknown') return true;
  const deletedMs = fromTimestamp(metadata.deletionTimestamp);
  const sinceMs = fromTimestamp(machine.status?.currentStatus?.lastUpdateTime);
  return deletedMs !== undefined && sinceMs !== undefined && sinceMs > deletedMs;
}

type Waiting = Omit<NotYet, 'held'> & Partial<Pick<NotYet, 'held'>>;

/** Takes the machine's turn; otherwise says what it waits for. */
function ownTurn(deps: Deps, ctx: MachineContext, node: Node): Waiting | undefined {
  const facts = deletionPaceOf(deps, ctx.observed, (other) => hasDeletedNode(deps, ctx, other));
  return wait(deps, ctx, node, facts) ?? paced(deps, facts) ?? grantOf(deps, ctx, facts);
}

function grantOf(deps: Deps, ctx: MachineContext, facts: PaceFacts): NotYet | undefined {
  const notYet = takeGrant(deps, ctx);
  if (notYet === undefined) deps.pace.begin(facts);
  return notYet;
}

/**
 * Until it is known whether others of its zone became unhealthy with it. Of several nobody knows which ones a process before has
 * replaced: they wait for a health timeout.
 */
function wait({ clock, trust }: Deps, ctx: MachineContext, node: Node, facts: PaceFacts): Waiting | undefined {
  const { machine } = ctx;
  const clusters = clustersOf(ctx);
  const trustedMs = trust.trustedForMs(clusters);
  const ageMs = ageOf(machine, node, clock.now());
  const isOne = facts.pool.unhealthy === 1 && facts.zone.together === 1;
  const trustMs = isOne ? TOGETHER_MS : Math.max(TOGETHER_MS, facts.healthTimeoutMs);
  const afterMs = Math.max(TOGETHER_MS - ageMs, trustMs - trustedMs, trust.graceLeftMs(clusters));
  if (afterMs <= 0) return undefined;
  const waitingFor = 'other machines of its zone to be found unhealthy';
  return { afterMs, waitingFor, ...(ageMs >= TOGETHER_MS && { held: hold('grace') }) };
}

/** How long the machine is unhealthy; of one that is not, or whose phase does not show it, others tell nothing. */
function ageOf(machine: Machine, node: Node, nowMs: number): number {
  const phase = phaseOf(machine);
  if (isReady(node) || (phase !== 'Running' && phase !== 'Unknown')) return Infinity;
  // What makes a Running machine wait may never make it Unknown.
  const sinceMs =
    phase === 'Running' ? deletedOrChangedMs(node) : fromTimestamp(machine.status?.currentStatus?.lastUpdateTime);
  return nowMs - (sinceMs ?? -Infinity);
}

/** Whether another machine waits for its turn because of its deleted Node. */
function hasDeletedNode({ machines, targets }: Deps, { nodes }: MachineContext, other: Machine): boolean {
  if (isBeingDeleted(other) || isUnderMaintenance(other) || targets.of(other)?.cluster !== nodes?.cluster) return false;
  const node = nodes?.get(nodeNameOf(other));
  if (node === undefined || !isBeingDeleted(node) || !isManaged(node)) return false;
  return waitsForItsTurn(other, node) && belongsTo(node, other, machines);
}

function tell({ clock }: Deps, { machine, pass }: MachineContext, { metadata }: Node, told: Told, why: string): void {
  const { uid } = machine.metadata;
  const text = `Node ${metadata.name} was deleted while it was not ready. The Machine is kept for now: ${why}`;
  const [last, atMs] = [told.get(uid), clock.monotonicMs()];
  if (last?.text === text && atMs - last.atMs < TELL_AGAIN_MS) return;
  pass.event('ReplacementDelayed', text);
  pass.afterWrite(() => void told.set(uid, { text, atMs }));
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
