import { keyOf } from '../apis/meta.ts';
import type { KubeObject } from '../apis/meta.ts';
import type { Clock } from '../clock/clock.ts';
import { ApiError, isExpired } from '../kube/errors.ts';
import { errorOfStatus, isSilence } from '../kube/failure.ts';
import type { ListWatch } from '../kube/list-watch.ts';
import type { WatchEvent } from '../kube/watch.ts';
import type { Logger } from '../log/logger.ts';
import type { KubeMetrics } from '../metrics/kube.ts';
import { listAll } from './pager.ts';
import type { Listed } from './pager.ts';
import { ReconnectBackoff } from './reconnect-backoff.ts';

/** Where a reflector delivers. */
export interface Sink<T extends KubeObject> {
  /** Up to which everything has been delivered; undefined at the start. */
  resourceVersion(): string | undefined;
  /** Makes what is kept of an object; called once for each, as soon as it arrives. */
  keep(object: T): T;
  replace(list: Listed<T>): void;
  deliver(type: 'ADDED' | 'MODIFIED' | 'DELETED', object: T): void;
  /** Nothing more happened up to this resourceVersion. */
  reach(resourceVersion: string): void;
}

/** What a reflector is made of. */
export interface ReflectorOptions<T extends KubeObject> {
  readonly source: ListWatch<T>;
  readonly sink: Sink<T>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics?: KubeMetrics | undefined;
  /** Whether to ask for WatchList; false = list, then watch, as servers before 1.32 want it. */
  readonly streamLists?: boolean | undefined;
  readonly random?: (() => number) | undefined;
}

/** What one turn of the loop has come to. */
interface Round {
  listed: boolean;
  /** The server accepted the watch. */
  opened: boolean;
  /** The watch delivered something. */
  progressed: boolean;
}

/** The server ends a watch after 5 to 10 min, random, so that watches do not all end at once. */
const SHORTEST_WATCH_S = 300;
/** A watch that ended sooner, without any event, is a server that cannot serve it. */
const VERY_SHORT_MS = 1_000;
/** Spread of reconnects when a watch breaks that had worked. */
const RECONNECT_SPREAD_MS = 100;
/** No attempt follows another sooner, though the server has answered somebody else meanwhile. */
const SHORTEST_PAUSE_MS = 800;
/** WatchLists that may fail in a row before one ordinary list is made. */
const STREAM_TRIES = 2;
/** Failures that are normal while servers restart and networks blink; later ones are warnings. */
const QUIET_FAILURES = 2;
const INITIAL_EVENTS_END = 'k8s.io/initial-events-end';

/**
 * Keeps a sink equal to a collection, for ever. One loop, one watch at a time:
 *
 * | state  | does                                    | then                                                                    |
 * |--------|-----------------------------------------|-------------------------------------------------------------------------|
 * | list   | WatchList; or a list and then a watch   | watch; refused (400, 422) → list without WatchList                      |
 * | watch  | resumes at the sink's resourceVersion   | ended or broken → watch; 410 or all silent → list; failed → pause first |
 *
 * The first list takes what the server has cached ('0'); a later one is not older than the sink; one that the server
 * refuses as expired or too new makes the next a quorum read.
 */
export class Reflector<T extends KubeObject> {
  readonly #options: ReflectorOptions<T>;
  readonly #backoff: ReconnectBackoff;
  readonly #random: () => number;
  readonly #log: Logger;
  #mustList = true;
  #mustListQuorum = false;
  #streams: boolean;
  #failedStreams = 0;
  #listReason = 'start';

  constructor(options: ReflectorOptions<T>) {
    this.#options = options;
    this.#random = options.random ?? Math.random;
    this.#backoff = new ReconnectBackoff(options.clock, this.#random);
    this.#log = options.log;
    this.#streams = options.streamLists ?? true;
  }

  /** Runs until the signal is aborted; never rejects. Run again, it begins with a list. */
  async run(signal: AbortSignal): Promise<void> {
    this.#mustList = true;
    this.#listReason = 'start';
    while (!signal.aborted) {
      const round: Round = { listed: false, opened: false, progressed: false };
      try {
        await this.#round(round, signal);
        this.#count('ended');
      } catch (err) {
        if (signal.aborted) return;
        const pauseMs = this.#afterFailure(err, round);
        if (pauseMs > 0) await this.#pause(pauseMs, isUnanswered(err), signal);
      }
    }
  }

  async #round(round: Round, signal: AbortSignal): Promise<void> {
    const { sink, clock } = this.#options;
    if (this.#mustList && !(this.#streams && this.#failedStreams < STREAM_TRIES)) {
      await this.#list(signal);
      round.listed = true;
    }
    const startedMs = clock.monotonicMs();
    if (this.#mustList) await this.#watchList(round, signal);
    else await this.#consume(this.#watch({ resourceVersion: sink.resourceVersion() }, round, signal), round);
    if (!round.progressed && clock.monotonicMs() - startedMs < VERY_SHORT_MS) {
      throw new Error('watch ended at once and without an event');
    }
  }

