import { isBeingDeleted, keyOf } from '../apis/meta.ts';
import type { Pod, PodDisruptionBudget } from '../apis/wire.ts';
import { fromTimestamp, type Clock } from '../base/clock/clock.ts';
import { untilAborted } from '../base/clock/deadline.ts';
import { isMisconfigured } from './disruption-budget.ts';
import { EVICTION_RETRY_MS } from './drain.ts';
import type { PodFeed } from './node-pods.ts';
import type { PodActions } from './pod-actions.ts';
import { graceMsOf, hasCompleted } from './pods.ts';
import type { DrainTracker } from './drain-tracker.ts';
import type { Random } from '../base/random/random.ts';

/** Time between two tries after an error that is not a budget's refusal. */
const ERROR_RETRY_MS = 5_000;
/** A pod that has not ended so long after its grace is reported. */
const OVERDUE_MS = 30_000;
/** A pod of a silent Node counts as gone so long after its grace, as in Cluster API. */
const LOST_MS = 2_000;
/**
 * Retries are spread over this share of their period, and never come sooner: as many as fit into a drain timeout would end before it, and a
 * pod would be deleted while its drain has time left.
 */
const JITTER = 0.1;

export interface EvictorDeps {
  readonly actions: PodActions;
  readonly feed: PodFeed;
  readonly progress: DrainTracker;
  /** The budget that guards a pod, if it can be told. */
  readonly findBudget: (pod: Pod) => Promise<PodDisruptionBudget | undefined>;
  /** Refusals after which a pod is deleted with grace 0 instead. */
  readonly maxEvictRetries: number;
  /** Uniform in [0, 1). */
  readonly random: Random;
  /** There when the kubelet of the Node does not answer: pods whose grace is over by this clock count as gone. */
  readonly silentNode?: Pick<Clock, 'now'> | undefined;
}

/** What came of one try: the pod leaves (or is gone), or it has to be asked again after `retryInMs`. */
export type EvictionResult = { readonly kind: 'leaving' } | { readonly kind: 'stays'; readonly retryInMs: number };

/**
 * Sends pods away one try at a time. Refusals by a budget count towards `maxEvictRetries`, except those by a misconfigured
 * one: such a pod leaves when its budget is fixed, or is deleted by the forced drain after the deadline.
 */
export class Evictor {
  readonly #deps: EvictorDeps;
  readonly #refusals = new Map<string, number>();

  constructor(deps: EvictorDeps) {
    this.#deps = deps;
  }

