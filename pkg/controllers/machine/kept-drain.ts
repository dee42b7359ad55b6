import { FORCE_DRAIN_LABEL } from '../../apis/machine/v1alpha1/labels.ts';
import { isBeingDeleted } from '../../apis/meta.ts';
import type { Node } from '../../apis/wire.ts';
import { MINUTE_MS } from '../../clock/clock.ts';
import type { Barrier, DrainOutcome, DrainProgress, DrainRequest } from '../../drain/drain.ts';
import { GateClosedError } from '../../gate/gate.ts';
import type { Target } from '../../targets/targets.ts';
import { isUnresolved, resolveClass } from './class-resolution.ts';
import type { MachineContext } from './context.ts';
import { describeProgress, isHeldUp, reasonOf } from './deletion/drain-text.ts';
import { brokenness } from './deletion/force.ts';
import { noteProgress, PROGRESS_MS } from './deletion/show-drain.ts';
import type { DrainPurpose, DrainRecord, ForceReason } from './memory.ts';
import { drainTimeoutMsOf, maxEvictRetriesOf } from './settings.ts';
import { clustersOf } from './steps/fail.ts';
import { yieldDrain } from './yield-drain.ts';

/** Longest forced drain. */
const FORCED_MS = MINUTE_MS;
/** When to try again after the gate was closed. */
const GATE_RETRY_MS = 5_000;
/** Wait after a drain that could not do its work. */
const RETRY_MS = 30_000;

const FORCE_TEXTS: Record<ForceReason, string> = {
  label: `the Machine carries label ${FORCE_DRAIN_LABEL}`,
  timeout: 'the drain timeout has passed',
  'not-ready': 'the Node was not ready for 5 min',
  'readonly-filesystem': 'the Node had a read-only file system for 5 min',
};

/** A drain of a Node whose machine is kept. */
export interface KeptDrain {
  readonly purpose: Exclude<DrainPurpose, 'deletion'>;
  readonly target: Target;
  readonly node: Node;
  readonly barrier: Barrier;
  /** Wall time from which the drain timeout counts; persisted somewhere. */
  readonly startMs: number;
}

/** How such a drain stands. */
export type KeptDrainState =
  | { readonly kind: 'running'; readonly record: DrainRecord | undefined; readonly deadlineMs: number }
  | { readonly kind: 'drained' }
  | { readonly kind: 'node-gone' }
  /** It is tried again by itself. */
  | { readonly kind: 'failed'; readonly text: string; readonly isNews: boolean };

/**
 * Empties a Node whose machine is kept, as an activity; to be called by every pass until it says `drained`, and then again until
 * that was recorded and `dismissKeptDrain` called. A normal drain gives way to a forced one as soon as there is a reason to force
 * it. Unlike in a deletion, a drain that fails, forced or not, is never taken for done.
 */
export async function drainKept(ctx: MachineContext, drain: KeptDrain): Promise<KeptDrainState> {
  const { machine, activities, memory } = ctx;
  const { uid } = machine.metadata;
  const isTaken = yieldDrain(ctx, drain.purpose) !== undefined;
  if (isTaken) return running(ctx, drain, undefined);

  const activity = activities.get(uid, 'drain');
  const record = memory.drains.get(uid);
  if (activity !== undefined && activity.state !== 'running') return ended(ctx, drain, activity, record);
  if (activity?.state === 'running' && record?.isSuperseded === true) return running(ctx, drain, record);

  const force = record?.force ?? (await forceReasonOf(ctx, drain));
  if (activity === undefined) return start(ctx, drain, force);
  if (force !== undefined && record !== undefined && record.force === undefined) {
    record.isSuperseded = true;
    activities.abort(uid, 'drain', FORCE_TEXTS[force]);
  }
  if (record?.progress !== undefined) tellOfHolder(ctx, drain, record.progress);
  return running(ctx, drain, record);
}

