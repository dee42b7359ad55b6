import { keyOf, type KubeObject } from '../../apis/meta.ts';
import type { Clock } from '../../base/clock/clock.ts';
import { ApiError, isExpired } from '../client/errors.ts';
import { errorOfStatus, isSilence } from '../client/failure.ts';
import type { ListWatch } from '../client/list-watch.ts';
import type { WatchEvent } from '../client/watch.ts';
import type { Logger } from '../../base/log/logger.ts';
import type { KubeMetrics } from '../../base/metrics/kube.ts';
import { listAll, type Listed } from './pager.ts';
import { ReconnectBackoff } from './reconnect-backoff.ts';
import { type Random, secureRandom } from '../../base/random/random.ts';

export interface ReflectorSink<T extends KubeObject> {
  /** Up to which everything has been delivered; undefined at the start. */
  resourceVersion(): string | undefined;
  /** Makes what is kept of an object; called once for each, as soon as it arrives. */
  keep(object: T): T;
  /** A list is asked for, or a watch that begins with one. */
  listing?(): void;
  replace(list: Listed<T>): void;
  deliver(type: 'ADDED' | 'MODIFIED' | 'DELETED', object: T): void;
  /** Nothing more happened up to this resourceVersion. */
  reach(resourceVersion: string): void;
  /** The last change that was delivered, from which a watch that broke is resumed; undefined: it is listed anew. */
  lastChange?(): string | undefined;
  /** A watch that resumes was accepted, or is over; `inOrder`: by the server, when its time was over. */
  opened?(): void;
  ended?(inOrder: boolean): void;
}

/** What a watch that broke is resumed on: whether the server still has the history that was seen. */
export interface Continuity {
  /** Whether nobody may rely on what was delivered before it was listed by quorum, although the watch may not have broken. */
  readonly mustList: boolean;
  /** A watch ended otherwise than by the server when its time was over; told before anything else is done. */
  broke(): void;
  /**
   * Resolves when it has been found since, by quorum reads, that the server goes on where we are, with whether the last change that
   * we know of was found too. Rejects with the signal's reason.
   */
  untilVerified(signal: AbortSignal): Promise<'same' | 'unknown'>;
}

export interface ReflectorOptions<T extends KubeObject> {
  readonly source: ListWatch<T>;
  readonly sink: ReflectorSink<T>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics?: KubeMetrics | undefined;
  /** Whether to ask for WatchList; false = list, then watch, as servers before 1.32 want it. */
  readonly streamLists?: boolean | undefined;
  /** Without it a watch that broke is resumed where it ended. */
  readonly continuity?: Continuity | undefined;
  readonly random?: Random | undefined;
  /** 10 to 14 s unless told otherwise. */
  readonly watchSeconds?: WatchSeconds | undefined;
}

interface Round {
  listed: boolean;
  opened: boolean;
  progressed: boolean;
  /** The server ended it when its time was over, or we did when the list that it began with was complete. */
  inOrder: boolean;
}

/** After how many seconds the server ends a watch: random, so that watches do not all end at once. */
export interface WatchSeconds {
  readonly least: number;
  readonly spread: number;
  /** The same of the next watch after one in which the server has sent bookmarks: each shows that the watch lives, and its silence ends it. */
  readonly bookmarked?: Pick<WatchSeconds, 'least' | 'spread'>;
}

