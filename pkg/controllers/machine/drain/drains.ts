import { MINUTE_MS } from '../../../base/clock/clock.ts';
import type { Collaborators } from '../collaborators.ts';
import type { BlockedPod, DrainOutcome, DrainProgress } from '../../../drain/drain.ts';
import { DrainSession } from '../../../drain/session.ts';
import { GateClosedError } from '../../../kube/gate/gate.ts';
import type { Ended } from '../../../work/activity/activity.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import type { MachineContext } from '../context.ts';
import { clustersOf } from '../failure/fail.ts';
import { deadlineOf, describeForce, forceAtOf, forceReasonOf, graceEndOf, type ForceDeps } from './force.ts';
import { blockOf, describeProgress, isBlocked, blockReasonOf } from '../../../drain/progress-text.ts';
import type { DrainPlan, DrainPurpose, DrainRecord, ForceReason } from './plan.ts';
import { PROGRESS_MS, STANDING_MS } from './report.ts';
import { requestOf } from './request.ts';

const GATE_RETRY_MS = 5_000;
const CLUSTERS_REACHABLE = 'the clusters to be reachable';
/** Wait after a drain that could not do its work: after the first, doubled with each further one up to the longest. */
const FIRST_RETRY_MS = 5_000;
const LONGEST_RETRY_MS = 30_000;

/**
 * After this much time in which its timeout was put off and pods could be asked, it is not any more: outages that follow each other closely keep no
 * Node for ever.
 */
const LONGEST_GRACE_MS = 10 * MINUTE_MS;

const GIVING_WAY = 'the normal drain to end';

/** What to do about an API server that does not answer. */
const WITHOUT_ANSWER =
  'The drain is retried; if this persists, check that the API server of the target cluster can be reached.';

/**
 * How a drain stands. `deadlineMs` (wall time) is when pods that are left are deleted, or, where nothing forces it, when it counts as
 * failed, although it goes on.
 */
export type DrainState =
  | {
      readonly kind: 'running';
      readonly record: DrainRecord | undefined;
      readonly deadlineMs: number;
      /** Nothing forces it, and it has taken longer than its timeout. */
      readonly isLate: boolean;
      readonly waitingFor: string;
    }
  | { readonly kind: 'drained'; readonly isForced: boolean; readonly tookMs: number; readonly isNews: boolean }
  | { readonly kind: 'node-gone' }
  /** It is tried again by itself. */
  | { readonly kind: 'failed'; readonly text: string; readonly isNews: boolean }
  /** A forced one failed, and is not tried again: what was left, or the error. */
  | { readonly kind: 'left-pods'; readonly text: string };

type Running = Extract<DrainState, { kind: 'running' }>;

export type DrainsDeps = ForceDeps &
  Pick<Collaborators, 'activities' | 'drain' | 'rules' | 'resolveClass' | 'reportedOnce'>;

/** A drain that does not go on by itself. */
export interface BlockedDrain {
  readonly reason: BlockedPod['reason'];
  /** When its pods are deleted instead of evicted, by wall time; undefined when they are already, or never are. */
  readonly forceAtMs: number | undefined;
}

/** The drains of the Nodes of machines: one session serves deletion, in-place update, preservation and maintenance. */
export class Drains {
  readonly #deps: DrainsDeps;
  readonly #session: DrainSession<DrainRecord>;
  /** For how long the timeout of a machine's drain has been put off, without outages, by its UID; `atMs` is monotonic. */
  readonly #graces = new Map<string, { readonly usedMs: number; readonly atMs: number }>();

  constructor(deps: DrainsDeps) {
    this.#deps = deps;
    this.#session = new DrainSession(deps);
  }

  /** The drains that wait for somebody to do something. */
  blocked(): readonly BlockedDrain[] {
    return [...this.open().values()].flatMap(({ progress, force, forceAtMs }) => {
      const reason = progress === undefined ? undefined : blockOf(progress);
      return reason === undefined ? [] : [{ reason, forceAtMs: force === undefined ? forceAtMs : undefined }];
    });
  }

  /** Drains under way, or waiting to be tried again, by the UID of their Machine. */
  open(): ReadonlyMap<string, DrainRecord> {
    return this.#session.attempts;
  }

  forget(uid: string): void {
    this.#graces.delete(uid);
    this.#session.forget(uid);
  }

