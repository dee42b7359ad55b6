// A turn of the event loop is no time: the order of what follows is the same in each run.
// oxlint-disable-next-line typescript/no-restricted-imports
import { setImmediate as nextTurn } from 'node:timers/promises';

import PQueue from 'p-queue';

import type { Clock } from '../../base/clock/clock.ts';
import type { QueueMetrics, QueueRecorder, QueueState } from '../../base/metrics/queue.ts';
import type { Backoff } from './backoff.ts';
import { type FairOptions, FairQueue, type GroupLane } from './fair-queue.ts';
import type { Priority, Queue } from './queue.ts';

/**
 * How work on a key ended. done: nothing more to do, failures forgotten. again: run after `afterMs`, or up to a second later; failures are
 * forgotten unless `keepFailures`. retry: run after a back-off that grows with each failure in a row, at most `maxMs`.
 */
export type Outcome =
  | { readonly kind: 'done' }
  | { readonly kind: 'again'; readonly afterMs: number; readonly keepFailures?: boolean }
  | { readonly kind: 'retry'; readonly maxMs?: number };

export interface Run {
  /** Aborted when the queue stops and its grace is over. */
  readonly signal: AbortSignal;
  /** Failures in a row before this run. */
  readonly failures: number;
}

export interface KeyedQueueDeps {
  /** Label of the metrics. */
  readonly name: string;
  readonly concurrency: number;
  readonly clock: Clock;
  readonly backoff: Backoff;
  readonly metrics: QueueMetrics;
  /**
   * How long a key rests after a run: what is added meanwhile runs together when that is over, unless the run itself asked to be run again
   * at once. For keys whose runs look at thousands of objects, each of which may change at any moment.
   */
  readonly restMs?: (key: string) => number;
  /** Whose key it is: of keys that wait, one of each group goes in turn, its most urgent first. All are of one group without it. */
  readonly groupOf?: (key: string) => string;
  /** How many keys of one group are worked on at once, so that one whose runs hang leaves the others theirs; without it all. */
  readonly mostOfGroup?: number;
  /** Works on one key. It has to log and count its own errors: one that it throws is taken as `retry` in silence. */
  work(key: string, run: Run): Promise<Outcome>;
}

interface Waiting {
  readonly sinceMs: number;
  priority: Priority;
}

interface Timer {
  readonly atMs: number;
  readonly cancel: () => void;
}

/** Priorities of p-queue, and the bit that says that a job of this priority is in the pool for a key. */
const RANK: Readonly<Record<Priority, number>> = { low: 1, normal: 2, high: 4, highest: 8 };

/**
 * A workqueue: keys collapse while they wait, a key never runs twice at once, a key added while it runs runs once more
 * afterwards. Work never starts inside `add`, so a handler may add several keys and still see a consistent world.
 *
 * A waiting key that is added with a higher priority gets a second job in the pool; whichever job comes first takes the key,
 * the other finds nothing and costs a microtask. Nothing is ever searched for or removed, so a backlog of many thousand
 * keys is cheap.
 */
export class KeyedQueue implements Queue {
  readonly #deps: KeyedQueueDeps;
  readonly #pool: PQueue<FairQueue, FairOptions>;
  readonly #recorder: QueueRecorder;
  readonly #abort = new AbortController();
  /** In the order in which they began to wait. */
  readonly #waiting = new Map<string, Waiting>();
  /** Since when. */
  readonly #running = new Map<string, number>();
  /** Ranks of the jobs that the pool holds for a key, as bits. */
  readonly #pooled = new Map<string, number>();
  /** By group, where there is a limit. */
  readonly #lanes = new Map<string, GroupLane>();
  readonly #timers = new Map<string, Timer>();
  readonly #failures = new Map<string, number>();
  /** Keys that rest, and how to end that. */
  readonly #resting = new Map<string, () => void>();
  #stopped = false;
  #mayRun: (key: string) => boolean = () => true;
  #idle: (() => void)[] = [];
  #onRunEnd: () => void = () => undefined;