/** The drain's end was recorded, or it is not needed any more: a running one is broken off. Drains for another purpose stay. */
export function dismissKeptDrain(
  { machine, activities, memory }: Pick<MachineContext, 'machine' | 'activities' | 'memory'>,
  purpose: KeptDrain['purpose'],
): void {
  const { uid } = machine.metadata;
  if (memory.drains.get(uid)?.purpose !== purpose) return;
  activities.abort(uid, 'drain', 'it is not needed any more');
  if (activities.get(uid, 'drain')?.state === 'running') return;
  activities.forget(uid, 'drain');
  memory.drains.delete(uid);
}

/** When pods that are left are deleted. Wall time. */
function deadlineOf({ machine, settings }: MachineContext, { startMs }: KeptDrain): number {
  return startMs + drainTimeoutMsOf(machine, settings);
}

function running(ctx: MachineContext, drain: KeptDrain, record: DrainRecord | undefined): KeptDrainState {
  ctx.pass.alsoAfter(PROGRESS_MS, 'the pods to leave');
  return { kind: 'running', record, deadlineMs: deadlineOf(ctx, drain) };
}

function start(ctx: MachineContext, drain: KeptDrain, force: ForceReason | undefined): KeptDrainState {
  const { machine, key, activities, memory, clock, pass, drain: run } = ctx;
  const { uid } = machine.metadata;
  const before = memory.drains.get(uid);
  const waitMs = (before?.retryAtMs ?? 0) - clock.monotonicMs();
  if (waitMs > 0 && (force === undefined || before?.force !== undefined)) {
    pass.alsoAfter(waitMs, 'the next attempt to drain');
    return { kind: 'running', record: before, deadlineMs: deadlineOf(ctx, drain) };
  }
  const startedMs = before?.startedMs ?? clock.monotonicMs();
  const record: DrainRecord = { purpose: drain.purpose, force, startedMs, progress: undefined, isSuperseded: false };
  memory.drains.set(uid, record);
  const request = requestOf(ctx, drain, force);
  activities.startOrGet({ uid, key, provider: undefined }, 'drain', (signal, tell) =>
    run(request, signal, (progress) => {
      if (noteProgress(record, progress, clock.monotonicMs())) tell();
    }),
  );
  if (force !== undefined && memory.isNews(uid, `DrainForced ${drain.purpose} ${drain.startMs}`)) {
    pass.event('DrainForced', `Pods are deleted, not evicted: ${FORCE_TEXTS[force]}.`);
  }
  return running(ctx, drain, record);
}

