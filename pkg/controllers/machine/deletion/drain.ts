import { NODE_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import type { Node } from '../../../apis/wire.ts';
import { MINUTE_MS } from '../../../clock/clock.ts';
import type { DrainOutcome, DrainRequest } from '../../../drain/drain.ts';
import { GateClosedError } from '../../../gate/gate.ts';
import { next, requeue, waitFor, type StepResult } from '../../../reconcile/result.ts';
import type { Target } from '../../../targets/targets.ts';
import { isUnresolved, resolveClass } from '../class-resolution.ts';
import type { MachineContext, MachineStep } from '../context.ts';
import type { DrainRecord, ForceReason } from '../memory.ts';
import type { NodeAccess } from '../node-access.ts';
import { goesWith } from '../node-owner.ts';
import { maxEvictRetriesOf } from '../settings.ts';
import { yieldDrain } from '../yield-drain.ts';
import { advance, isAt, isNodeAbandoned, stay, untilRecorded } from './cursor.ts';
import { describeProgress } from './drain-text.ts';
import { drainDeadlineMs, forceReasonOf } from './force.ts';
import { noteProgress, PROGRESS_MS, showProgress } from './show-drain.ts';
import { isStillOurs } from './still-ours.ts';

/** Longest forced drain. */
const FORCED_MS = MINUTE_MS;
/** When to try again after the gate was closed. */
const GATE_RETRY_MS = 5_000;
/** Wait after a drain that could not do its work: after the first, doubled with each further one up to the longest. */
const FIRST_RETRY_MS = 5_000;
const LONGEST_RETRY_MS = 30_000;

const FORCE_TEXTS: Record<ForceReason, string> = {
  label: 'the deletion is forced by its label',
  timeout: 'the drain timeout has passed',
  'not-ready': 'the Node was not ready for 5 min',
  'readonly-filesystem': 'the Node had a read-only file system for 5 min',
};

/**
 * Empties the Node, as an activity. A normal drain gives way to a forced one as soon as there is a reason to force it; what a
 * forced drain leaves behind does not stop the deletion.
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
      dismiss(ctx);
      const name = machine.metadata.labels?.[NODE_LABEL] ?? '';
      advance(ctx, 'delete-vm', name === '' ? '' : `Node ${name} is not there, so nothing is drained.`);
      return next;
    }
    return untilRecorded(ctx, 'drain') ?? yieldDrain(ctx, 'deletion') ?? (await look(ctx, target, node));
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

async function look(ctx: MachineContext, target: Target, node: Node): Promise<StepResult> {
  const { machine, activities, memory } = ctx;
  const { uid } = machine.metadata;
  const activity = activities.get(uid, 'drain');
  const record = memory.drains.get(uid);
  if (activity !== undefined && activity.state !== 'running') return ended(ctx, activity, record);

  if (activity?.state === 'running' && record?.isSuperseded === true) return waitFor('the normal drain to end');
  const force = record?.force ?? (await forceReasonOf(ctx, node));
  if (activity === undefined) return await start(ctx, target, node, force);
  if (force !== undefined && record !== undefined && record.force === undefined) {
    record.isSuperseded = true;
    activities.abort(uid, 'drain', FORCE_TEXTS[force]);
    return waitFor('the normal drain to end');
  }
  showProgress(ctx, record);
  return waitFor('the pods to leave');
}

async function start(
  ctx: MachineContext,
  target: Target,
  node: Node,
  force: ForceReason | undefined,
): Promise<StepResult> {
  const { machine, key, activities, memory, clock, pass, signal, drain: run } = ctx;
  const { uid } = machine.metadata;
  const before = memory.drains.get(uid);
  const waitMs = force === undefined ? (before?.retryAtMs ?? 0) - clock.monotonicMs() : 0;
  if (waitMs > 0) return requeue(waitMs, 'the next attempt to drain');
  // What was written for it a moment ago was as good as a look; a deletion that was taken over has no such proof.
  if (!memory.advanced.has(uid) && !(await isStillOurs(ctx, signal))) return waitFor('the Machine as it is now');

  const startedMs = before?.startedMs ?? clock.monotonicMs();
  const record: DrainRecord = {
    purpose: 'deletion',
    force,
    startedMs,
    progress: undefined,
    isSuperseded: false,
    failures: before?.failures ?? 0,
  };
  memory.drains.set(uid, record);
  const request = requestOf(ctx, target, node, force);
  activities.startOrGet({ uid, key, provider: undefined }, 'drain', (aborted, tell) =>
    run(request, aborted, (progress) => {
      if (noteProgress(record, progress, clock.monotonicMs())) tell();
    }),
  );
  if (force !== undefined) pass.event('DrainForced', `Pods are deleted, not evicted: ${FORCE_TEXTS[force]}.`);
  pass.alsoAfter(PROGRESS_MS, 'the pods to leave');
  return waitFor('the pods to leave');
}

function requestOf(ctx: MachineContext, target: Target, node: Node, force: ForceReason | undefined): DrainRequest {
  const { machine, settings, clock } = ctx;
  const { name, uid } = node.metadata;
  return {
    target,
    nodeName: name,
    nodeUID: uid,
    barrier: 'cordon',
    nodeCondition: {
      type: 'Terminating',
      status: 'True',
      reason: 'ScaleDown',
      message: `Machine ${machine.metadata.name} is being deleted.`,
    },
    force: force !== undefined,
    deadlineMs: force === undefined ? drainDeadlineMs(ctx) : clock.now() + FORCED_MS,
    maxEvictRetries: force === undefined ? maxEvictRetriesOf(machine, settings) : 1,
    pvDetachTimeoutMs: settings.pvDetachTimeoutMs,
    pvReattachTimeoutMs: settings.pvReattachTimeoutMs,
    volumeIDOf: async (spec: unknown, signal: AbortSignal) => {
      const resolved = await resolveClass({ ...ctx, signal }, machine);
      return isUnresolved(resolved) ? undefined : (await resolved.driver.volumeIDs([spec], signal))[0];
    },
  };
}

type Ended = { state: 'done'; result: DrainOutcome } | { state: 'failed'; error: unknown };

function ended(ctx: MachineContext, activity: Ended, record: DrainRecord | undefined): StepResult {
  const { machine, activities, pass, metrics, clock, memory } = ctx;
  const { uid } = machine.metadata;
  const isForced = record?.force !== undefined;
  const leftPods = activity.state === 'failed' || activity.result.kind === 'incomplete';
  if (leftPods && record?.isSuperseded === true) {
    activities.forget(uid, 'drain');
    return requeue(0, 'the forced drain to start');
  }
  if (activity.state === 'failed') {
    activities.forget(uid, 'drain');
    return failed(ctx, activity.error, isForced);
  }
  const outcome = activity.result;
  if (outcome.kind === 'incomplete' && !isForced) {
    activities.forget(uid, 'drain');
    return retry(ctx, `Drain failed. ${describeProgress(outcome.progress)}`);
  }
  pass.afterWrite(() => dismiss(ctx));
  if (outcome.kind === 'node-gone') {
    advance(ctx, 'delete-vm', 'The Node is gone, so there is nothing to drain.');
    return next;
  }
  const tookMs = clock.monotonicMs() - (memory.drains.get(uid)?.startedMs ?? clock.monotonicMs());
  if (outcome.kind === 'drained') {
    pass.event('Drained', `The Node was drained ${isForced ? 'by force ' : ''}in ${Math.round(tookMs / 1_000)} s.`);
    pass.afterWrite(() => metrics.drained(machine, tookMs));
    advance(ctx, isForced ? 'detach-volumes' : 'delete-vm', isForced ? 'Force Drain successful.' : 'Drain successful.');
  } else {
    pass.event('DrainFailed', `The forced drain left pods behind. ${describeProgress(outcome.progress)}`);
    advance(ctx, 'detach-volumes', `Force Drain failed. ${describeProgress(outcome.progress)}`);
  }
  return next;
}

function failed(ctx: MachineContext, error: unknown, isForced: boolean): StepResult {
  const { pass } = ctx;
  if (error instanceof GateClosedError) return requeue(GATE_RETRY_MS, 'the target cluster to be reachable');
  const text = error instanceof Error ? error.message : String(error);
  if (isForced) {
    pass.event('DrainFailed', `The forced drain failed: ${text}`);
    pass.afterWrite(() => dismiss(ctx));
    advance(ctx, 'detach-volumes', `Force Drain failed: ${text}.`);
    return next;
  }
  return retry(ctx, `Drain failed: ${text}.`);
}

/** Past the deadline the next attempt is a forced one, and does not wait. */
function retry(ctx: MachineContext, text: string): StepResult {
  const { memory, machine, clock, pass } = ctx;
  const { uid } = machine.metadata;
  const record = memory.drains.get(uid);
  const failures = record?.failures ?? 0;
  const backoffMs = Math.min(FIRST_RETRY_MS * 2 ** failures, LONGEST_RETRY_MS);
  const waitMs = Math.max(0, Math.min(backoffMs, drainDeadlineMs(ctx) - clock.now()));
  if (record !== undefined) Object.assign(record, { retryAtMs: clock.monotonicMs() + waitMs, failures: failures + 1 });
  if (stay(ctx, 'drain', text)) pass.event('DrainFailed', text);
  return requeue(waitMs, 'the next attempt to drain');
}

function dismiss({ machine, activities, memory }: MachineContext): void {
  const { uid } = machine.metadata;
  activities.abort(uid, 'drain', 'there is nothing to drain any more');
  activities.forget(uid, 'drain');
  memory.drains.delete(uid);
}
