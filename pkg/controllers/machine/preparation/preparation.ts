import {
  DELETION_PREPARATION_SINCE_ANNOTATION,
  FORCE_DELETION_LABEL,
  MAINTENANCE_SINCE_ANNOTATION,
} from '../../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { isBeingDeleted } from '../../../apis/meta.ts';
import type { Node } from '../../../apis/wire.ts';
import { fromTimestamp, toTimestamp } from '../../../clock/clock.ts';
import { ApiError, isConflict } from '../../../kube/errors.ts';
import { withoutCondition, conditionOf, withCondition, dated } from '../../../reconcile/conditions.ts';
import { next, requeue, waitFor, type StepResult } from '../../../reconcile/result.ts';
import { requestedPolicy, skipsDrain, type DeletionPolicy } from '../../machines/deletion-policy.ts';
import { describeHooks, hooksOf } from '../../machines/hooks.ts';
import { isMaintenanceRequested } from '../../machines/maintenance.ts';
import type { NodeAccess } from '../../machines/node-access.ts';
import { deploymentOf } from '../../machines/owners.ts';
import {
  DELETION_PREPARED,
  hasPreparationBegun,
  isPreparationRequested,
  preparationShownBy,
  type PreparationPhase,
} from '../../machines/prepared-deletion.ts';
import { isBeingCreated } from '../../machines/status.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineContext, MachineStep } from '../context.ts';
import { isForced } from '../deletion/cursor.ts';
import { nodeToDrain, nodesOf } from '../deletion/nodes.ts';
import type { DrainPlan } from '../drain/plan.ts';
import { reportDrainProgress } from '../drain/report.ts';
import type { DrainState } from '../drain/session.ts';
import { namedNode, type NamedNode } from '../node/named-node.ts';
import { liftOwnCordon, withoutOwnCordon } from '../node/own-cordon.ts';
import { planPreparation } from './plan.ts';

/** When to look again at a Machine that has changed meanwhile: the cache shows it in a moment. */
const CONFLICT_RETRY_MS = 200;
/** When to try again what the API server refuses. */
const REFUSED_RETRY_MS = 10_000;
const REFUSED_WAIT = 'the API server to delete the Machine';

type Deps = Pick<
  Collaborators,
  'clock' | 'machines' | 'owners' | 'activities' | 'drains' | 'reportedOnce' | 'readMachine' | 'deleteUnchanged'
>;

/** With the machines of which it was told that they are prepared, by UID, and when (monotonic) the DELETE may be sent. */
type Own = Deps & { readonly completed: Map<string, number> };

/**
 * Prepares the deletion of a machine that is asked for by annotation, and deletes the Machine when its Node is empty. Until then it goes on
 * as any other, and the request can be taken back: the DELETE holds only for the very version that carries it. plan.ts says what happens when.
 */
export const preparation = (collaborators: Deps): MachineStep => {
  const deps: Own = { ...collaborators, completed: new Map() };
  return {
    name: 'preparation',
    run: (ctx) => prepare(deps, ctx),
    forget: (uid) => void deps.completed.delete(uid),
  };
};

async function prepare(deps: Own, ctx: MachineContext): Promise<StepResult> {
  const { machine, observed, nodes } = ctx;
  const isRequested = isPreparationRequested(observed);
  const policy = requestedPolicy(machine, deploymentOf(machine, deps.owners));
  const hasBegun = hasPreparationBegun(observed);
  if (!isRequested && !hasBegun) {
    show(deps, ctx, undefined);
    await liftLeft(deps, ctx);
    return next;
  }
  const node = nodes === undefined ? undefined : await nodeToDrain(deps.machines, ctx, nodes);
  const hooks = hooksOf(machine, 'deletion');
  const facts = { isRequested, hasBegun, policy, hooks: hooks.length, hasNode: node !== undefined };
  switch (planPreparation(facts)) {
    case 'nothing':
      return next;
    case 'begin':
      return begin(deps, ctx);
    case 'await-hooks':
      return hold(deps, ctx, hooks);
    case 'drain':
      if (sinceMsOf(machine) === undefined) return begin(deps, ctx);
      // `hasNode` says that both are there.
      return await empty(deps, ctx, nodes as NodeAccess, node as Node, policy);
    case 'delete':
      return await complete(deps, ctx, policy);
    case 'abort':
      return await abort(deps, ctx);
  }
}

/** That a preparation has begun is recorded before anything happens to the Node: whoever goes on knows what to undo. */
function begin(deps: Own, ctx: MachineContext): StepResult {
  const { machine, observed, pass } = ctx;
  const since = { [DELETION_PREPARATION_SINCE_ANNOTATION]: toTimestamp(deps.clock.now()) };
  machine.metadata.annotations = { ...machine.metadata.annotations, ...since };
  show(deps, ctx, 'started', 'Draining the Node before the Machine is deleted.');
  if (!hasPreparationBegun(observed))
    pass.event('DeletionPreparing', 'Preparing the deletion. Draining the Node first.', 'record');
  return goOn(ctx, 'the start to be recorded', 0);
}

