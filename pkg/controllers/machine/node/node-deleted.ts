import { hasFinalizer } from '../../../apis/finalizers.ts';
import { nodeNameOf, phaseOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import { NODE_FINALIZER } from '../../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { isBeingDeleted } from '../../../apis/meta.ts';
import type { Node } from '../../../apis/wire.ts';
import { fromTimestamp, MINUTE_MS } from '../../../base/clock/clock.ts';
import { GateClosedError } from '../../../kube/gate/gate.ts';
import { next, waitFor } from '../../../work/reconcile/result.ts';
import { deletedOrChangedMs, wasDeletedUnready } from '../../machine-facts/deleted-node.ts';
import { hasToJoin } from '../../machine-facts/joining.ts';
import { isMaintenanceRequested, isUnderMaintenance } from '../../machine-facts/maintenance.ts';
import { isReady } from '../../machine-facts/node-health.ts';
import { belongsTo } from '../../machine-facts/node-owner.ts';
import { isWorthReporting } from '../../machine-facts/node-refusal.ts';
import type { PaceFacts } from '../../machine-facts/pace.ts';
import { hold } from '../../machine-facts/replacement-hold.ts';
import { paceFactsOf, type TurnDeps } from '../../machine-facts/replacement-turn.ts';
import { showCondition } from '../../machine-facts/status.ts';
import { isKeptWhenFailed } from '../../replicas/machine-state.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineContext, MachineStep } from '../context.ts';
import { clustersOf } from '../failure/fail.ts';
import { noteHold } from '../failure/held-back.ts';
import { type NotYet, paced, takeGrant, zoneStopped } from '../failure/turn.ts';
import {
  IN_MAINTENANCE,
  isWaitForTurnShown,
  NEVER_REPLACED,
  NODE_DELETED,
  PRESERVED,
} from './deleted-node-condition.ts';
import { isManaged } from './lost-nodes.ts';
import { namedNode } from './named-node.ts';
import { isPreserved } from '../../machine-facts/preserved.ts';

/** So long the other machines of its zone have to become Unknown too: Nodes that are cut off together are found out one after the other. */
const TOGETHER_MS = MINUTE_MS;
/** So often it is told again why a Machine is kept, well before the Event is gone. */
const TELL_AGAIN_MS = 30 * MINUTE_MS;
/** So long until a Node is removed again after a failure that goes by itself. */
const REMOVE_AGAIN_MS = MINUTE_MS / 2;

type Deps = TurnDeps &
  Pick<
    Collaborators,
    | 'lostNodes'
    | 'deletedNodes'
    | 'deleteMachine'
    | 'deleteUnchanged'
    | 'machines'
    | 'targets'
    | 'clock'
    | 'trust'
    | 'budget'
    | 'pace'
  >;

/** What was told of a machine that is kept. */
interface Told {
  /** Why it was said to be. */
  text?: string;
  /** The reason of the last Event, and when it was (monotonic). */
  event?: { readonly reason: string; readonly atMs: number };
}

/** What the Machine of a deleted Node waits for; `why` and its reason as soon as they are known. */
interface Kept extends Pick<NotYet, 'afterMs' | 'waitingFor'> {
  readonly reason?: string;
  readonly why?: string;
}

/**
 * Deletes the Machine of a Node that somebody deleted: our finalizer keeps such a Node until it is drained and its VM gone. One
 * that was deleted before or while it got our finalizer is gone by now; its Machine is deleted all the same. Any other Node with
 * our finalizer that vanished has lost it by force, or with its cluster's data: that is a matter of health.
 *
 * A Node that is not ready may have been deleted by a cloud controller manager that does not see its VM: with a whole zone, if the provider
 * shows nothing of it. Its Machine is replaced as by the health timeout, in its turn, and goes through the other steps meanwhile. A Node that
 * is ready again stays deleted, which nobody can undo: its Machine waits for its turn too. So does that of a Node that is deleted just after it
 * was ready again: such a manager goes through all that it found not ready minutes before. And so does that of a Node whose deletion the watch
 * has not delivered to this process: whether it was ready then, only its kubelet says, by a clock that may have stood still.
 *
 * | Node when it was deleted | machine                                              | its Machine                      |
 * |--------------------------|------------------------------------------------------|----------------------------------|
 * | ready, before our eyes   | is not Unknown                                       | is deleted                       |
 * | ready, before our eyes   | is Unknown                                           | as if it was not ready           |
 * | ready again for 5 min    | is not Unknown                                       | is deleted                       |
 * | ready again for less     | any                                                  | as if it was not ready           |
 * | not ready, or not seen   | has failed, and is not preserved                     | is deleted                       |
 * | not ready, or not seen   | in maintenance or preserved, or its zone is stopped  | waits until that is over         |
 * | not ready, or not seen   | is Unknown, and to be preserved when it has failed   | waits until that is over         |
 * | not ready, or not seen   | was well, without a health timeout                   | waits until it is deleted        |
 * | not ready, or not seen   | unhealthy for less than a minute                     | waits for others to be Unknown   |
 * | not ready, or not seen   | any other                                            | is deleted in its turn           |
 * | is not ready now         | names another Node, which stays                      | stays; this Node is removed      |
 */
export function nodeDeleted(deps: Deps): MachineStep {
  const told = new Map<string, Told>();
  return {
    name: 'node-deleted',

    async run(ctx) {
      const { machine, observed, pass, log, signal } = ctx;
      const { uid } = machine.metadata;
      const { deleted, stale } = deletedNodesOf(deps, ctx);
      for (const node of stale) await removeStale(ctx, node);
      const doubt = deleted && doubtOf(deps, machine, deleted);
      if (deleted !== undefined && doubt !== undefined) {
        const kept = keptOf(deps, ctx, deleted);
        if (kept !== undefined) {
          pass.alsoAfter(kept.afterMs, kept.waitingFor);
          const before = told.get(uid) ?? {};
          told.set(uid, before);
          tell(deps, ctx, `Node ${deleted.metadata.name} was deleted ${doubt}.`, kept, before);
          return next;
        }
      }
      showCondition(machine, NODE_DELETED, undefined, deps.clock.now());
      delete told.get(uid)?.text;
      const name = deleted?.metadata.name ?? (await lostNodeOf(deps, ctx));
      if (name === undefined) return next;

      // What has made us wait may be asked for again, unseen.
      await (doubt === undefined ? deps.deleteMachine : deps.deleteUnchanged)(observed, signal);
      log.info({ node: name }, 'deleted the machine of a deleted node');
      pass.event('NodeDeleted', `Node ${name} was deleted, so the machine is deleted too.`);
      return waitFor('the deletion to be recorded');
    },

    forget: (uid) => void told.delete(uid),
  };
}

/**
 * The deleted Node with which the Machine may go; of several that which it names. `stale`: those that fell silent under other names while the
 * machine works on as the Node that it names.
 */
function deletedNodesOf(deps: Deps, ctx: MachineContext): { deleted: Node | undefined; stale: readonly Node[] } {
  const { machine, nodes } = ctx;
  const all = (nodes?.ofMachine(machine) ?? []).filter((node) => isBeingDeleted(node) && isManaged(node));
  const named = namedNode(ctx, deps.machines);
  if (typeof named !== 'object' || isBeingDeleted(named))
    return { deleted: all.find((node) => node === named) ?? all[0], stale: [] };
  const isStale = (node: Node): boolean => !isReady(node) && !deps.deletedNodes.wasReady(node);
  const stale = all.filter((node) => isStale(node) && hasFinalizer(node, NODE_FINALIZER));
  return { deleted: all.find((node) => !isStale(node)), stale };
}

/** Nothing runs on such a Node, so nothing is drained; whatever it fails at keeps nothing else from being done. */
async function removeStale({ nodes, pass, log, signal }: MachineContext, node: Node): Promise<void> {
  const { name } = node.metadata;
  try {
    await nodes?.remove(node, signal);
    log.info({ node: name }, 'removed a deleted node: its machine works as another one');
  } catch (err) {
    signal.throwIfAborted();
    if (err instanceof GateClosedError) throw err;
    log.warn({ node: name, err }, 'could not remove a deleted node whose machine works as another one');
    pass.alsoAfter(isWorthReporting(err) ? TELL_AGAIN_MS : REMOVE_AGAIN_MS, 'a deleted Node to be removed');
  }
}

/** How the Node was deleted, if it may not have been ready. */
function doubtOf(deps: Pick<Deps, 'deletedNodes' | 'clock'>, machine: Machine, node: Node): string | undefined {
  if (phaseOf(machine) === 'Failed' && !isKept(machine, node, deps.clock.now())) return undefined;
  if (deps.deletedNodes.wasReady(node)) return undefined;
  if (wasDeletedUnready(node)) return 'while it was not ready';
  if (becameWellAfter(machine, node)) return 'while its machine was not healthy';
  if (deps.deletedNodes.wasEarly(node)) return 'less than 5 minutes after it was ready again';
  return 'before this process could observe whether it was ready';
}

/** Whether the Machine says so. The Node says it by the clock of its kubelet, and a VM that stood still may go on with the time of then. */
function becameWellAfter(machine: Machine, { metadata }: Node): boolean {
  if (phaseOf(machine) === 'Unknown') return true;
  const deletedMs = fromTimestamp(metadata.deletionTimestamp);
  const sinceMs = fromTimestamp(machine.status?.currentStatus?.lastUpdateTime);
  return deletedMs !== undefined && sinceMs !== undefined && sinceMs > deletedMs;
}

/** What its Machine waits for; undefined: it has its turn, and has taken it. */
function keptOf(deps: Deps, ctx: MachineContext, node: Node): Kept | undefined {
  const { machine, observed } = ctx;
  if (isUnderMaintenance(machine) || isMaintenanceRequested(machine, node)) {
    const why = 'it is in maintenance; end the maintenance, or delete the Machine.';
    return { reason: IN_MAINTENANCE, why, afterMs: TELL_AGAIN_MS, waitingFor: 'the maintenance to end' };
  }
  if (isKept(machine, node, deps.clock.now())) {
    const expiry = machine.status.currentStatus?.preserveExpiryTime ?? '';
    const until = expiry === '' ? 'to be preserved when it has failed' : `preserved until ${expiry}`;
    const why = `it is ${until}; end the preservation, or delete the Machine.`;
    return { reason: PRESERVED, why, afterMs: TELL_AGAIN_MS, waitingFor: 'the preservation to end' };
  }
  if (isNeverReplaced(machine)) {
    const why = 'spec.disableHealthTimeout is set; to replace it, delete the Machine.';
    return { reason: NEVER_REPLACED, why, afterMs: TELL_AGAIN_MS, waitingFor: 'the Machine to be deleted' };
  }
  const notYet = zoneStopped(deps, observed) ?? ownTurn(deps, ctx, node);
  if (notYet === undefined) return undefined;
  const { held, ...kept } = notYet;
  if (held === undefined) return kept;
  if (phaseOf(machine) === 'Unknown' && !isReady(node)) noteHold(deps, ctx, held);
  return { ...kept, reason: held.code, why: held.text };
}

/** Whether the machine is preserved, or is to be when it has failed, as one that is Unknown will by its health timeout. */
function isKept(machine: Machine, node: Node, nowMs: number): boolean {
  const isFailing = phaseOf(machine) === 'Unknown' || phaseOf(machine) === 'Failed';
  return isFailing ? isKeptWhenFailed(machine, node, nowMs) : isPreserved(machine, nowMs);
}

function isNeverReplaced(machine: Machine): boolean {
  return machine.spec?.disableHealthTimeout === true && !hasToJoin(machine);
}

type Waiting = Omit<NotYet, 'held'> & Partial<Pick<NotYet, 'held'>>;

/** Takes the machine's turn; otherwise says what it waits for. */
function ownTurn(deps: Deps, ctx: MachineContext, node: Node): Waiting | undefined {
  const { observed } = ctx;
  // One that nobody replaces is a pool of its own.
  const pool = deps.budget.poolOf(observed) ?? { key: observed.metadata.uid, limit: 1, machines: [] };
  const facts = paceFactsOf(deps, observed, pool, (other) => hasDeletedNode(deps, ctx, other));
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
  const sinceMs = unhealthySinceMs(machine, node);
  // A time that is long to come is of a clock that was wrong; of an Unknown machine step health-timeout sets it right.
  const isSetRight = phaseOf(machine) === 'Unknown' && machine.spec.disableHealthTimeout !== true;
  const isWrong = !isSetRight && sinceMs > clock.now() + MINUTE_MS;
  const ageMs = isWrong ? trustedMs : clock.now() - sinceMs;
  const isOne = facts.pool.isAlone && facts.zone.together === 1;
  const trustMs = isOne ? TOGETHER_MS : Math.max(TOGETHER_MS, facts.healthTimeoutMs);
  const afterMs = Math.max(TOGETHER_MS - ageMs, trustMs - trustedMs, trust.graceLeftMs(clusters));
  if (afterMs <= 0) return undefined;
  const waitingFor = 'other machines of its zone to be found unhealthy';
  return { afterMs, waitingFor, ...(ageMs >= TOGETHER_MS && { held: hold('grace') }) };
}

/** Since when the machine is unhealthy; of one that is not, others tell nothing. */
function unhealthySinceMs(machine: Machine, node: Node): number {
  if (isReady(node)) return -Infinity;
  if (phaseOf(machine) === 'Unknown') return fromTimestamp(machine.status?.currentStatus?.lastUpdateTime) ?? -Infinity;
  // What makes it wait may never make it Unknown.
  return deletedOrChangedMs(node) ?? -Infinity;
}

/** Whether another machine waits for its turn because of its deleted Node. */
function hasDeletedNode(deps: Deps, ctx: MachineContext, other: Machine): boolean {
  const { machines, targets } = deps;
  const { nodes } = ctx;
  if (isBeingDeleted(other) || isUnderMaintenance(other) || isNeverReplaced(other)) return false;
  if (targets.of(other)?.cluster !== nodes?.cluster) return false;
  const node = nodes?.get(nodeNameOf(other));
  if (node === undefined || !isBeingDeleted(node) || !isManaged(node)) return false;
  if (isKept(other, node, deps.clock.now())) return false;
  return doubtOf(deps, other, node) !== undefined && belongsTo(node, other, machines);
}

/**
 * Says why the Machine is kept: by a condition, and by an Event for another reason, and now and then. That this process is young is only said
 * where nothing else is, and by an Event when it stays so.
 */
function tell({ clock }: Deps, { machine, pass }: MachineContext, what: string, kept: Kept, before: Told): void {
  const { reason, why } = kept;
  if (reason === undefined || why === undefined) {
    // What is over is not said any more.
    if (!isWaitForTurnShown(machine)) {
      showCondition(machine, NODE_DELETED, undefined, clock.now());
      delete before.text;
    }
    return;
  }
  const isGrace = reason === hold('grace').code;
  const text = `${what} The Machine is kept for now: ${why}`;
  const nowMs = clock.monotonicMs();
  const { event = { reason: isGrace ? reason : '', atMs: nowMs } } = before;
  const isTold = isGrace ? isWaitForTurnShown(machine) : before.text === text;
  const isDue = nowMs - event.atMs >= TELL_AGAIN_MS || (!isGrace && event.reason !== reason);
  if (!isTold) showCondition(machine, NODE_DELETED, { status: 'True', reason, message: text }, clock.now());
  if (isDue) pass.event('ReplacementDelayed', text);
  pass.afterWrite(() => {
    if (!isGrace || !isTold) before.text = text;
    before.event = isDue ? { reason, atMs: nowMs } : event;
  });
}

/** The name of a Node whose deletion was seen; a live look has the last word. A kubelet that has registered anew, and works, was not meant. */
async function lostNodeOf(deps: Deps, { machine, nodes, signal }: MachineContext): Promise<string | undefined> {
  const lost = deps.lostNodes.of(machine);
  if (lost === undefined || nodes === undefined) return undefined;
  const live = await nodes.read(lost.name, signal);
  const isThere =
    live?.metadata.uid === lost.uid ||
    (live !== undefined && isReady(live) && !isBeingDeleted(live) && belongsTo(live, machine, deps.machines));
  if (!isThere) return lost.name;
  deps.lostNodes.noteSeen(machine);
  return undefined;
}