  /** Asks until the pod leaves, and waits until it is gone. */
  async sendAway(pod: Pod, signal: AbortSignal): Promise<void> {
    await Promise.all([this.#evictUntilLeaving(pod, signal), this.untilGone(pod, signal)]);
  }

  /** Asks once: an eviction, or the deletion that follows the last of them. */
  async tryEvict(pod: Pod, signal: AbortSignal): Promise<EvictionResult> {
    if (this.isLeaving(pod)) return { kind: 'leaving' };
    const { actions, maxEvictRetries, progress } = this.#deps;
    const refusals = this.#refusals.get(pod.metadata.uid);
    const hasPatience = refusals === undefined || refusals < maxEvictRetries;
    const verdict = hasPatience ? await actions.evict(pod, signal) : await actions.kill(pod, signal);
    if (verdict.kind === 'accepted' || verdict.kind === 'gone') {
      // Seen to end before the answer came: that has been told already.
      if (!this.isLeaving(pod)) progress.unblock(pod);
      return { kind: 'leaving' };
    }
    if (verdict.kind === 'refused') {
      await untilAborted(this.#refused(pod, verdict.message), signal);
      return { kind: 'stays', retryInMs: this.#jittered(EVICTION_RETRY_MS) };
    }
    progress.block(pod, 'error', verdict.message);
    const askedForMs = verdict.kind === 'failed' ? (verdict.retryAfterMs ?? 0) : 0;
    return { kind: 'stays', retryInMs: Math.max(this.#jittered(ERROR_RETRY_MS), askedForMs) };
  }

  /** Deletes with grace 0 and waits only until the server has accepted it. */
  async kill(pod: Pod, signal: AbortSignal): Promise<void> {
    const { actions, feed, progress } = this.#deps;
    for (;;) {
      const verdict = await actions.kill(pod, signal);
      if (verdict.kind === 'accepted' || verdict.kind === 'gone') break;
      progress.block(pod, 'error', verdict.message);
      await feed.until(() => feed.get(pod.metadata.uid) === undefined, signal, this.#jittered(ERROR_RETRY_MS));
    }
    progress.finish(pod);
  }

  /** Whether the pod is ending or gone, whoever made it. */
  isLeaving(pod: Pod): boolean {
    const current = this.#deps.feed.get(pod.metadata.uid);
    return current === undefined || isBeingDeleted(current);
  }

  /** Waits until the pod is gone, or counts as gone, and reports it when it ends long after its grace. Asks for nothing. */
  async untilGone(pod: Pod, signal: AbortSignal): Promise<void> {
    const { feed, progress, silentNode } = this.#deps;
    const isGone = (): boolean => feed.get(pod.metadata.uid) === undefined;
    await feed.until(() => this.isLeaving(pod), signal);
    progress.unblock(pod);
    const leaving = feed.get(pod.metadata.uid) ?? pod;
    // The server sets it to the moment at which the pod has to have ended.
    const { deletionTimestamp = 'soon' } = leaving.metadata;
    if (!isGone()) progress.block(pod, 'ending', deletionTimestamp);
    if (silentNode !== undefined) {
      await this.#untilLost(pod, silentNode, signal);
    } else if (!(await feed.until(isGone, signal, graceMsOf(leaving) + OVERDUE_MS))) {
      progress.block(pod, 'terminating', holderOf(feed.get(pod.metadata.uid) ?? leaving));
      await feed.until(isGone, signal);
    }
    progress.finish(pod);
  }

  /** Waits until the pod has completed by itself, or is gone, as `by` says. Asks for nothing. */
  async untilCompleted(pod: Pod, by: string, signal: AbortSignal): Promise<void> {
    const { feed, progress, silentNode } = this.#deps;
    progress.block(pod, 'completion', by);
    const hasEnded = (): boolean => {
      const current = feed.get(pod.metadata.uid);
      return current === undefined || hasCompleted(current);
    };
    const isEnding = (): boolean => silentNode !== undefined && this.isLeaving(pod);
    await feed.until(() => hasEnded() || isEnding(), signal);
    if (silentNode !== undefined && !hasEnded()) await this.#untilLost(pod, silentNode, signal);
    progress.finish(pod);
  }

  /** Waits until a pod that is ending is gone, or counts as gone since its kubelet does not answer. */
  async #untilLost({ metadata: { uid } }: Pod, clock: Pick<Clock, 'now'>, signal: AbortSignal): Promise<void> {
    const { feed } = this.#deps;
    const graceEnds = (): string | undefined => feed.get(uid)?.metadata.deletionTimestamp;
    for (;;) {
      const timestamp = graceEnds();
      const endMs = fromTimestamp(timestamp);
      if (endMs === undefined) return;
      const leftMs = endMs + LOST_MS - clock.now();
      if (leftMs <= 0) return;
      await feed.until(() => graceEnds() !== timestamp, signal, leftMs);
    }
  }

  async #evictUntilLeaving(pod: Pod, signal: AbortSignal): Promise<void> {
    for (;;) {
      const asked = await this.tryEvict(pod, signal);
      if (asked.kind === 'leaving') return;
      await this.#deps.feed.until(() => this.isLeaving(pod), signal, asked.retryInMs);
    }
  }

  async #refused(pod: Pod, message: string): Promise<void> {
    const { findBudget, progress } = this.#deps;
    const budget = await findBudget(pod);
    if (budget !== undefined && isMisconfigured(budget)) {
      progress.block(pod, 'misconfigured-disruption-budget', keyOf(budget));
      return;
    }
    this.#refusals.set(pod.metadata.uid, (this.#refusals.get(pod.metadata.uid) ?? 0) + 1);
    progress.block(pod, 'disruption-budget', budget?.metadata.name ?? message);
  }

  #jittered(ms: number): number {
    return ms * (1 + JITTER * this.#deps.random());
  }
}

/** What keeps a pod whose grace is over. */
function holderOf({ metadata }: Pod): string {
  const { finalizers = [], deletionTimestamp } = metadata;
  if (finalizers.length > 0) return `held by finalizer ${finalizers.join(', ')}`;
  return `its grace period ended at ${deletionTimestamp}, but the kubelet has not terminated it`;
}