  /**
   * Brings the drain of a machine's Node forward by one pass, as an activity; to be called by every pass until it has ended, and then
   * again until that was recorded and `end` called. A drain for another purpose is broken off first: it has another
   * barrier and another deadline; and so is that of another Node of the machine.
   *
   * | drain  | reason to force it | ended                 | what follows                                           |
   * |--------|--------------------|-----------------------|--------------------------------------------------------|
   * | normal | comes              | running               | it is aborted, and a forced one takes its place        |
   * | normal | none               | pods left, or an error | again after 5 s to 30 s, by force at the deadline      |
   * | forced |                    | pods left, or an error | `go-on`: left-pods; `retry`: again after 5 s to 30 s, by force if there is still a reason |
   * | any    |                    | the gate was closed   | again after 5 s; no failure                            |
   * | any    |                    | before an outage      | again                                                  |
   * | any    |                    | drained, or Node gone | that                                                   |
   */
  async advance(ctx: MachineContext, asked: DrainPlan): Promise<DrainState> {
    const { uid } = ctx.machine.metadata;
    const plan = { ...asked, ...this.#grace(ctx, asked) };
    if (!this.#yield(ctx, plan)) return this.#running(ctx, plan, undefined, 'another drain to end');

    const drain = this.#session.advance(uid);
    const record = this.open().get(uid);
    if (drain !== undefined && drain.state !== 'running') return this.#ended(ctx, plan, drain, record);
    if (drain !== undefined && record?.isSuperseded === true) return this.#running(ctx, plan, record, GIVING_WAY);

    const restMs = drain === undefined ? (record?.retryAtMs ?? 0) - this.#deps.clock.monotonicMs() : 0;
    // What forced an attempt that is over may be over too: another one is not begun without looking.
    const isAskedAnew = drain === undefined && restMs <= 0;
    const force = (isAskedAnew ? undefined : record?.force) ?? (await forceReasonOf(this.#deps, ctx, plan));
    if (drain === undefined) return await this.#start(ctx, plan, force, record);
    const why = record && supersededBy(record, plan, force);
    if (why !== undefined) {
      this.#session.supersede(uid, why);
      return this.#running(ctx, plan, record, GIVING_WAY);
    }
    this.#reportBlock(ctx, plan, record);
    return this.#running(ctx, plan, record);
  }

  /**
   * The drain's end was recorded, or it is not needed any more: a running one is broken off. Without a purpose any is; else drains for
   * another one stay.
   */
  end({ machine: { metadata } }: MachineContext, purpose?: DrainPurpose): void {
    const record = this.open().get(metadata.uid);
    if (purpose !== undefined && (record?.yieldsTo ?? record?.purpose) !== purpose) return;
    this.#graces.delete(metadata.uid);
    const hasEnded = this.#session.end(metadata.uid, 'the drain is no longer needed');
    // One that is needed again before it has ended is another one.
    if (!hasEnded && record !== undefined) record.isSuperseded = true;
  }

  /** Whether a drain for this purpose still runs, if only because it has not ended yet. */
  isRunning({ machine: { metadata } }: MachineContext, purpose: DrainPurpose): boolean {
    const { uid } = metadata;
    return this.open().get(uid)?.purpose === purpose && this.#deps.activities.get(uid, 'drain')?.state === 'running';
  }

  /** Whether a drain for this purpose has emptied the Node, which is not recorded yet. */
  hasEmptied({ machine: { metadata } }: MachineContext, purpose: DrainPurpose): boolean {
    const { uid } = metadata;
    const record = this.open().get(uid);
    const activity = this.#deps.activities.get(uid, 'drain');
    if (record?.purpose !== purpose || record.isSuperseded) return false;
    return activity?.state === 'done' && activity.result.kind !== 'incomplete';
  }

  /** Whether a drain for another purpose is under way, or about to be. */
  isTaken({ machine: { metadata } }: MachineContext, purpose: DrainPurpose): boolean {
    const record = this.open().get(metadata.uid);
    return record !== undefined && (record.yieldsTo ?? record.purpose) !== purpose;
  }

  /** What puts the timeout off after an outage, or a change of the leader. */
  #grace(ctx: MachineContext, plan: DrainPlan): Pick<DrainPlan, 'notBeforeMs'> {
    const { uid } = ctx.machine.metadata;
    const notBeforeMs = graceEndOf(this.#deps, ctx, plan);
    if (notBeforeMs === undefined) {
      this.#graces.delete(uid);
      return {};
    }
    const { clock, trust } = this.#deps;
    const nowMs = clock.monotonicMs();
    const { usedMs: formerMs, atMs } = this.#graces.get(uid) ?? { usedMs: 0, atMs: nowMs };
    const usedMs = formerMs + Math.min(nowMs - atMs, trust.trustedForMs(clustersOf(ctx)));
    this.#graces.set(uid, { usedMs, atMs: nowMs });
    return usedMs < LONGEST_GRACE_MS ? { notBeforeMs } : {};
  }

  /** Makes room for a drain; false for as long as one for another purpose, or of another Node, has not ended. */
  #yield({ machine: { metadata } }: MachineContext, { purpose, node }: DrainPlan): boolean {
    const record = this.open().get(metadata.uid);
    if (record === undefined || (record.purpose === purpose && record.nodeUID === node.metadata.uid)) return true;
    record.yieldsTo = purpose;
    return this.#session.end(metadata.uid, `Node ${node.metadata.name} is now being drained for its ${purpose}`);
  }

  #running(
    ctx: MachineContext,
    plan: DrainPlan,
    record: DrainRecord | undefined,
    waitingFor = 'the pods to leave',
  ): Running {
    ctx.pass.alsoAfter(PROGRESS_MS, waitingFor);
    const deadlineMs = deadlineOf(this.#deps, ctx, plan);
    if (record !== undefined) record.forceAtMs = forceAtOf(this.#deps, ctx, plan);
    if (plan.forceRule !== 'usual' && deadlineMs > this.#deps.clock.now())
      ctx.pass.alsoAfter(deadlineMs - this.#deps.clock.now(), 'the drain timeout');
    const isLate = plan.forceRule !== 'usual' && record?.force === undefined && deadlineMs <= this.#deps.clock.now();
    return { kind: 'running', record, deadlineMs, isLate, waitingFor };
  }

  async #start(
    ctx: MachineContext,
    plan: DrainPlan,
    force: ForceReason | undefined,
    before: DrainRecord | undefined,
  ): Promise<DrainState> {
    const { clock } = this.#deps;
    const { pass } = ctx;
    const restMs = (before?.retryAtMs ?? 0) - clock.monotonicMs();
    if (restMs > 0 && (force === undefined || before?.force !== undefined)) {
      pass.alsoAfter(restMs, 'the next drain retry');
      return this.#running(ctx, plan, before, 'the next drain retry');
    }
    if (plan.mayBegin !== undefined && !(await plan.mayBegin())) {
      return this.#running(ctx, plan, before, 'the latest version of the Machine');
    }
    const record = recordOf(ctx, plan, force, before ?? { startedMs: clock.monotonicMs(), failures: 0 });
    this.#session.begin(record, requestOf(this.#deps, ctx, plan, force), (progress) =>
      noteReason(record, progress, clock.monotonicMs()),
    );
    if (force !== undefined && this.#isNews(ctx, plan, 'DrainForced')) {
      pass.event('DrainForced', `Deleting pods instead of evicting them: ${describeForce(force, plan)}.`);
    }
    return this.#running(ctx, plan, record);
  }

  #ended(ctx: MachineContext, plan: DrainPlan, end: Ended<DrainOutcome>, record: DrainRecord | undefined): DrainState {
    const { clock } = this.#deps;
    if (end.state === 'failed') return this.#failed(ctx, plan, end.error, record);
    const { result } = end;
    if (result.kind !== 'incomplete' && this.#isOutdated(ctx, end)) {
      this.#session.rest(ctx.machine.metadata.uid, 0);
      ctx.pass.alsoAfter(0, 'another drain');
      return this.#running(ctx, plan, record, 'another drain, since its cluster was out of sight after the last');
    }
    if (result.kind === 'node-gone') return { kind: 'node-gone' };
    if (result.kind === 'incomplete') {
      return this.#fail(ctx, plan, record, {
        text: describeProgress(result.progress),
        reason: blockReasonOf(result.progress),
      });
    }
    const tookMs = clock.monotonicMs() - (record?.startedMs ?? clock.monotonicMs());
    return {
      kind: 'drained',
      isForced: record?.force !== undefined,
      tookMs,
      isNews: this.#isNews(ctx, plan, 'Drained'),
    };
  }

  /** Whether an outage has ended since: the cluster may have been set back meanwhile, and the pods be back. */
  #isOutdated(ctx: MachineContext, { settledAtMs }: Ended<DrainOutcome>): boolean {
    const { clock, trust } = this.#deps;
    const trustedMs = trust.trustedForMs(clustersOf(ctx));
    return trustedMs > 0 && clock.monotonicMs() - settledAtMs > trustedMs;
  }