  constructor(deps: KeyedQueueDeps) {
    this.#deps = deps;
    this.#pool = new PQueue({ concurrency: deps.concurrency, queueClass: FairQueue });
    this.#recorder = deps.metrics.track(deps.name, () => this.state);
  }

  get state(): QueueState {
    const nowMs = this.#deps.clock.monotonicMs();
    const oldest = this.#waiting.values().next().value;
    return {
      depth: this.#waiting.size,
      oldestWaitingMs: oldest === undefined ? 0 : nowMs - oldest.sinceMs,
      runningMs: [...this.#running.values()].map((sinceMs) => nowMs - sinceMs),
    };
  }

  failuresOf(key: string): number {
    return this.#failures.get(key) ?? 0;
  }

  add(key: string, priority: Priority = 'normal'): void {
    if (this.#stopped || !this.#mayRun(key)) return;
    const waiting = this.#waiting.get(key);
    if (waiting === undefined) {
      this.#waiting.set(key, { sinceMs: this.#deps.clock.monotonicMs(), priority });
      this.#recorder.added();
    } else if (RANK[priority] > RANK[waiting.priority]) {
      waiting.priority = priority;
    } else {
      return;
    }
    if (!this.#running.has(key) && !this.#resting.has(key)) this.#dispatch(key, priority);
  }

  addAfter(key: string, delayMs: number): void {
    this.#addAfter(key, delayMs, 'normal');
  }

  /** From now on only keys of which `mayRun` says so are worked on; others that wait are forgotten. */
  restrict(mayRun: (key: string) => boolean): void {
    this.#mayRun = mayRun;
    for (const key of this.#waiting.keys()) if (!mayRun(key)) this.#waiting.delete(key);
    for (const [key, timer] of this.#timers) {
      if (mayRun(key)) continue;
      timer.cancel();
      this.#timers.delete(key);
    }
  }

  /** Resolves when no key waits, runs, or comes back within `withinMs` from now, and at the latest then. */
  async rest(withinMs: number): Promise<void> {
    const { clock } = this.#deps;
    const untilMs = clock.monotonicMs() + withinMs;
    const rest = Promise.withResolvers<undefined>();
    const cancel = clock.schedule(withinMs, () => rest.resolve(undefined));
    this.#onRunEnd = () => {
      const isBusy = this.#waiting.size + this.#running.size > 0;
      if (!isBusy && [...this.#timers.values()].every(({ atMs }) => atMs > untilMs)) rest.resolve(undefined);
    };
    this.#onRunEnd();
    await rest.promise;
    cancel();
  }

  /**
   * Starts no more work, forgets what waits, and resolves when the running work has ended; after `graceMs` its signals are
   * aborted. It never resolves while a run goes on: who cannot wait forever has to race it.
   */
  async stop(graceMs: number): Promise<void> {
    this.#stopped = true;
    this.#waiting.clear();
    for (const timer of this.#timers.values()) timer.cancel();
    this.#timers.clear();
    for (const cancel of this.#resting.values()) cancel();
    this.#resting.clear();
    if (this.#running.size === 0) return;

    const cancel = this.#deps.clock.schedule(graceMs, () => this.abort());
    await new Promise<void>((resolve) => this.#idle.push(resolve));
    cancel();
  }

  /** Aborts the signals of all running work. Only together with `stop`. */
  abort(): void {
    this.#abort.abort(new Error(`workqueue ${this.#deps.name} is stopping`));
  }

  #addAfter(key: string, delayMs: number, priority: Priority): void {
    if (this.#stopped) return;
    this.#recorder.retried();
    if (delayMs <= 0) return this.add(key, priority);
    const { clock } = this.#deps;
    const atMs = clock.monotonicMs() + delayMs;
    const earlier = this.#timers.get(key);
    if (earlier !== undefined && earlier.atMs <= atMs) return;
    earlier?.cancel();
    const cancel = clock.schedule(delayMs, () => {
      this.#timers.delete(key);
      this.add(key, priority);
    });
    this.#timers.set(key, { atMs, cancel });
  }

  #dispatch(key: string, priority: Priority): void {
    const rank = RANK[priority];
    const pooled = this.#pooled.get(key) ?? 0;
    if ((pooled & rank) !== 0) return;
    this.#pooled.set(key, pooled | rank);
    const group = this.#deps.groupOf?.(key) ?? '';
    const lane = this.#laneOf(group);
    if (lane === undefined) void this.#pool.add(() => this.#take(key, rank), { priority: rank, group });
    else void this.#pool.add(() => this.#takeIn(lane, key, rank), { priority: rank, group, lane });
  }

  #laneOf(group: string): GroupLane | undefined {
    const { mostOfGroup: most } = this.#deps;
    if (most === undefined) return undefined;
    const lane = this.#lanes.get(group) ?? { most, running: 0 };
    this.#lanes.set(group, lane);
    return lane;
  }

  async #takeIn(lane: GroupLane, key: string, rank: number): Promise<void> {
    try {
      await this.#take(key, rank);
    } finally {
      lane.running -= 1;
    }
  }

  async #take(key: string, rank: number): Promise<void> {
    // p-queue starts a job inside add() when a worker is free; and a long backlog must let sockets and Lease renewals in.
    await nextTurn();
    const pooled = (this.#pooled.get(key) ?? 0) & ~rank;
    if (pooled === 0) this.#pooled.delete(key);
    else this.#pooled.set(key, pooled);

    // Taken by a job of another priority, or by `stop`; or running or at rest, and then the end of that dispatches it.
    const waiting = this.#waiting.get(key);
    if (waiting === undefined || this.#running.has(key) || this.#resting.has(key)) return;
    this.#waiting.delete(key);
    await this.#run(key, waiting);
  }

  async #run(key: string, { sinceMs, priority }: Waiting): Promise<void> {
    const { clock } = this.#deps;
    const startedMs = clock.monotonicMs();
    this.#recorder.started(startedMs - sinceMs);
    this.#running.set(key, startedMs);
    let outcome: Outcome;
    try {
      outcome = await this.#deps.work(key, { signal: this.#abort.signal, failures: this.failuresOf(key) });
    } catch {
      outcome = { kind: 'retry' }; // `work` has logged and counted it
    }
    this.#running.delete(key);
    this.#recorder.finished(clock.monotonicMs() - startedMs);
    // A deletion that is retried is still a deletion; what was not urgent only for being one of many no longer is.
    this.#settle(key, outcome, priority === 'low' ? 'normal' : priority);
    if (outcome.kind !== 'again' || outcome.afterMs > 0) this.#rest(key);

    this.#dispatchWaiting(key);
    this.#onRunEnd();
    if (this.#stopped && this.#running.size === 0) for (const resolve of this.#idle.splice(0)) resolve();
  }

  #rest(key: string): void {
    const restMs = this.#stopped ? 0 : (this.#deps.restMs?.(key) ?? 0);
    if (restMs <= 0) return;
    const cancel = this.#deps.clock.schedule(restMs, () => {
      this.#resting.delete(key);
      this.#dispatchWaiting(key);
    });
    this.#resting.set(key, cancel);
  }

  #dispatchWaiting(key: string): void {
    const waiting = this.#waiting.get(key);
    if (waiting !== undefined && !this.#running.has(key) && !this.#resting.has(key))
      this.#dispatch(key, waiting.priority);
  }

  #settle(key: string, outcome: Outcome, priority: Priority): void {
    switch (outcome.kind) {
      case 'done':
        this.#failures.delete(key);
        return;
      case 'again':
        if (outcome.keepFailures !== true) this.#failures.delete(key);
        this.#addAfter(key, this.#deps.backoff.lateMs(outcome.afterMs), priority);
        return;
      case 'retry': {
        const failures = this.failuresOf(key) + 1;
        this.#failures.set(key, failures);
        const delayMs = this.#deps.backoff.delayMs(failures, outcome.maxMs);
        this.#addAfter(key, delayMs, priority);
      }
    }
  }
}