/** While hooks hold it up no time counts: the drain has its whole timeout from when the last of them went. */
function hold(deps: Own, ctx: MachineContext, hooks: readonly string[]): StepResult {
  const { machine, pass } = ctx;
  deps.drains.end(ctx, 'preparation');
  machine.metadata.annotations = { ...machine.metadata.annotations, [DELETION_PREPARATION_SINCE_ANNOTATION]: '' };
  const text = describeHooks(hooks);
  show(deps, ctx, 'started', text);
  if (deps.reportedOnce.isNew(machine.metadata.uid, `preparation: ${text}`)) pass.event('WaitingForHooks', text);
  return goOn(ctx, 'the hooks to be removed');
}

/** A VM that is being made is recorded all the same: nothing is drained, but much would be forgotten. */
function goOn(ctx: MachineContext, waitingFor: string, afterMs?: number): StepResult {
  if (afterMs !== undefined) ctx.pass.alsoAfter(afterMs, waitingFor);
  return isBeingCreated(ctx.machine) ? next : waitFor(waitingFor);
}

async function empty(
  deps: Own,
  ctx: MachineContext,
  nodes: NodeAccess,
  node: Node,
  policy: DeletionPolicy | undefined,
): Promise<StepResult> {
  const state = await deps.drains.advance(ctx, planOf(deps, ctx, { nodes, node, policy }));
  switch (state.kind) {
    case 'running':
      reportRunning(deps, ctx, state);
      return waitFor(state.waitingFor);
    case 'failed':
      show(deps, ctx, 'failed', state.text);
      if (state.isNews) ctx.pass.event('DrainFailed', state.text);
      return waitFor('the next drain retry');
    case 'drained':
      if (state.isNews)
        ctx.pass.event(
          'Drained',
          `The Node was drained in ${Math.round(state.tookMs / 1_000)} s, before the deletion.`,
        );
      return await complete(deps, ctx, policy);
    case 'node-gone':
    case 'left-pods':
      return await complete(deps, ctx, policy);
  }
}

function planOf(
  deps: Own,
  { machine, observed, signal }: MachineContext,
  { nodes, node, policy }: { nodes: NodeAccess; node: Node; policy: DeletionPolicy | undefined },
): DrainPlan {
  const isWanted = (live: Machine): boolean => !isBeingDeleted(live) && isPreparationRequested(live);
  return {
    purpose: 'preparation',
    nodes,
    node,
    barrier: 'marked-cordon',
    startMs: sinceMsOf(machine) ?? deps.clock.now(),
    forcedBy: isForced({ machine }) ? `the Machine has label ${FORCE_DELETION_LABEL}` : undefined,
    forceRule: policy === 'graceful' ? 'request' : 'usual',
    isWanted,
    mayBegin: async () => {
      const live = await deps.readMachine(observed, signal);
      return live?.metadata.uid === observed.metadata.uid && isWanted(live);
    },
    onForcedFailure: 'retry',
  };
}

function reportRunning(deps: Own, ctx: MachineContext, state: Extract<DrainState, { kind: 'running' }>): void {
  const phase = state.isLate ? 'failed' : 'started';
  const shown = preparationShownBy(ctx.observed);
  reportDrainProgress(deps, ctx.pass, state, {
    isSaid: (text) => shown?.reason === phase && shown.message === text,
    say: (text) => show(deps, ctx, phase, text),
  });
  if (state.isLate && deps.reportedOnce.isNew(ctx.machine.metadata.uid, 'late preparation'))
    ctx.pass.event(
      'DrainFailed',
      'The Node could not be drained within the drain timeout: the Machine is not deleted.',
    );
}

/** The Node is empty, or need not be: that is told first, and with the next pass the Machine is deleted. */
async function complete(deps: Own, ctx: MachineContext, policy: DeletionPolicy | undefined): Promise<StepResult> {
  const { observed, pass, log, signal } = ctx;
  const { uid } = observed.metadata;
  if (!skipsDrain(policy) && !deps.completed.has(uid)) {
    show(deps, ctx, 'completed', 'The Node is empty. Deleting the Machine.');
    pass.afterWrite(() => void deps.completed.set(uid, 0));
    return requeue(0, 'the end of the drain to be recorded');
  }
  const heldMs = (deps.completed.get(uid) ?? 0) - deps.clock.monotonicMs();
  if (heldMs > 0) return requeue(heldMs, REFUSED_WAIT);
  try {
    await deps.deleteUnchanged(observed, signal);
  } catch (err) {
    // An abort, or any other change: all of it is decided anew.
    if (isConflict(err)) return requeue(CONFLICT_RETRY_MS, 'the latest version of the Machine');
    if (!(err instanceof ApiError) || signal.aborted) throw err;
    const text = `The Machine could not be deleted: ${err.message}.`;
    show(deps, ctx, 'failed', text);
    // That it was told is a change of the Machine, and must not be what sends the next one.
    deps.completed.set(uid, deps.clock.monotonicMs() + REFUSED_RETRY_MS);
    if (deps.reportedOnce.isNew(uid, text)) pass.event('DeletionNotPrepared', text);
    return requeue(REFUSED_RETRY_MS, REFUSED_WAIT);
  }
  log.info({}, 'deleted a machine after its Node was drained');
  pass.afterWrite(() => deps.drains.end(ctx, 'preparation'));
  return waitFor('the deletion to be recorded');
}

