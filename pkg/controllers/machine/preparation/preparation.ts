import { hasForceDeletionLabel } from '../../../apis/machine/v1alpha1/defaults.ts';
import {
  DELETION_PREPARATION_SINCE_ANNOTATION as SINCE,
  FORCE_DELETION_LABEL,
} from '../../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { isBeingDeleted } from '../../../apis/meta.ts';
import type { Node } from '../../../apis/wire.ts';
import { fromTimestamp } from '../../../base/clock/clock.ts';
import { ApiError, isConflict } from '../../../kube/client/errors.ts';
import { next, requeue, waitFor, type StepResult } from '../../../work/reconcile/result.ts';
import { requestedPolicy, skipsDrain, type DeletionPolicy } from '../../machine-facts/deletion-policy.ts';
import { hooksOf } from '../../machine-facts/hooks.ts';
import { isMaintenanceRequested, isUnderMaintenance } from '../../machine-facts/maintenance.ts';
import { deploymentOf } from '../../machine-facts/owners.ts';
import { isEmptyForUpdate } from '../../machine-facts/rollout-marks.ts';
import {
  DELETION_PREPARED,
  hasPreparationBegun,
  isPreparationRequested,
  preparationShownBy,
  type PreparationReason,
} from '../../machine-facts/prepared-deletion.ts';
import { nodeConditionOf, setCondition, NODE_TERMINATING } from '../../machine-facts/node-condition.ts';
import { isBeingCreated, showCondition } from '../../machine-facts/status.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineContext, MachineStep } from '../context.ts';
import { nodeToDrain, nodesOf } from '../deletion/nodes.ts';
import { reportDrainProgress } from '../drain/report.ts';
import { namedNode, type NamedNode } from '../node/named-node.ts';
import { liftOwnCordon, withoutOwnCordon } from '../node/uncordon.ts';
import { NodeHold, type HoldDeps, type HoldKind, type HoldStage, type Refused } from '../node-hold/node-hold.ts';
import { planPreparation } from './plan.ts';

/** When to look again at an object that has changed meanwhile: the cache shows it in a moment. */
const CONFLICT_RETRY_MS = 200;
const REFUSED_RETRY_MS = 10_000;
const RECORDED = 'the end of the drain to be recorded';
const DELETED = 'the API server to delete the Machine';
const UNCORDONED = 'the API server to uncordon the Node';

type Given = HoldDeps &
  Pick<Collaborators, 'machines' | 'owners' | 'activities' | 'nodesInTarget' | 'readMachine' | 'deleteUnchanged'>;

/** With the machines of which it was told that they are prepared, by UID, and when (monotonic) the DELETE may be sent. */
type Deps = Given & { readonly completed: Map<string, number> };

/** Reasons of stages; of others it has `started`. */
const REASONS: Partial<Record<HoldStage, PreparationReason>> = {
  DrainBlocked: 'blocked',
  DrainLate: 'failed',
  DrainFailed: 'failed',
  Held: 'completed',
  Returning: 'aborting',
  Refused: 'failed',
};

/** The Node is emptied before the Machine is deleted, and given back if that is aborted. */
const PREPARATION_HOLD: HoldKind<Deps> = {
  purpose: 'preparation',
  annotations: [SINCE],
  begun: ['DeletionPreparing'],
  ended: ['DeletionAborted'],
  barrier: 'marked-cordon',
  forceRule: (hold) => (policyOf(hold) === 'graceful' ? 'request' : 'usual'),
  terms: ({ deps, ctx: { machine, observed, signal } }) => ({
    forcedBy: hasForceDeletionLabel(machine) ? `the Machine has label ${FORCE_DELETION_LABEL}` : undefined,
    isWanted,
    mayBegin: async () => {
      const live = await deps.readMachine(observed, signal);
      return live?.metadata.uid === observed.metadata.uid && isWanted(live);
    },
  }),
  say: show,
  report(hold, drain, stage) {
    const { deps, ctx } = hold;
    const shown = preparationShownBy(ctx.observed);
    reportDrainProgress(deps, ctx.pass, drain, {
      isSaid: (text) => shown?.reason === (REASONS[stage] ?? 'started') && shown?.message === text,
      say: (text) => show(hold, stage, text),
    });
    const late = 'The Node could not be drained within the drain timeout: the Machine is not deleted.';
    if (drain.isLate) hold.reportOnce('DrainFailed', late);
  },
  refused: refusal('The Node could not be uncordoned'),
};

/** What is refused is tried again; an object that has changed meanwhile is another matter. */
function refusal(what: string): Refused<Deps> {
  return (hold, err) => {
    if (isConflict(err) || !(err instanceof ApiError) || hold.ctx.signal.aborted) return undefined;
    const text = `${what}: ${err.message}.`;
    hold.reportOnce('DeletionNotPrepared', text);
    return text;
  };
}

function isWanted(live: Machine): boolean {
  return !isBeingDeleted(live) && isPreparationRequested(live);
}