  #failed(ctx: MachineContext, plan: DrainPlan, error: unknown, record: DrainRecord | undefined): DrainState {
    if (error instanceof GateClosedError) {
      this.#rest(ctx, GATE_RETRY_MS, CLUSTERS_REACHABLE);
      return this.#running(ctx, plan, record, CLUSTERS_REACHABLE);
    }
    const text = `${error instanceof Error ? error.message : String(error)}.`;
    return this.#fail(ctx, plan, record, {
      text: error instanceof ApiError && error.code === 0 ? `${text} ${WITHOUT_ANSWER}` : text,
      reason: text,
    });
  }

  /** Past the deadline the next attempt is a forced one, and does not wait. */
  #fail(
    ctx: MachineContext,
    plan: DrainPlan,
    record: DrainRecord | undefined,
    { text, reason }: { readonly text: string; readonly reason: string },
  ): DrainState {
    const { clock } = this.#deps;
    const isForced = record?.force !== undefined;
    if (isForced && plan.onForcedFailure === 'go-on') return { kind: 'left-pods', text };
    const failures = record?.failures ?? 0;
    const backoffMs = Math.min(FIRST_RETRY_MS * 2 ** failures, LONGEST_RETRY_MS);
    const forceAtMs = isForced ? undefined : forceAtOf(this.#deps, ctx, plan);
    const leftMs = (forceAtMs ?? Number.POSITIVE_INFINITY) - clock.now();
    const waitMs = Math.max(0, Math.min(backoffMs, leftMs));
    if (record !== undefined) record.failures = failures + 1;
    this.#rest(ctx, waitMs, 'the next drain retry');
    return { kind: 'failed', text: `Drain failed. ${text}`, isNews: this.#isNews(ctx, plan, `DrainFailed ${reason}`) };
  }

  #rest({ machine, pass }: MachineContext, waitMs: number, waitingFor: string): void {
    this.#session.rest(machine.metadata.uid, this.#deps.clock.monotonicMs() + waitMs);
    pass.alsoAfter(waitMs, waitingFor);
  }

  /** What holds a drain up, and does so for a while, is an Event and a line in the log; once for each reason. */
  #reportBlock(ctx: MachineContext, plan: DrainPlan, record: DrainRecord | undefined): void {
    const { clock, reportedOnce } = this.#deps;
    const { machine, pass, log } = ctx;
    const { progress, force, startedMs = 0, reasonSinceMs = startedMs } = record ?? {};
    if (progress === undefined || !isBlocked(progress)) return;
    const standsInMs = reasonSinceMs + STANDING_MS - clock.monotonicMs();
    if (standsInMs > 0) return pass.alsoAfter(standsInMs, 'the pods to leave');
    if (!reportedOnce.isNew(machine.metadata.uid, `DrainBlocked ${plan.purpose} ${blockReasonOf(progress)}`)) return;
    const why = describeProgress(progress, force === undefined ? forceAtOf(this.#deps, ctx, plan) : undefined);
    pass.event('DrainBlocked', why);
    pass.afterWrite(() => log.warn({ node: plan.node.metadata.name, purpose: plan.purpose, why }, 'drain blocked'));
  }

  /** True the first time in one drain. */
  #isNews({ machine }: MachineContext, { purpose, startMs }: DrainPlan, what: string): boolean {
    return this.#deps.reportedOnce.isNew(machine.metadata.uid, `${what} ${purpose} ${startMs}`);
  }
}