function requestOf(ctx: MachineContext, drain: KeptDrain, force: ForceReason | undefined): DrainRequest {
  const { machine, settings, clock } = ctx;
  const { target, node, barrier } = drain;
  return {
    target,
    nodeName: node.metadata.name,
    nodeUID: node.metadata.uid,
    barrier,
    force: force !== undefined,
    deadlineMs: force === undefined ? deadlineOf(ctx, drain) : clock.now() + FORCED_MS,
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

function ended(
  ctx: MachineContext,
  drain: KeptDrain,
  activity: Ended,
  record: DrainRecord | undefined,
): KeptDrainState {
  const { machine, activities, pass, clock, memory, metrics } = ctx;
  const { uid } = machine.metadata;
  const isDone = activity.state === 'done' && activity.result.kind !== 'incomplete';
  if (!isDone && record?.isSuperseded === true) {
    activities.forget(uid, 'drain');
    pass.alsoAfter(0, 'the forced drain to start');
    return running(ctx, drain, undefined);
  }
  if (activity.state === 'failed') return failed(ctx, drain, activity.error, record);
  const outcome = activity.result;
  if (outcome.kind === 'incomplete') {
    return retry(ctx, drain, `The Node could not be drained. ${describeProgress(outcome.progress)}`, record);
  }
  if (outcome.kind === 'node-gone') return { kind: 'node-gone' };
  const tookMs = clock.monotonicMs() - (record?.startedMs ?? clock.monotonicMs());
  if (memory.isNews(uid, `Drained ${drain.purpose} ${drain.startMs}`)) {
    const how = record?.force === undefined ? '' : 'by force ';
    pass.event('Drained', `The Node was drained ${how}in ${Math.round(tookMs / 1_000)} s, the machine is kept.`);
    pass.afterWrite(() => metrics.drained(machine, tookMs));
  }
  return { kind: 'drained' };
}

function failed(
  ctx: MachineContext,
  drain: KeptDrain,
  error: unknown,
  record: DrainRecord | undefined,
): KeptDrainState {
  const { machine, activities, pass } = ctx;
  if (error instanceof GateClosedError) {
    activities.forget(machine.metadata.uid, 'drain');
    pass.alsoAfter(GATE_RETRY_MS, 'the target cluster to be reachable');
    return { kind: 'running', record, deadlineMs: deadlineOf(ctx, drain) };
  }
  const reason = error instanceof Error ? error.message : String(error);
  return retry(ctx, drain, `The Node could not be drained: ${reason}.`, record);
}

/** Past the deadline the next attempt is a forced one, and does not wait. */
function retry(ctx: MachineContext, drain: KeptDrain, text: string, record: DrainRecord | undefined): KeptDrainState {
  const { machine, activities, memory, clock, pass } = ctx;
  const { uid } = machine.metadata;
  activities.forget(uid, 'drain');
  const leftMs = record?.force === undefined ? deadlineOf(ctx, drain) - clock.now() : Number.POSITIVE_INFINITY;
  const waitMs = Math.max(0, Math.min(RETRY_MS, leftMs));
  if (record !== undefined) record.retryAtMs = clock.monotonicMs() + waitMs;
  pass.alsoAfter(waitMs, 'the next attempt to drain');
  return { kind: 'failed', text, isNews: memory.isNews(uid, text) };
}

/** What holds a drain up is an Event, once for each reason. */
function tellOfHolder(ctx: MachineContext, drain: KeptDrain, progress: DrainProgress): void {
  const { machine, memory, pass } = ctx;
  if (!isHeldUp(progress)) return;
  if (!memory.isNews(machine.metadata.uid, `DrainBlocked ${drain.purpose} ${reasonOf(progress)}`)) return;
  pass.event('DrainBlocked', describeProgress(progress, deadlineOf(ctx, drain)));
}

/**
 * Why pods are to be deleted instead of evicted; undefined when they are not. That a Node is broken is believed only after a live
 * look, and not in the grace after a freeze.
 */
async function forceReasonOf(ctx: MachineContext, drain: KeptDrain): Promise<ForceReason | undefined> {
  const { machine, clock, trust, pass } = ctx;
  if (machine.metadata.labels?.[FORCE_DRAIN_LABEL] === 'True') return 'label';
  const leftMs = deadlineOf(ctx, drain) - clock.now();
  if (leftMs <= 0) return 'timeout';
  pass.alsoAfter(leftMs, 'the drain timeout');

  const broken = brokenness(drain.node, clock.now());
  if (broken === undefined) return undefined;
  const graceMs = Math.max(broken.inMs, trust.graceLeftMs(clustersOf(ctx)));
  if (graceMs <= 0) return (await isStillBroken(ctx, drain)) ? broken.reason : undefined;
  pass.alsoAfter(graceMs, 'the Node to recover');
  return undefined;
}

async function isStillBroken(ctx: MachineContext, { node }: KeptDrain): Promise<boolean> {
  const { observed, nodes, readMachine, clock, signal } = ctx;
  const [machine, live] = await Promise.all([readMachine(observed, signal), nodes?.read(node.metadata.name, signal)]);
  if (machine?.metadata.uid !== observed.metadata.uid || isBeingDeleted(machine)) return false;
  if (live?.metadata.uid !== node.metadata.uid) return false;
  return (brokenness(live, clock.now())?.inMs ?? 1) <= 0;
}
