import type { Activity } from '../../../activity/activity.ts';
import { FORCE_DRAIN_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import { isBeingDeleted } from '../../../apis/meta.ts';
import type { Collaborators } from '../collaborators.ts';
import type { BlockedPod, DrainOutcome } from '../../../drain/drain.ts';
import { GateClosedError } from '../../../gate/gate.ts';
import { ApiError } from '../../../kube/errors.ts';
import type { MachineContext } from '../context.ts';
import { clustersOf } from '../failure/fail.ts';
import { forceReasonOf, type ForceDeps } from './force.ts';
import { deadlineOf, describeForce, forceAtOf, requestOf, type DrainPlan } from './plan.ts';
import { blockOf, describeProgress, reasonOf } from '../../../drain/progress-text.ts';
import type { DrainPurpose, DrainRecord, ForceReason } from './record.ts';
import { noteProgress, PROGRESS_MS, reportBlock } from './report.ts';

/** When to try again after the gate was closed. */
const GATE_RETRY_MS = 5_000;
/** Wait after a drain that could not do its work: after the first, doubled with each further one up to the longest. */
const FIRST_RETRY_MS = 5_000;
const LONGEST_RETRY_MS = 30_000;

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
type Ended = Exclude<Activity<DrainOutcome>, { state: 'running' }>;

/** A drain of a Node whose machine is kept. */
type KeptDrain = Pick<DrainPlan, 'nodes' | 'node' | 'barrier' | 'startMs' | 'forceRule'> & {
  readonly purpose: Exclude<DrainPurpose, 'deletion'>;
};

export type DrainsDeps = ForceDeps &
  Pick<Collaborators, 'activities' | 'drain' | 'rules' | 'resolveClass' | 'reportedOnce' | 'metrics'>;

/** A drain that does not go on by itself. */
export interface BlockedDrain {
  readonly reason: BlockedPod['reason'];
  /** When its pods are deleted instead of evicted, by wall time; undefined when they are already, or never are. */
  readonly forceAtMs: number | undefined;
}

/** The drains of the Nodes of machines: one session serves deletion, in-place update, preservation and maintenance. */
export class Drains {
  readonly #deps: DrainsDeps;
  /** Drains under way, or waiting to be tried again, by the UID of their Machine. */
  readonly #records = new Map<string, DrainRecord>();

  constructor(deps: DrainsDeps) {
    this.#deps = deps;
  }

  /** The drains that wait for somebody to do something. */
  blocked(): readonly BlockedDrain[] {
    return [...this.#records.values()].flatMap(({ progress, force, forceAtMs }) => {
      const reason = progress === undefined ? undefined : blockOf(progress);
      return reason === undefined ? [] : [{ reason, forceAtMs: force === undefined ? forceAtMs : undefined }];
    });
  }

  /** Drains under way, or waiting to be tried again, by the UID of their Machine. */
  open(): ReadonlyMap<string, DrainRecord> {
    return this.#records;
  }

  /** The Machine is gone. */
  forget(uid: string): void {
    this.#records.delete(uid);
  }

  /**
   * Brings the drain of a machine's Node forward by one pass, as an activity; to be called by every pass until it has ended, and then
   * again until that was recorded and `end` called. A drain for another purpose is broken off first: it has another
   * barrier and another deadline.
   *
   * | drain  | reason to force it | ended                 | what follows                                           |
   * |--------|--------------------|-----------------------|--------------------------------------------------------|
   * | normal | comes              | running               | it is aborted, and a forced one takes its place        |
   * | normal | none               | pods left, or an error | again after 5 s to 30 s, by force at the deadline      |
   * | forced |                    | pods left, or an error | `go-on`: left-pods; `retry`: again after 5 s to 30 s   |
   * | any    |                    | the gate was closed   | again after 5 s; no failure                            |
   * | any    |                    | before an outage      | again                                                  |
   * | any    |                    | drained, or Node gone | that                                                   |
   */
  async advance(ctx: MachineContext, plan: DrainPlan): Promise<DrainState> {
    const { activities } = this.#deps;
    const { machine } = ctx;
    const { uid } = machine.metadata;
    if (!this.#yield(ctx, plan.purpose)) return this.#running(ctx, plan, undefined, 'another drain to end');

    const activity = activities.get(uid, 'drain');
    const record = this.#records.get(uid);
    if (activity !== undefined && activity.state !== 'running') return this.#ended(ctx, plan, activity, record);
    if (activity?.state === 'running' && record?.isSuperseded === true) return this.#superseded(ctx, plan, record);

    const force = record?.force ?? (await forceReasonOf(this.#deps, ctx, plan));
    if (activity === undefined) return await this.#start(ctx, plan, force);
    if (record !== undefined && record.force === undefined) {
      const isOther = record.forceRule !== plan.forceRule;
      if (force !== undefined || isOther) {
        record.isSuperseded = true;
        activities.abort(
          uid,
          'drain',
          force === undefined ? 'a forced drain is no longer requested' : describeForce(force, plan),
        );
        return this.#superseded(ctx, plan, record);
      }
    }
    reportBlock(this.#deps, ctx, plan, record);
    return this.#running(ctx, plan, record);
  }

  /** Drains a Node whose machine is kept, as any. One that fails, forced or not, is never taken for done. */
  async advanceKept(ctx: MachineContext, drain: KeptDrain): Promise<Exclude<DrainState, { kind: 'left-pods' }>> {
    const { machine, pass } = ctx;
    const isAsked = machine.metadata.labels?.[FORCE_DRAIN_LABEL] === 'True';
    const state = await this.advance(ctx, {
      ...drain,
      forcedBy: isAsked ? `the Machine has label ${FORCE_DRAIN_LABEL}` : undefined,
      isWanted: (live) => !isBeingDeleted(live),
      onForcedFailure: 'retry',
    });
    if (state.kind === 'left-pods') throw new Error('a drain that is being retried has not expired');
    if (state.kind === 'drained' && state.isNews) {
      const how = state.isForced ? 'by force ' : '';
      pass.event(
        'Drained',
        `The Node was drained ${how}in ${Math.round(state.tookMs / 1_000)} s; the machine is kept.`,
      );
      pass.afterWrite(() => this.#deps.metrics.drained(machine, state.tookMs, state.isForced));
    }
    return state;
  }

  /**
   * The drain's end was recorded, or it is not needed any more: a running one is broken off. Without a purpose any is; else drains for
   * another one stay.
   */
  end({ machine: { metadata } }: MachineContext, purpose?: DrainPurpose): void {
    const { uid } = metadata;
    const { activities } = this.#deps;
    const record = this.#records.get(uid);
    if (purpose !== undefined && (record?.yieldsTo ?? record?.purpose) !== purpose) return;
    activities.abort(uid, 'drain', 'the drain is no longer needed');
    if (activities.get(uid, 'drain')?.state === 'running') return;
    activities.forget(uid, 'drain');
    this.#records.delete(uid);
  }

  /** Whether a drain for this purpose still runs, if only because it has not ended yet. */
  isRunning({ machine: { metadata } }: MachineContext, purpose: DrainPurpose): boolean {
    const { uid } = metadata;
    return this.#records.get(uid)?.purpose === purpose && this.#deps.activities.get(uid, 'drain')?.state === 'running';
  }

  /** Whether a drain for another purpose is under way, or about to be. */
  isTaken({ machine: { metadata } }: MachineContext, purpose: DrainPurpose): boolean {
    const record = this.#records.get(metadata.uid);
    return record !== undefined && (record.yieldsTo ?? record.purpose) !== purpose;
  }

  /** Makes room for a drain; false for as long as one for another purpose has not ended. */
  #yield({ machine: { metadata } }: MachineContext, purpose: DrainPurpose): boolean {
    const { uid } = metadata;
    const { activities } = this.#deps;
    const record = this.#records.get(uid);
    if (record === undefined || record.purpose === purpose) return true;
    record.yieldsTo = purpose;
    activities.abort(uid, 'drain', `the Node is now being drained for its ${purpose}`);
    if (activities.get(uid, 'drain')?.state === 'running') return false;
    activities.forget(uid, 'drain');
    this.#records.delete(uid);
    return true;
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

  #superseded(ctx: MachineContext, plan: DrainPlan, record: DrainRecord): Running {
    return this.#running(ctx, plan, record, 'the normal drain to end');
  }

  async #start(ctx: MachineContext, plan: DrainPlan, force: ForceReason | undefined): Promise<DrainState> {
    const { activities, clock, drain: run } = this.#deps;
    const { machine, key, pass } = ctx;
    const { uid } = machine.metadata;
    const before = this.#records.get(uid);
    const waitMs = (before?.retryAtMs ?? 0) - clock.monotonicMs();
    if (waitMs > 0 && (force === undefined || before?.force !== undefined)) {
      pass.alsoAfter(waitMs, 'the next drain retry');
      return this.#running(ctx, plan, before, 'the next drain retry');
    }
    if (plan.mayBegin !== undefined && !(await plan.mayBegin())) {
      return this.#running(ctx, plan, before, 'the latest version of the Machine');
    }
    const record: DrainRecord = {
      purpose: plan.purpose,
      force,
      forceRule: plan.forceRule,
      startedMs: before?.startedMs ?? clock.monotonicMs(),
      progress: undefined,
      isSuperseded: false,
      failures: before?.failures ?? 0,
    };
    this.#records.set(uid, record);
    const request = requestOf(this.#deps, ctx, plan, force);
    activities.startOrGet({ uid, key, account: undefined }, 'drain', (signal, report) =>
      run(request, signal, (progress) => {
        if (noteProgress(record, progress, clock.monotonicMs())) report();
      }),
    );
    if (force !== undefined && this.#isNews(ctx, plan, 'DrainForced')) {
      pass.event('DrainForced', `Deleting pods instead of evicting them: ${describeForce(force, plan)}.`);
    }
    return this.#running(ctx, plan, record);
  }

  #ended(ctx: MachineContext, plan: DrainPlan, activity: Ended, record: DrainRecord | undefined): DrainState {
    const { activities, clock } = this.#deps;
    const { machine, pass } = ctx;
    const { uid } = machine.metadata;
    const isDone = activity.state === 'done' && activity.result.kind !== 'incomplete';
    if (!isDone) activities.forget(uid, 'drain');
    if (!isDone && record?.isSuperseded === true) {
      pass.alsoAfter(0, 'the next drain to start');
      return this.#running(ctx, plan, undefined, 'the next drain to start');
    }
    if (activity.state === 'failed') return this.#failed(ctx, plan, activity.error, record);
    const { result } = activity;
    if (isDone && this.#isOutdated(ctx, activity)) {
      activities.forget(uid, 'drain');
      pass.alsoAfter(0, 'another drain');
      return this.#running(ctx, plan, record, 'another drain, since its cluster was out of sight after the last');
    }
    if (result.kind === 'node-gone') return { kind: 'node-gone' };
    if (result.kind === 'incomplete') {
      return this.#fail(ctx, plan, record, {
        text: describeProgress(result.progress),
        reason: reasonOf(result.progress),
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
  #isOutdated(ctx: MachineContext, { settledAtMs }: Ended): boolean {
    const { clock, trust } = this.#deps;
    const trustedMs = trust.trustedForMs(clustersOf(ctx));
    return trustedMs > 0 && clock.monotonicMs() - settledAtMs > trustedMs;
  }

  #failed(ctx: MachineContext, plan: DrainPlan, error: unknown, record: DrainRecord | undefined): DrainState {
    if (error instanceof GateClosedError) {
      if (record !== undefined) record.retryAtMs = this.#deps.clock.monotonicMs() + GATE_RETRY_MS;
      ctx.pass.alsoAfter(GATE_RETRY_MS, 'the target cluster to be reachable');
      return this.#running(ctx, plan, record, 'the target cluster to be reachable');
    }
    const text = `${error instanceof Error ? error.message : String(error)}.`;
    return this.#fail(ctx, plan, record, {
      text: isWithoutAnswer(error) ? `${text} ${WITHOUT_ANSWER}` : text,
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
    const { pass } = ctx;
    const isForced = record?.force !== undefined;
    if (isForced && plan.onForcedFailure === 'go-on') return { kind: 'left-pods', text };
    const failures = record?.failures ?? 0;
    const backoffMs = Math.min(FIRST_RETRY_MS * 2 ** failures, LONGEST_RETRY_MS);
    const forceAtMs = isForced ? undefined : forceAtOf(this.#deps, ctx, plan);
    const leftMs = (forceAtMs ?? Number.POSITIVE_INFINITY) - clock.now();
    const waitMs = Math.max(0, Math.min(backoffMs, leftMs));
    if (record !== undefined)
      Object.assign(record, { retryAtMs: clock.monotonicMs() + waitMs, failures: failures + 1 });
    pass.alsoAfter(waitMs, 'the next drain retry');
    return { kind: 'failed', text: `Drain failed. ${text}`, isNews: this.#isNews(ctx, plan, `DrainFailed ${reason}`) };
  }

  /** True the first time in one drain. */
  #isNews({ machine }: MachineContext, { purpose, startMs }: DrainPlan, what: string): boolean {
    return this.#deps.reportedOnce.isNew(machine.metadata.uid, `${what} ${purpose} ${startMs}`);
  }
}

function isWithoutAnswer(error: unknown): boolean {
  return error instanceof ApiError && error.code === 0;
}
