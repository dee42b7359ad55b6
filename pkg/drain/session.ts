import type { Activities, Activity, ActivityOwner } from '../work/activity/activity.ts';
import type { Drain, DrainOutcome, DrainProgress, DrainRequest } from './drain.ts';

/** What this process knows of a drain. Controllers add what they began it as, and what they report of it. */
export interface DrainAttempt {
  readonly owner: ActivityOwner;
  progress: DrainProgress | undefined;
  /** It was aborted, because another one takes its place. */
  isSuperseded: boolean;
  /** When a drain that did not empty the Node may be tried again, monotonic. */
  retryAtMs?: number;
}

export interface DrainSessionDeps {
  readonly activities: Activities<{ drain: DrainOutcome }>;
  readonly drain: Drain;
}

/** The drains of one controller's objects: at most one for each, brought forward by passes. */
export class DrainSession<A extends DrainAttempt> {
  readonly #deps: DrainSessionDeps;
  readonly #attempts = new Map<string, A>();

  constructor(deps: DrainSessionDeps) {
    this.#deps = deps;
  }

  /** Drains under way, or waiting to be tried again, by the UID of their object. */
  get attempts(): ReadonlyMap<string, A> {
    return this.#attempts;
  }

  /**
   * How the drain stands; undefined where the next one may begin, after its rest. To be asked by every pass until the end was recorded. An end
   * that leaves pods, or a failure, is returned once; of a superseded drain never.
   */
  advance(uid: string): Activity<DrainOutcome> | undefined {
    const { activities } = this.#deps;
    const activity = activities.get(uid, 'drain');
    if (activity?.state === 'running') return activity;
    const isDone = activity?.state === 'done' && activity.result.kind !== 'incomplete';
    if (!isDone) activities.forget(uid, 'drain');
    return isDone || this.#attempts.get(uid)?.isSuperseded !== true ? activity : undefined;
  }

  /** Begins a drain, where none runs. `onProgress` returns whether the object's next pass is not to wait. */
  begin(attempt: A, request: DrainRequest, onProgress?: (progress: DrainProgress) => boolean): void {
    const { activities, drain } = this.#deps;
    this.#attempts.set(attempt.owner.uid, attempt);
    activities.startOrGet(attempt.owner, 'drain', (signal, wake) =>
      drain(request, signal, (progress) => {
        const isNews = onProgress?.(progress) ?? false;
        attempt.progress = progress;
        if (isNews) wake();
      }),
    );
  }

  /** Aborts a drain that runs, so that another takes its place. What it has begun continues in the cluster. */
  supersede(uid: string, why: string): void {
    const attempt = this.#attempts.get(uid);
    if (attempt !== undefined) attempt.isSuperseded = true;
    this.#deps.activities.abort(uid, 'drain', why);
  }

  /** The next drain is not to begin before `untilMs` (monotonic), whatever wakes the pass. */
  rest(uid: string, untilMs: number): void {
    const attempt = this.#attempts.get(uid);
    if (attempt !== undefined) attempt.retryAtMs = untilMs;
    this.#deps.activities.forget(uid, 'drain');
  }

  /** A drain that has failed is not to rest any longer. */
  retry(uid: string): void {
    const { activities } = this.#deps;
    if (activities.get(uid, 'drain')?.state === 'failed') activities.forget(uid, 'drain');
    delete this.#attempts.get(uid)?.retryAtMs;
  }

  /** Forgets a drain, and aborts it if it runs; false until it has ended. */
  end(uid: string, why: string): boolean {
    const { activities } = this.#deps;
    activities.abort(uid, 'drain', why);
    if (activities.get(uid, 'drain')?.state === 'running') return false;
    activities.forget(uid, 'drain');
    this.#attempts.delete(uid);
    return true;
  }

  /** The object of this key is gone, or has `exceptUID` now. */
  forgetAll(key: string, exceptUID?: string): void {
    for (const { owner } of this.#attempts.values())
      if (owner.key === key && owner.uid !== exceptUID) this.#attempts.delete(owner.uid);
    this.#deps.activities.forgetAll(key, exceptUID);
  }

  /** The object is gone, and so is its activity. */
  forget(uid: string): void {
    this.#attempts.delete(uid);
  }
}
