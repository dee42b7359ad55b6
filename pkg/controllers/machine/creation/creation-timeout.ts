import { phaseOf, providerIDOf, vmClassNameOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { isBeingDeleted } from '../../../apis/meta.ts';
import type { Node } from '../../../apis/wire.ts';
import { formatDuration } from '../../../apis/duration.ts';
import { fromTimestamp } from '../../../base/clock/clock.ts';
import { next, requeue, stop } from '../../../work/reconcile/result.ts';
import { runsOnceHealthy } from '../../machine-facts/joining.ts';
import { badConditions, describeConditions, isHealthy, setupTaintsOf } from '../../machine-facts/node-health.ts';
import { CREATING } from '../../machine-facts/original-texts.ts';
import type { PaceFacts } from '../../machine-facts/pace.ts';
import type { Pool } from '../../machine-facts/replacement-budget.ts';
import { holdOf } from '../../machine-facts/replacement-hold.ts';
import { creationTimeoutMsOf, watchedConditionsOf } from '../../machine-facts/settings.ts';
import { isBeingCreated, isUnderWay, setOperation, wholeOf } from '../../machine-facts/status.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineContext, MachineStep } from '../context.ts';
import { becomeFailed, clustersOf, type FailDeps } from '../failure/fail.ts';
import { REPLACEMENT_RETRY_MS, reportHold } from '../failure/held-back.ts';
import { CATCH_UP_MS, isUnseen, liveCheck, type LiveCheckDeps, UNSEEN_NODE } from '../failure/live-check.ts';
import { type NotYet, takeGrant } from '../failure/turn.ts';
import { namedNode } from '../node/named-node.ts';
import { initializingSinceMs, refusedSinceMs } from './waiting-since.ts';

type Deps = FailDeps &
  LiveCheckDeps &
  Pick<Collaborators, 'settings' | 'classes' | 'activities' | 'trust' | 'metrics' | 'budget' | 'pace' | 'reportedOnce'>;
type Waiting = Pick<MachineContext, 'machine' | 'observed' | 'nodes'>;

/**
 * Fails a machine that got no VM in time, or whose VM did not become a healthy Node in time; each has the whole timeout: the
 * first is counted from the Machine's creation, the second from when the VM was confirmed. Time in which we could see nothing does
 * not count. Its MachineSet replaces it. Before that Machine and Node are read live: a Node that changed unseen is looked at first.
 *
 * One whose Node has joined is given up no faster than unhealthy machines are replaced: what sets up Nodes, or initializes VMs, mostly fails for
 * all of them, and new ones would not help. The one that came in place of the last shows whether they do; it waits for no others, or it could
 * be what they wait for:
 *
 * | another machine of its pool                    | counts as being replaced                                         |
 * |------------------------------------------------|------------------------------------------------------------------|
 * | is on its way                                  | until it runs, or is overdue                                     |
 * | gets no VM for lack of capacity                | for one creation timeout since one was given up: it may be that  |
 * |                                                | which came; else this one may hold the capacity that it lacks    |
 * | is being deleted                               | for one creation timeout: what came in its place counts itself   |
 * | is any other                                   | as for unhealthy machines                                        |
 */
export const creationTimeout = (deps: Deps): MachineStep => ({
  name: 'creation-timeout',

  async run(ctx) {
    const { machine, pass } = ctx;
    const time = creationTime(deps, ctx);
    if (time === undefined) return next;

    const { startMs, timeoutMs, leftMs } = time;
    if (leftMs > 0) {
      // It is not overdue any more; what is told of that stays while a young process only waits to say it again.
      if (leftMs > deps.trust.graceLeftMs(clustersOf(ctx)) && ctx.held === undefined && holdOf(machine) !== undefined)
        setOperation(machine, { type: 'Create', state: 'Processing', description: CREATING }, deps.clock.now());
      pass.alsoAfter(leftMs, phaseOf(machine) === 'Pending' ? 'the Node to join' : 'the VM to be created');
      return next;
    }
    if (!mayGiveUp(deps, ctx, timeoutMs)) {
      pass.alsoAfter(REPLACEMENT_RETRY_MS, 'other machines to join, or to be replaced');
      return next;
    }
    const doubt = await doubtOf(deps, ctx);
    if (doubt !== undefined) return requeue(CATCH_UP_MS, doubt);
    await becomeFailed(deps, ctx, 'creation-timeout');
    explainFailure(deps, ctx, startMs, timeoutMs);
    return stop;
  },
});

/** How long a machine may still wait for its VM, or its VM to become a healthy Node; undefined when it waits for neither. */
export function creationTime(
  deps: Pick<Deps, 'settings' | 'clock' | 'trust' | 'activities'>,
  ctx: Waiting,
): { readonly startMs: number; readonly timeoutMs: number; readonly leftMs: number } | undefined {
  const { settings, clock, trust } = deps;
  const startMs = startOf(deps, ctx);
  if (startMs === undefined) return undefined;
  const timeoutMs = creationTimeoutMsOf(ctx.machine, settings);
  const clusters = clustersOf(ctx);
  const waitingMs = clock.now() - startMs;
  // What happened while nothing could be seen is learnt of only now, and what was to be done could not be.
  const unseenMs = trust.blindMs(clusters, clock.monotonicMs() - waitingMs);
  return { startMs, timeoutMs, leftMs: Math.max(timeoutMs - (waitingMs - unseenMs), trust.graceLeftMs(clusters)) };
}

/**
 * Whether the machine may be given up now: one that has joined, in its turn. One that may not says why; by an Event alone where its last
 * operation tells of a failure, which says more.
 */
function mayGiveUp(deps: Deps, ctx: MachineContext, timeoutMs: number): boolean {
  const { machines, settings, reportedOnce } = deps;
  const { machine, pass } = ctx;
  const node = namedNode(ctx, machines);
  const isUnidentified = machine.status.lastOperation?.errorCode === 'NodeUnidentified';
  if (typeof node !== 'object' && !isUnidentified) return true;
  const watched = watchedConditionsOf(machine, settings);
  // Its VM works, and is confirmed as soon as its driver answers.
  if (typeof node === 'object' && isHealthy(node.status?.conditions ?? [], watched) && runsOnceHealthy(machine, node))
    return false;
  const notYet = takeTurn(deps, ctx, timeoutMs);
  if (notYet === undefined) return true;
  const { held } = notYet;
  if (phaseOf(machine) === 'Pending' && typeof node === 'object') {
    const cause = `Machine ${machine.metadata.name} has not joined the cluster in ${formatDuration(timeoutMs)}: Node ${node.metadata.name} ${describeWant(node, watched)}.`;
    reportHold(deps, ctx, held, cause);
  } else if (reportedOnce.isNew(machine.metadata.uid, `held ${held.kind}`)) {
    pass.event('ReplacementDelayed', `Not replaced yet: ${held.text}`);
  }
  return false;
}

/** Takes the machine's turn among those of its pool: see the table above. */
function takeTurn(deps: Deps, ctx: MachineContext, timeoutMs: number): NotYet | undefined {
  const { budget, clock, pace, settings, trust } = deps;
  const { observed, nodes } = ctx;
  const facts = paceOf(observed, budget.poolOf(observed), timeoutMs);
  // What another process has given up is not known.
  const mayHaveGivenUp =
    trust.trustedForMs(clustersOf(ctx)) < timeoutMs || (facts !== undefined && pace.waitMs(facts) > 0);
  const isStuck = (other: Machine): boolean => {
    const machine = wholeOf(other);
    const deletedMs = fromTimestamp(machine.metadata.deletionTimestamp);
    if (deletedMs !== undefined) return clock.now() - deletedMs >= creationTimeoutMsOf(machine, settings);
    if (creationTime(deps, { machine, observed: other, nodes })?.leftMs === 0) return true;
    const lacksCapacity = providerIDOf(other) === '' && machine.status.lastOperation?.errorCode === 'ResourceExhausted';
    return lacksCapacity && !mayHaveGivenUp;
  };
  const notYet = takeGrant(deps, ctx, isStuck);
  if (notYet === undefined && facts !== undefined) pace.begin(facts);
  return notYet;
}

/** So many are given up within one creation timeout as the pool may replace at once, however many are overdue. No unhealthy machine is counted. */
function paceOf({ metadata }: Machine, pool: Pool | undefined, timeoutMs: number): PaceFacts | undefined {
  if (pool === undefined) return undefined;
  const key = `joining ${pool.key}`;
  const { limit } = pool;
  return {
    uid: metadata.uid,
    pool: { key, isAlone: false, limit },
    zone: { key, together: 1 },
    healthTimeoutMs: timeoutMs,
  };
}

/** Why a Node that has joined is not used. */
function describeWant(node: Node, watched: readonly string[]): string {
  if (isBeingDeleted(node)) return 'was deleted';
  const { conditions = [] } = node.status ?? {};
  const bad = badConditions(conditions, watched);
  if (bad.length > 0) return `is not healthy, ${describeConditions(bad)}`;
  const taints = setupTaintsOf(node);
  if (taints.length > 0) return `is healthy, and still has taint ${taints.join(' and ')}`;
  return conditions.length === 0 ? 'reports no conditions' : 'is healthy, and its VM is not initialized';
}

/** What speaks against it, read live; undefined when nothing does. */
async function doubtOf(deps: Deps, ctx: MachineContext): Promise<string | undefined> {
  const look = await liveCheck(deps, ctx);
  if (look.doubt !== undefined) return look.doubt;
  // Nothing is to be waited for without a Node.
  return phaseOf(ctx.machine) === 'Pending' && isUnseen(ctx, look.node) ? UNSEEN_NODE : undefined;
}

/** From when a machine's waiting counts; undefined when it waits for nothing, or has got its VM a moment ago. */
function startOf(
  { activities, clock }: Pick<Deps, 'activities' | 'clock'>,
  { machine, observed }: Waiting,
): number | undefined {
  const created = fromTimestamp(machine.metadata.creationTimestamp);
  if (isBeingCreated(machine)) {
    const initializingMs = providerIDOf(observed) === '' ? undefined : initializingSinceMs(observed);
    const recordingMs = refusedSinceMs(observed);
    if (initializingMs !== undefined) return initializingMs;
    if (recordingMs !== undefined) return recordingMs;
    const creation = activities.get(machine.metadata.uid, 'create');
    if (creation?.state !== 'done' || creation.result === undefined) return created;
    if (providerIDOf(observed) === '') return undefined;
    // A VM that came in the last moment has the whole time to be initialized; Pending starts the time to join.
    return clock.now() - (clock.monotonicMs() - creation.settledAtMs);
  }
  if (phaseOf(machine) !== 'Pending') return undefined;
  return fromTimestamp(machine.status.currentStatus?.lastUpdateTime) ?? created;
}

/** A failure of the provider says more than the timeout; autoscalers read its code. */
function explainFailure(deps: Deps, ctx: MachineContext, startMs: number, timeoutMs: number): void {
  const { machine, observed, pass, log } = ctx;
  const { name, namespace = '' } = machine.metadata;
  const { lastOperation } = machine.status;
  const description = `Machine ${name} failed to join the cluster in ${formatDuration(timeoutMs)}.`;
  const hasCause = lastOperation?.type === 'Create' && lastOperation.state === 'Failed';
  const told = isUnderWay(lastOperation) ? `${description} ${lastOperation?.description ?? ''}` : description;
  if (!hasCause) {
    setOperation(
      machine,
      {
        type: lastOperation?.type ?? 'Create',
        state: 'Failed',
        // A Node that is healthy now makes nothing of a VM that its driver has not finished.
        ...(lastOperation?.errorCode === 'VMBeingInitialized' && { errorCode: 'VMBeingInitialized' as const }),
        description: told,
      },
      deps.clock.now(),
    );
  }
  pass.event('CreationTimeout', hasCause ? `${description} ${lastOperation.description ?? ''}` : told);
  pass.afterWrite(() => {
    log.warn({ ms: deps.clock.now() - startMs }, 'machine failed by creation timeout');
    if (phaseOf(observed) !== 'Pending') return;
    deps.metrics.failedToJoin(machine, deps.classes.get(`${namespace}/${vmClassNameOf(machine)}`));
  });
}