function policyOf({ ctx, deps }: NodeHold<Deps>): DeletionPolicy | undefined {
  return requestedPolicy(ctx.machine, deploymentOf(ctx.machine, deps.owners));
}

/**
 * Prepares the deletion of a machine that is asked for by annotation, and deletes the Machine when its Node is empty. Until then it goes on
 * as any other, and the request can be taken back: the DELETE holds only for the very version that carries it. plan.ts says what happens when.
 */
export const preparation = (given: Given): MachineStep => {
  const deps: Deps = { ...given, completed: new Map() };
  return {
    name: 'preparation',
    run: (ctx) => prepare(deps, ctx),
    forget: (uid) => void deps.completed.delete(uid),
  };
};

async function prepare(deps: Deps, ctx: MachineContext): Promise<StepResult> {
  const { machine, observed, nodes } = ctx;
  const isRequested = isPreparationRequested(observed);
  const hasBegun = hasPreparationBegun(observed);
  // Of a deletion that a restore of the control cluster has undone: its end would be taken for that of a later one.
  deps.drains.end(ctx, 'deletion');
  if (!isRequested && !hasBegun) {
    // Its record went with the request, or with such a restore.
    deps.drains.end(ctx, 'preparation');
    const hold = new NodeHold(PREPARATION_HOLD, deps, ctx, namedNode(ctx, deps.machines));
    show(hold, 'Over', '');
    await undoLeft(hold);
    return next;
  }
  const node = nodes === undefined ? undefined : await nodeToDrain(deps.machines, ctx, nodes);
  const hold = new NodeHold(PREPARATION_HOLD, deps, ctx, node);
  const hooks = hooksOf(machine, 'deletion');
  const policy = policyOf(hold);
  switch (planPreparation({ isRequested, hasBegun, policy, hooks: hooks.length, hasNode: node !== undefined })) {
    case 'nothing':
      return next;
    case 'begin':
      return begin(hold);
    case 'await-hooks':
      // No time counts meanwhile: the drain has its whole timeout from when the last of them went.
      hold.annotate({ [SINCE]: '' });
      await hold.awaitHooks(hooks);
      return goOn(ctx, 'the hooks to be removed');
    case 'drain':
      if (fromTimestamp(hold.since) === undefined) return begin(hold);
      return await unlessChanged('Machine', () => empty(hold));
    case 'delete':
      // That there is no Node says nothing while there is none of any Machine.
      if (!skipsDrain(policy) && deps.nodesInTarget.isMissingWithAll(observed)) {
        const text = 'The Node cannot be drained: none of the Nodes of the Machines is in the target cluster.';
        show(hold, 'DrainFailed', text);
        hold.reportOnce('DeletionNotPrepared', text);
        return goOn(ctx, 'a Node of one of the Machines in the target cluster', REFUSED_RETRY_MS);
      }
      return await unlessChanged('Machine', () => complete(hold));
    case 'abort':
      return await unlessChanged('Node', () => abort(hold));
  }
}

function begin(hold: NodeHold<Deps>): StepResult {
  hold.begin('Preparing the deletion. Draining the Node first.');
  show(hold, 'Draining', 'Draining the Node before the Machine is deleted.');
  return goOn(hold.ctx, 'the start to be recorded', 0);
}

/** A VM that is being made is recorded all the same: nothing is drained, but much would be forgotten. */
function goOn(ctx: MachineContext, waitingFor: string, afterMs?: number): StepResult {
  if (afterMs !== undefined) ctx.pass.alsoAfter(afterMs, waitingFor);
  return isBeingCreated(ctx.machine) ? next : waitFor(waitingFor);
}

async function empty(hold: NodeHold<Deps>): Promise<StepResult> {
  const state = await hold.empty();
  if (state?.kind === 'running') return waitFor(state.waitingFor);
  if (state?.kind === 'failed') return waitFor('the next drain retry');
  if (state?.kind === 'drained' && state.isNews) {
    const took = Math.round(state.tookMs / 1_000);
    hold.ctx.pass.event('Drained', `The Node was drained in ${took} s, before the deletion.`);
  }
  return await complete(hold);
}

/** The Node is empty, or need not be: that is told first, and with the next pass the Machine is deleted. */
async function complete(hold: NodeHold<Deps>): Promise<StepResult> {
  const { clock, completed, drains, deleteUnchanged } = hold.deps;
  const { observed, pass, log, signal } = hold.ctx;
  const { uid } = observed.metadata;
  if (!skipsDrain(policyOf(hold)) && !completed.has(uid)) {
    show(hold, 'Held', 'The Node is empty. Deleting the Machine.');
    pass.afterWrite(() => void completed.set(uid, 0));
    return requeue(0, RECORDED);
  }
  const heldMs = (completed.get(uid) ?? 0) - clock.monotonicMs();
  if (heldMs > 0) return requeue(heldMs, DELETED);
  const refused = await hold.attempt(
    () => deleteUnchanged(observed, signal),
    refusal('The Machine could not be deleted'),
  );
  if (refused !== undefined) {
    show(hold, 'Refused', refused);
    // That it was told is a change of the Machine, and must not be what sends the next one.
    completed.set(uid, clock.monotonicMs() + REFUSED_RETRY_MS);
    return requeue(REFUSED_RETRY_MS, DELETED);
  }
  log.info({}, 'deleted a machine after its Node was drained');
  pass.afterWrite(() => drains.end(hold.ctx, 'preparation'));
  return waitFor('the deletion to be recorded');
}