/** It tells 2 s before how far it is: so a watch that stalls is noticed within 16 s, at the price of a request each 12 s for each kind. */
const WATCH_S: WatchSeconds = { least: 10, spread: 4 };
/** One that begins with all objects goes on as long as they need. */
const INITIAL_WATCH_S = 300;
/** The server's clock begins later than ours, and is not quite as exact. */
const EARLY_MS = 500;
/** A watch that ended sooner, without any event, is a server that cannot serve it. */
const VERY_SHORT_MS = 1_000;
/** Spread of reconnects when a watch breaks that had worked. */
const RECONNECT_SPREAD_MS = 100;
/** No attempt follows another sooner, though the server has answered somebody else meanwhile. */
const SHORTEST_PAUSE_MS = 800;
/** WatchLists that may fail in a row before one ordinary list is made. */
const STREAM_TRIES = 2;
/** Watches in a row that a server may not open, although it has answered reads just before, until it is listed instead. */
const UNOPENED_TRIES = 3;
/** And for so long at least: a server that starts opens them within that, and a watch that is resumed passes over nothing. */
const UNOPENED_MS = 60_000;
/** Longest pause after what a server answers that is starting, or is restarted behind a load balancer. */
const STARTING_PAUSE_MS = 2_000;
/** Failures that are normal while servers restart and networks blink; later ones are warnings. */
const QUIET_FAILURES = 2;
const INITIAL_EVENTS_END = 'k8s.io/initial-events-end';

/**
 * Keeps a sink equal to a collection, forever. One loop, one watch at a time:
 *
 * | state  | does                                    | then                                                              |
 * |--------|-----------------------------------------|-------------------------------------------------------------------|
 * | list   | WatchList; or a list and then a watch   | watch; refused (400, 422) → list without WatchList                |
 * | watch  | resumes at the sink's resourceVersion   | time over → watch, or verify if it has to be listed;              |
 * |        |                                         | broken, silent, 410, failed → verify                              |
 * |        |                                         | `listAnew` → list                                                 |
 * | verify | pauses, waits for `continuity`          | last change found → watch from there; not found, or 410, or       |
 * |        |                                         | watches are not opened though it answers reads → list             |
 *
 * The first list takes what the server has cached ('0'), where no `continuity` asks for a quorum read; a later one is not older than the sink; one
 * that the server refuses as expired or too new, and one after a history that could not be verified, is a quorum read.
 */
export class Reflector<T extends KubeObject> {
  readonly #options: ReflectorOptions<T>;
  readonly #backoff: ReconnectBackoff;
  readonly #random: Random;
  readonly #log: Logger;
  #mustList = true;
  #mustListQuorum = false;
  #streams: boolean;
  #failedStreams = 0;
  #listReason = 'start';
  /** Where the next watch begins, unless that is the sink's resourceVersion. */
  #resumeAt: string | undefined;
  /** The server was found to go on where we are, and nothing has come of that yet. */
  #isVerified = false;
  /** How many watches in a row were not opened although it had answered reads just before. */
  #unopened = 0;
  /** When the first of them was not (monotonic). */
  #unopenedSinceMs = 0;
  /** In the last watch. */
  #hasBookmarks = false;
  #restarting = new AbortController();

  constructor(options: ReflectorOptions<T>) {
    this.#options = options;
    this.#random = options.random ?? secureRandom;
    this.#backoff = new ReconnectBackoff(options.clock, { random: this.#random });
    this.#log = options.log;
    this.#streams = options.streamLists ?? true;
  }