  async #list(signal: AbortSignal): Promise<void> {
    const { source, sink } = this.#options;
    const resourceVersion = this.#mustListQuorum ? '' : (sink.resourceVersion() ?? '0');
    const { items, ...rest } = await listAll(source, { resourceVersion, signal });
    this.#listed({ ...rest, items: items.map((item) => sink.keep(item)) });
  }

  /** The initial events arrive as additions; they count only once their end has arrived too. */
  async #watchList(round: Round, signal: AbortSignal): Promise<void> {
    const { sink } = this.#options;
    this.#failedStreams += 1;
    const initial = new Map<string, T>();
    const stream = this.#watch({ resourceVersion: '', sendInitialEvents: true }, round, signal);
    await this.#consume(stream, round, (event) => {
      if (event.type === 'DELETED') initial.delete(keyOf(event.object));
      else if (event.type !== 'BOOKMARK') initial.set(keyOf(event.object), sink.keep(event.object));
      else if (event.object.metadata.annotations?.[INITIAL_EVENTS_END] === 'true') {
        this.#listed({ items: [...initial.values()], resourceVersion: event.object.metadata.resourceVersion });
        initial.clear();
        return true;
      }
      return false;
    });
    if (this.#mustList) throw new Error('watch ended before its initial events did');
  }

  #listed(list: Listed<T>): void {
    this.#options.metrics?.lists.inc({ kind: this.#options.source.resource.kind, reason: this.#listReason });
    this.#options.sink.replace(list);
    this.#mustList = false;
    this.#mustListQuorum = false;
    this.#failedStreams = 0;
  }

  #watch(
    from: { resourceVersion: string | undefined; sendInitialEvents?: boolean },
    round: Round,
    signal: AbortSignal,
  ): AsyncIterable<WatchEvent<T>> {
    const timeoutSeconds = Math.round(SHORTEST_WATCH_S * (1 + this.#random()));
    const onOpen = (): void => void (round.opened = true);
    return this.#options.source.watch({ ...from, timeoutSeconds, signal, onOpen });
  }

  /** Delivers a stream. `takeInitial` gets the events until it returns true. Throws ApiError for an ERROR event. */
  async #consume(
    stream: AsyncIterable<WatchEvent<T>>,
    round: Round,
    takeInitial?: (event: Exclude<WatchEvent<T>, { type: 'ERROR' }>) => boolean,
  ): Promise<void> {
    const { sink } = this.#options;
    let isInitial = takeInitial !== undefined;
    for await (const event of stream) {
      if (event.type === 'ERROR') throw errorOfStatus(event.object, 500);
      if (isInitial) isInitial = !(takeInitial?.(event) ?? true);
      else if (event.type === 'BOOKMARK') sink.reach(event.object.metadata.resourceVersion);
      else sink.deliver(event.type, sink.keep(event.object));
      round.progressed = true;
    }
  }

  /** Decides how to go on, and says after which pause. */
  #afterFailure(err: unknown, round: Round): number {
    if (isExpired(err) || isTooNew(err)) {
      // A list that is refused, or whose watch is, came from a server's cache that is too far behind.
      this.#mustListQuorum = this.#mustList || round.listed || isTooNew(err);
      this.#mustList = true;
      this.#listReason = 'expired';
      this.#count('expired');
      this.#log.debug({ err }, 'watch expired');
      return round.listed ? this.#backoff.next() : 0;
    }
    this.#count('failed');
    if (isSilence(err) && !round.progressed) {
      // A watch from a version that the server has not reached is silent for ever: an etcd restored from a backup.
      this.#mustList = true;
      this.#listReason = 'silent';
    }
    if (this.#mustList && this.#streams && isRefusedStream(err)) {
      this.#streams = false;
      this.#log.info({ err }, 'server refused WatchList');
      return 0;
    }
    if (round.progressed) {
      this.#log.debug({ err }, 'watch broke');
      return this.#random() * RECONNECT_SPREAD_MS;
    }
    // A network that breaks every second leaves no time for an event: what was missed meanwhile must not wait ever longer.
    if (round.opened && isUnanswered(err)) this.#backoff.reached();
    const pauseMs = this.#backoff.next();
    const level = this.#backoff.failures > QUIET_FAILURES ? 'warn' : 'debug';
    this.#log[level]({ err, ms: pauseMs }, 'watching failed');
    return Math.max(pauseMs, (err instanceof ApiError ? err.retryAfterMs : undefined) ?? 0);
  }

  #count(result: string): void {
    this.#options.metrics?.watches.inc({ kind: this.#options.source.resource.kind, result });
  }

  /** Waits; one that waits for a server to be reached only until it has answered somebody else. */
  async #pause(ms: number, isUnreachable: boolean, signal: AbortSignal): Promise<void> {
    const { clock, source } = this.#options;
    const failedAtMs = clock.monotonicMs();
    const over = new AbortController();
    const either = AbortSignal.any([signal, over.signal]);
    try {
      await clock.sleep(Math.min(ms, SHORTEST_PAUSE_MS), signal);
      const restMs = ms - SHORTEST_PAUSE_MS;
      if (restMs <= 0) return;
      const rest = clock.sleep(restMs, either);
      await (isUnreachable ? Promise.race([rest, source.answeredSince(failedAtMs, either)]) : rest);
    } catch {
      // Aborted: the loop looks at the signal itself.
    } finally {
      over.abort();
    }
  }
}

/** The server's cache has not reached the resourceVersion that was asked for: an etcd restored from a backup, at worst. */
function isTooNew(err: unknown): boolean {
  if (!(err instanceof ApiError)) return false;
  return err.status?.details?.causes?.some(({ reason }) => reason === 'ResourceVersionTooLarge') ?? false;
}

/** The server was not reached, or the connection broke; one that ends watches as soon as it has accepted them is another matter. */
function isUnanswered(err: unknown): boolean {
  return err instanceof ApiError && err.code === 0;
}

function isRefusedStream(err: unknown): boolean {
  return err instanceof ApiError && (err.code === 400 || err.code === 422);
}