function recordOf(
  { machine, key }: MachineContext,
  { purpose, forceRule, node }: DrainPlan,
  force: ForceReason | undefined,
  { startedMs, failures }: Pick<DrainRecord, 'startedMs' | 'failures'>,
): DrainRecord {
  const owner = { uid: machine.metadata.uid, key, account: undefined };
  const nodeUID = node.metadata.uid;
  return { owner, purpose, nodeUID, force, forceRule, startedMs, failures, progress: undefined, isSuperseded: false };
}

/** Notes since when a running drain has waited for its reason; true when that is another one, so that a pass should look at it. */
function noteReason(record: DrainRecord, progress: DrainProgress, nowMs: number): boolean {
  const reason = blockReasonOf(progress);
  const isNew = reason !== blockReasonOf(record.progress ?? { remainingPods: 0, blocked: [] });
  if (isNew) record.reasonSinceMs = nowMs;
  return isNew;
}

/** Why a drain is to give way to a forced one, or to one that nothing forces; undefined when it is not. */
function supersededBy(
  { force, forceRule }: DrainRecord,
  plan: DrainPlan,
  wanted: ForceReason | undefined,
): string | undefined {
  if (force !== undefined) return undefined;
  if (wanted !== undefined) return describeForce(wanted, plan);
  return forceRule === plan.forceRule ? undefined : 'a forced drain is no longer requested';
}