  /** Runs until the signal is aborted; never rejects. Run again, it begins with a list. */
  async run(signal: AbortSignal): Promise<void> {
    this.#mustList = true;
    this.#listReason = 'start';
    while (!signal.aborted) {
      this.#restarting = new AbortController();
      const either = AbortSignal.any([signal, this.#restarting.signal]);
      try {
        await this.#turn(either);
      } catch (err) {
        if (!either.aborted) throw err;
      }
    }
  }

  /** Breaks off whatever is under way, and goes on from the sink's resourceVersion: the sink was given a list beside the watch. */
  restart(): void {
    this.#mustList = this.#options.sink.resourceVersion() === undefined;
    this.#mustListQuorum = this.#mustList;
    this.#resumeAt = undefined;
    this.#backoff.reached();
    this.#restarting.abort(new Error('listed in addition to the watch'));
  }

  /** Breaks off whatever is under way, and lists by quorum: nobody may rely on what was delivered. */
  listAnew(): void {
    this.#mustList = true;
    this.#mustListQuorum = true;
    this.#listReason = 'unverified';
    this.#restarting.abort(new Error('has to be listed'));
  }

  /** Lists or watches until that ends, and finds out how to go on. Rejects only with the signal's reason. */
  async #turn(signal: AbortSignal): Promise<void> {
    const { sink, continuity } = this.#options;
    const round: Round = { listed: false, opened: false, progressed: false, inOrder: false };
    let failure: unknown;
    try {
      await this.#round(round, signal);
      this.#count('ended');
    } catch (err) {
      signal.throwIfAborted();
      failure = err;
    } finally {
      sink.ended?.(round.inOrder);
    }
    const isInOrder = failure === undefined && round.inOrder;
    if (isInOrder && continuity?.mustList !== true) return;
    // A server that has forgotten where we were, although it goes on from there, was restarted: its list says the rest.
    const isLookedInto = isExpired(failure) && this.#isVerified;
    if (round.opened) this.#unopened = 0;
    // Of one that had to be listed first, and was not, the watch was not asked for.
    else if (failure !== undefined && this.#isVerified && !this.#mustList) {
      if (this.#unopened === 0) this.#unopenedSinceMs = this.#options.clock.monotonicMs();
      this.#unopened += 1;
    }
    this.#isVerified = false;
    if (!isInOrder && !isLookedInto) continuity?.broke();
    const pauseMs = failure === undefined ? 0 : this.#afterFailure(failure, round);
    if (pauseMs > 0) await this.#pause(pauseMs, isUnanswered(failure) && !this.#isUnwatched, signal);
    if (continuity === undefined || isLookedInto) return;
    const { clock } = this.#options;
    const brokeMs = clock.monotonicMs();
    const found = await continuity.untilVerified(signal);
    // While the server does not answer, nothing is refused.
    this.#unopenedSinceMs += clock.monotonicMs() - brokeMs;
    this.#continue(found);
    this.#isVerified = true;
  }

  /** A role without the verb, or a proxy that refuses watches: each attempt costs a list, and is made ever more rarely. */
  get #isUnwatched(): boolean {
    const forMs = this.#options.clock.monotonicMs() - this.#unopenedSinceMs;
    return this.#unopened >= UNOPENED_TRIES && forMs >= UNOPENED_MS;
  }

  #continue(found: 'same' | 'unknown'): void {
    if (!this.#mustList && this.#isUnwatched) {
      // What is seen would stand still for ever.
      this.#mustList = true;
      this.#listReason = 'unwatched';
    }
    if (this.#mustList) {
      this.#mustListQuorum ||= found === 'unknown';
      return;
    }
    this.#resumeAt = found === 'same' ? this.#options.sink.lastChange?.() : undefined;
    if (this.#resumeAt !== undefined) return;
    this.#mustList = true;
    this.#mustListQuorum = true;
    this.#listReason = 'unverified';
  }

  async #round(round: Round, signal: AbortSignal): Promise<void> {
    const { sink, clock, watchSeconds = WATCH_S } = this.#options;
    const mayStream = this.#streams && this.#failedStreams < STREAM_TRIES && !this.#isUnwatched;
    if (this.#mustList && !mayStream) {
      await this.#list(signal);
      round.listed = true;
    }
    const startedMs = clock.monotonicMs();
    if (this.#mustList) {
      await this.#watchList(round, signal);
      round.inOrder = true;
      return;
    }
    const resourceVersion = this.#resumeAt ?? sink.resourceVersion();
    const { least, spread } = (this.#hasBookmarks ? watchSeconds.bookmarked : undefined) ?? watchSeconds;
    const timeoutSeconds = Math.round(least + spread * this.#random());
    this.#hasBookmarks = false;
    const opened = (): void => {
      this.#resumeAt = undefined;
      sink.opened?.();
    };
    await this.#consume(this.#watch({ resourceVersion, timeoutSeconds }, round, signal, opened), round);
    this.#isVerified = false;
    const lastedMs = clock.monotonicMs() - startedMs;
    round.inOrder = lastedMs >= timeoutSeconds * 1_000 - EARLY_MS;
    if (!round.progressed && lastedMs < VERY_SHORT_MS) throw new Error('watch ended immediately without an event');
  }

  async #list(signal: AbortSignal): Promise<void> {
    const { source, sink } = this.#options;
    sink.listing?.();
    const resourceVersion = this.#mustListQuorum ? '' : (sink.resourceVersion() ?? '0');
    const { items, ...rest } = await listAll(source, { resourceVersion, signal });
    signal.throwIfAborted();
    this.#listed({ ...rest, items: items.map((item) => sink.keep(item)) });
  }

  /** The initial events arrive as additions; they count only once their end has arrived too. */
  async #watchList(round: Round, signal: AbortSignal): Promise<void> {
    const { sink } = this.#options;
    sink.listing?.();
    this.#failedStreams += 1;
    const initial = new Map<string, T>();
    const from = { resourceVersion: '', sendInitialEvents: true, timeoutSeconds: INITIAL_WATCH_S };
    await this.#consume(this.#watch(from, round, signal), round, (event) => {
      if (event.type === 'DELETED') initial.delete(keyOf(event.object));
      else if (event.type !== 'BOOKMARK') initial.set(keyOf(event.object), sink.keep(event.object));
      else if (event.object.metadata.annotations?.[INITIAL_EVENTS_END] === 'true') {
        this.#listed({ items: [...initial.values()], resourceVersion: event.object.metadata.resourceVersion });
        initial.clear();
        return true;
      }
      return false;
    });
    if (this.#mustList) throw new Error('watch ended before the initial events were complete');
  }

  #listed(list: Listed<T>): void {
    this.#options.metrics?.lists.inc({ kind: this.#options.source.resource.kind, reason: this.#listReason });
    this.#options.sink.replace(list);
    this.#mustList = false;
    this.#mustListQuorum = false;
    this.#resumeAt = undefined;
    this.#failedStreams = 0;
  }

  #watch(
    from: { resourceVersion: string | undefined; sendInitialEvents?: boolean; timeoutSeconds: number },
    round: Round,
    signal: AbortSignal,
    opened: () => void = () => undefined,
  ): AsyncIterable<WatchEvent<T>> {
    const onOpen = (): void => {
      round.opened = true;
      opened();
    };
    return this.#options.source.watch({ ...from, signal, onOpen });
  }

  /**
   * Delivers a stream. `takeInitial` gets the events until it returns true, which ends it: a watch of the usual length takes
   * its place. Throws ApiError for an ERROR event.
   */
  async #consume(
    stream: AsyncIterable<WatchEvent<T>>,
    round: Round,
    takeInitial?: (event: Exclude<WatchEvent<T>, { type: 'ERROR' }>) => boolean,
  ): Promise<void> {
    const { sink } = this.#options;
    for await (const event of stream) {
      if (event.type === 'ERROR') throw errorOfStatus(event.object, 500);
      round.progressed = true;
      if (takeInitial !== undefined) {
        if (takeInitial(event)) return;
      } else if (event.type === 'BOOKMARK') {
        this.#hasBookmarks = true;
        sink.reach(event.object.metadata.resourceVersion);
      } else sink.deliver(event.type, sink.keep(event.object));
    }
  }

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
    if (isSilence(err) && !round.progressed && this.#options.continuity === undefined) {
      // A watch from a version that the server has not reached is silent forever: an etcd restored from a backup.
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
    const ownPauseMs = Math.min(
      this.#backoff.next(),
      isOfStarting(err) && !this.#isUnwatched ? STARTING_PAUSE_MS : Infinity,
    );
    const retryInMs = Math.max(ownPauseMs, (err instanceof ApiError ? err.retryAfterMs : undefined) ?? 0);
    const level = this.#backoff.failures > QUIET_FAILURES ? 'warn' : 'debug';
    this.#log[level]({ err, retryInMs }, 'watching failed');
    return retryInMs;
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

/** What servers and load balancers answer while a server starts: kinds that are not served yet, caches that are filled. */
function isOfStarting(err: unknown): boolean {
  return err instanceof ApiError && (err.code === 404 || err.code === 429 || err.code >= 500);
}

function isRefusedStream(err: unknown): boolean {
  return err instanceof ApiError && (err.code === 400 || err.code === 422);
}