async function abort(hold: NodeHold<Deps>): Promise<StepResult> {
  const { deps, ctx } = hold;
  const { uid } = ctx.machine.metadata;
  deps.drains.end(ctx, 'preparation');
  const shown = preparationShownBy(ctx.observed)?.reason;
  const isShown = shown === 'aborting' || shown === 'failed';
  if (!isShown && deps.reportedOnce.isNew(uid, `aborting ${hold.since}`)) {
    show(hold, 'Returning', 'Uncordoning the Node.');
    return requeue(0, RECORDED);
  }
  // What it has sent may still cordon the Node.
  if (deps.activities.get(uid, 'drain')?.state === 'running') return waitFor('the drain to stop');
  const { refused } = await hold.giveBack(() => uncordon(hold));
  if (refused !== undefined) return requeue(REFUSED_RETRY_MS, UNCORDONED);
  hold.end('The prepared deletion was aborted: the machine is kept.');
  return requeue(0, RECORDED);
}

/** A conflict is an abort, or any other change: all of it is decided again. */
async function unlessChanged(kind: 'Machine' | 'Node', run: () => Promise<StepResult>): Promise<StepResult> {
  try {
    return await run();
  } catch (err) {
    if (isConflict(err)) return requeue(CONFLICT_RETRY_MS, `the latest version of the ${kind}`);
    throw err;
  }
}

/**
 * Takes back what a drain has left on the Node of a machine that is kept: a cordon that was sent when the drain was broken off may come after
 * the abort, for the server does what nobody waits for any more; and a restore of the control cluster undoes a deletion. The Node shows whose
 * the cordon is. In a cache that is old the machine may be kept although it is being deleted: it is read live.
 */
async function undoLeft({ ctx, on, deps }: NodeHold<Deps>): Promise<void> {
  if (on === undefined) return;
  const { observed, signal } = ctx;
  const isNeeded = (node: Node): boolean => isMaintained(ctx, node, on.node) || isEmptyForUpdate(node);
  const isCordoned = withoutOwnCordon(on.node) !== undefined && !isNeeded(on.node);
  const told = nodeConditionOf(on.node, NODE_TERMINATING.type);
  const isTerminating = told?.status === 'True' && told.reason === NODE_TERMINATING.reason;
  if (!isCordoned && !isTerminating) return;
  try {
    const live = await deps.readMachine(observed, signal);
    if (live?.metadata.uid !== observed.metadata.uid || isBeingDeleted(live) || isPreparationRequested(live)) return;
    if (isCordoned) await liftOwnCordon(ctx, on.nodes, on.node, isNeeded);
    const kept = { ...NODE_TERMINATING, status: 'False', message: 'The machine is kept.' } as const;
    if (isTerminating) await setCondition(deps, ctx, on.nodes, on.node, kept);
  } catch (err) {
    if (!(err instanceof ApiError) || signal.aborted) throw err;
    ctx.log.warn({ err, node: on.node.metadata.name }, 'could not undo what a drain left on a node');
    ctx.pass.alsoAfter(REFUSED_RETRY_MS, UNCORDONED);
  }
}

/**
 * Whether a maintenance needs a Node of the machine cordoned: it is asked for on that Node, or it is the Node that the Machine names, of a
 * machine whose maintenance is asked for, or not over yet.
 */
function isMaintained({ machine }: MachineContext, node: Node, named: NamedNode): boolean {
  const isNamed = typeof named === 'object' && named.metadata.uid === node.metadata.uid;
  return (isNamed && isUnderMaintenance(machine)) || isMaintenanceRequested(node, undefined);
}

/** Live: a cordon that the cache does not show yet would stay forever. */
async function uncordon({ ctx, deps: { machines } }: NodeHold<Deps>): Promise<void> {
  const { nodes } = ctx;
  if (nodes === undefined) return;
  const named = namedNode(ctx, machines);
  for (const { metadata } of await nodesOf(ctx, machines, nodes)) {
    const live = await nodes.read(metadata.name, ctx.signal);
    if (live?.metadata.uid === metadata.uid && !isMaintained(ctx, live, named)) await liftOwnCordon(ctx, nodes, live);
  }
}

function show({ ctx: { machine }, deps }: NodeHold<Deps>, stage: HoldStage, message: string): void {
  if (stage !== 'Held') deps.completed.delete(machine.metadata.uid);
  const shown = preparationShownBy(machine);
  const reason = REASONS[stage] ?? 'started';
  if (stage !== 'Over' && shown?.reason === reason && shown.message === message) return;
  const said = { status: stage === 'Held' ? 'True' : 'False', reason, message } as const;
  showCondition(machine, DELETION_PREPARED, stage === 'Over' ? undefined : said, deps.clock.now());
}
