import PQueue from 'p-queue';

import type { Clock } from '../../base/clock/clock.ts';
import type { Logger } from '../../base/log/logger.ts';
import type { ActivityMetrics, ActivityState } from '../../base/metrics/activity.ts';
import type { Activities, Activity, ActivityKind, ActivityOwner, ResultsByKind, ActivityWork } from './activity.ts';

/** How many of each kind run at once, for each account of a provider. */
export type ActivityLimits = Readonly<Record<ActivityKind, number>>;

/**
 * Work that loses nothing by being broken off: there is no answer to wait for, and anyone who comes next takes it up where it stands.
 * It does not hold up a process that stops.
 */
const INTERRUPTIBLE: ReadonlySet<ActivityKind> = new Set(['drain']);

export interface ActivityRegistryDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: ActivityMetrics;
  readonly limits: ActivityLimits;
}

/** queued → running → settled; an abort takes queued work straight to settled. */
interface Entry {
  readonly owner: ActivityOwner;
  readonly kind: ActivityKind;
  readonly sinceMs: number;
  readonly abort: AbortController;
  phase: 'queued' | 'running' | 'settled';
  outcome: Activity<unknown>;
  /** Nobody will ask for the result. */
  isOrphaned: boolean;
  /** Somebody has asked all the same. */
  isAskedFor: boolean;
}

/**
 * Long work by UID and kind, with a limit per kind. Results stay until they are forgotten, so that no pass can miss one;
 * work that has ended is never repeated by being looked at.
 */
export class ActivityRegistry<R extends ResultsByKind = Record<ActivityKind, unknown>> implements Activities<R> {
  readonly #deps: ActivityRegistryDeps;
  /** By kind and account; made when first needed. */
  readonly #pools = new Map<string, PQueue>();
  readonly #entries = new Map<string, Entry>();
  #enqueue: (key: string) => void = () => undefined;
  #unsettled = 0;
  #stopped = false;
  #idle: (() => void)[] = [];

  constructor(deps: ActivityRegistryDeps) {
    this.#deps = deps;
    deps.metrics.track(() => this.states());
  }

  /** From now on `enqueue` runs the owner's key when work has ended or has news; one only. */
  onEnd(enqueue: (key: string) => void): void {
    this.#enqueue = enqueue;
  }