/** Gives the Node back to its pods: only what we have cordoned is uncordoned. */
async function abort(deps: Own, ctx: MachineContext): Promise<StepResult> {
  const { machine, observed, nodes, pass } = ctx;
  const { uid } = machine.metadata;
  deps.drains.end(ctx, 'preparation');
  const shown = preparationShownBy(observed)?.reason;
  if (shown !== 'aborting' && shown !== 'failed' && deps.reportedOnce.isNew(uid, `aborting ${sinceOf(machine)}`)) {
    show(deps, ctx, 'aborting', 'Uncordoning the Node.');
    return requeue(0, 'the end of the drain to be recorded');
  }
  // What it has sent may still cordon the Node.
  if (deps.activities.get(uid, 'drain')?.state === 'running') return waitFor('the drain to stop');
  try {
    if (nodes !== undefined) await uncordon(deps, ctx, nodes);
  } catch (err) {
    if (isConflict(err)) return requeue(CONFLICT_RETRY_MS, 'the latest version of the Node');
    if (!(err instanceof ApiError) || ctx.signal.aborted) throw err;
    const text = `The Node could not be uncordoned: ${err.message}.`;
    show(deps, ctx, 'failed', text);
    if (deps.reportedOnce.isNew(uid, text)) pass.event('DeletionNotPrepared', text);
    return requeue(REFUSED_RETRY_MS, 'the API server to uncordon the Node');
  }
  const { [DELETION_PREPARATION_SINCE_ANNOTATION]: _since, ...annotations } = machine.metadata.annotations ?? {};
  machine.metadata.annotations = annotations;
  show(deps, ctx, undefined);
  pass.event('DeletionAborted', 'The prepared deletion was aborted: the machine is kept.', 'record');
  return requeue(0, 'the end of the drain to be recorded');
}

/**
 * A cordon that a drain had sent when it was broken off may come after the abort: the server does what nobody waits for any more. The Node
 * shows whose it is.
 */
async function liftLeft({ machines }: Deps, ctx: MachineContext): Promise<void> {
  const { nodes, pass, log } = ctx;
  const node = namedNode(ctx, machines);
  if (nodes === undefined || typeof node !== 'object' || withoutOwnCordon(node) === undefined) return;
  if (isMaintained(ctx, node, node)) return;
  try {
    await liftOwnCordon(ctx, nodes, node);
  } catch (err) {
    if (!(err instanceof ApiError) || ctx.signal.aborted) throw err;
    log.warn({ err, node: node.metadata.name }, 'could not remove a cordon that is no longer needed');
    pass.alsoAfter(REFUSED_RETRY_MS, 'the API server to uncordon the Node');
  }
}

/**
 * Whether a maintenance needs a Node of the machine cordoned: it is asked for on that Node, or it is the Node that the Machine names, of a
 * machine whose maintenance is asked for, or not over yet.
 */
function isMaintained({ machine }: MachineContext, node: Node, named: NamedNode): boolean {
  const isNamed = typeof named === 'object' && named.metadata.uid === node.metadata.uid;
  const isRecorded = machine.metadata.annotations?.[MAINTENANCE_SINCE_ANNOTATION] !== undefined;
  return isNamed ? isRecorded || isMaintenanceRequested(machine, node) : isMaintenanceRequested(node, undefined);
}

/** Live: a cordon that the cache does not show yet would stay forever. */
async function uncordon({ machines }: Deps, ctx: MachineContext, nodes: NodeAccess): Promise<void> {
  const named = namedNode(ctx, machines);
  for (const { metadata } of await nodesOf(ctx, machines, nodes)) {
    const live = await nodes.read(metadata.name, ctx.signal);
    if (live?.metadata.uid === metadata.uid && !isMaintained(ctx, live, named)) await liftOwnCordon(ctx, nodes, live);
  }
}

function sinceMsOf(machine: Machine): number | undefined {
  return fromTimestamp(sinceOf(machine));
}

function sinceOf({ metadata }: Machine): string {
  return metadata.annotations?.[DELETION_PREPARATION_SINCE_ANNOTATION] ?? '';
}

/** Tells how far it is, as a condition; undefined takes that away. */
function show(
  { clock, completed }: Own,
  { machine }: MachineContext,
  phase: PreparationPhase | undefined,
  message = '',
): void {
  if (phase !== 'completed') completed.delete(machine.metadata.uid);
  const { machineConditions } = machine.status;
  const shown = conditionOf(machineConditions, DELETION_PREPARED);
  if (phase === undefined) {
    if (shown !== undefined) machine.status.machineConditions = withoutCondition(machineConditions, DELETION_PREPARED);
    return;
  }
  const status = phase === 'completed' ? 'True' : 'False';
  if (shown?.reason === phase && shown.message === message) return;
  const current = { type: DELETION_PREPARED, status, reason: phase, message } as const;
  machine.status.machineConditions = withCondition(machineConditions, dated(current, machineConditions, clock.now()));
}