  /** After `stop` nothing is started any more: the work asked for then looks as if it ran. */
  startOrGet<K extends keyof R & ActivityKind>(owner: ActivityOwner, kind: K, run: ActivityWork<R[K]>): Activity<R[K]> {
    const known = this.get(owner.uid, kind);
    if (known !== undefined) return known;

    const sinceMs = this.#deps.clock.monotonicMs();
    const outcome: Activity<R[K]> = { state: 'running', sinceMs };
    if (this.#stopped) return outcome;
    const abort = new AbortController();
    const entry: Entry = {
      owner,
      kind,
      sinceMs,
      abort,
      phase: 'queued',
      outcome,
      isOrphaned: false,
      isAskedFor: false,
    };
    this.#entries.set(idOf(owner.uid, kind), entry);
    this.#unsettled += 1;
    void this.#poolOf(owner, kind).add(() => this.#run(entry, run));
    return outcome;
  }

  get<K extends keyof R & ActivityKind>(uid: string, kind: K): Activity<R[K]> | undefined {
    const entry = this.#entries.get(idOf(uid, kind));
    // Its object was only not shown for a while: who asks again waits for the end, and what was broken off for that is begun anew.
    if (entry?.isOrphaned === true) {
      entry.isAskedFor = true;
      entry.isOrphaned = INTERRUPTIBLE.has(entry.kind) && entry.abort.signal.aborted;
    }
    // The entry of a kind was started with work of that kind.
    const outcome: Activity<unknown> | undefined = entry?.outcome;
    return outcome;
  }

  forget(uid: string, kind: ActivityKind): void {
    const entry = this.#entries.get(idOf(uid, kind));
    if (entry?.phase === 'settled') this.#drop(entry);
  }

  abort(uid: string, kind: ActivityKind, reason: string): void {
    const entry = this.#entries.get(idOf(uid, kind));
    if (entry !== undefined) this.#abort(entry, reason);
  }

  forgetAll(key: string, exceptUID?: string): void {
    for (const entry of this.#entries.values()) {
      if (entry.owner.key !== key || entry.owner.uid === exceptUID) continue;
      if (entry.phase === 'settled') {
        this.#drop(entry);
        continue;
      }
      entry.isOrphaned = true;
      if (INTERRUPTIBLE.has(entry.kind)) this.#abort(entry, 'the object no longer exists');
    }
  }

  /** Whether work for this key has ended by itself, and its result was not taken yet. */
  hasResult(key: string): boolean {
    return [...this.#entries.values()].some(
      ({ owner, phase, outcome, abort }) =>
        owner.key === key && phase === 'settled' && (outcome.state === 'done' || !abort.signal.aborted),
    );
  }

  /** Work that has not ended, by the key of its owner; since when, monotonic. */
  open(): readonly { readonly key: string; readonly kind: ActivityKind; sinceMs: number; isQueued: boolean }[] {
    return [...this.#entries.values()].flatMap(({ owner, kind, sinceMs, phase }) =>
      phase === 'settled' ? [] : [{ key: owner.key, kind, sinceMs, isQueued: phase === 'queued' }],
    );
  }

  states(): readonly ActivityState[] {
    const nowMs = this.#deps.clock.monotonicMs();
    const kinds = Object.keys(this.#deps.limits) as ActivityKind[];
    return kinds.map((kind) => {
      const open = [...this.#entries.values()].filter((entry) => entry.kind === kind && entry.phase !== 'settled');
      const running = open.filter((entry) => entry.phase === 'running').length;
      const oldestMs = open.reduce((oldest, entry) => Math.max(oldest, nowMs - entry.sinceMs), 0);
      return { kind, queued: open.length - running, running, oldestMs };
    });
  }

  /**
   * Starts no more work, aborts what waits and running drains, and resolves when the running work has ended; after `graceMs` it
   * is aborted too.
   * Never resolves while work goes on: who cannot wait forever has to race it.
   */
  async stop(graceMs: number): Promise<void> {
    this.#stopped = true;
    const reason = 'the process is stopping';
    for (const entry of this.#entries.values()) {
      if (entry.phase === 'queued' || INTERRUPTIBLE.has(entry.kind)) this.#abort(entry, reason);
    }
    if (this.#unsettled === 0) return;

    const cancel = this.#deps.clock.schedule(graceMs, () => {
      for (const entry of this.#entries.values()) this.#abort(entry, reason);
    });
    await new Promise<void>((resolve) => this.#idle.push(resolve));
    cancel();
  }

  #poolOf({ account = '' }: ActivityOwner, kind: ActivityKind): PQueue {
    const id = `${kind}/${account}`;
    const pool = this.#pools.get(id) ?? new PQueue({ concurrency: this.#deps.limits[kind] });
    this.#pools.set(id, pool);
    return pool;
  }

  async #run<T>(entry: Entry, run: ActivityWork<T>): Promise<void> {
    await Promise.resolve(); // p-queue starts a job inside add(): the pass that asked for it goes on first
    if (entry.phase === 'settled') return;
    entry.phase = 'running';
    const tell = (): void => {
      if (entry.phase === 'running' && !entry.isOrphaned) this.#enqueue(entry.owner.key);
    };
    const [ended] = await Promise.allSettled([startAsync(() => run(entry.abort.signal, tell))]);
    const settledAtMs = this.#deps.clock.monotonicMs();
    if (ended.status === 'fulfilled') this.#settle(entry, { state: 'done', result: ended.value, settledAtMs });
    else this.#settle(entry, { state: 'failed', error: ended.reason, settledAtMs });
  }

  #abort(entry: Entry, reason: string): void {
    if (entry.phase === 'settled') return;
    const error = new Error(`${entry.kind} was aborted: ${reason}`);
    entry.abort.abort(error);
    if (entry.phase === 'running') return;
    this.#settle(entry, { state: 'failed', error, settledAtMs: this.#deps.clock.monotonicMs() });
  }

  #settle(entry: Entry, outcome: Exclude<Activity<unknown>, { state: 'running' }>): void {
    const { log, metrics } = this.#deps;
    entry.phase = 'settled';
    entry.outcome = outcome;
    this.#unsettled -= 1;
    const result = outcome.state === 'failed' && entry.abort.signal.aborted ? 'aborted' : outcome.state;
    const ms = outcome.settledAtMs - entry.sinceMs;
    metrics.settled(entry.kind, result, ms);
    log.debug({ key: entry.owner.key, activity: entry.kind, result, ms }, 'activity ended');
    if (entry.isOrphaned) this.#drop(entry);
    if (!entry.isOrphaned || entry.isAskedFor) this.#enqueue(entry.owner.key);
    if (this.#stopped && this.#unsettled === 0) for (const resolve of this.#idle.splice(0)) resolve();
  }

  #drop(entry: Entry): void {
    this.#entries.delete(idOf(entry.owner.uid, entry.kind));
  }
}

function idOf(uid: string, kind: ActivityKind): string {
  return `${uid}/${kind}`;
}

/** A function that throws at once is a promise that rejects. */
async function startAsync<T>(run: () => Promise<T>): Promise<T> {
  return run();
}
