import type { Event } from '../../apis/wire.ts';
import { toTimestamp, type Clock } from '../../base/clock/clock.ts';
import { GateClosedError } from '../gate/gate.ts';
import type { Writer } from '../client/client.ts';
import { ignoreAlreadyExists, isNotFound, isTooManyRequests, mayHaveHappened } from '../client/errors.ts';
import { mergePatch, type PatchBase } from '../client/patch.ts';
import { events } from '../client/resource.ts';
import type { Logger } from '../../base/log/logger.ts';
import type { EventMetrics } from '../../base/metrics/events.ts';
import { BoundedMap } from './bounded-map.ts';
import { Correlator, type Occurrence } from './correlator.ts';
import { eventNameFor, newEvent, type EventSource } from './event-object.ts';
import { type Random, secureRandom } from '../../base/random/random.ts';

/** Tells users what happened to their objects. */
export interface Recorder {
  /** Takes note and returns; never throws, never waits. Messages carry no secrets. */
  record(occurrence: Occurrence): void;
}

/** What a recorder is made of; one for each source component. */
export interface EventRecorderDeps {
  readonly source: EventSource;
  readonly writer: Pick<Writer, 'create' | 'patch'>;
  readonly clock: Clock;
  readonly random?: Random | undefined;
  readonly log: Logger;
  readonly metrics: EventMetrics;
}

/** Occurrences that wait to be written as one Event. */
interface Pending {
  readonly key: string;
  readonly occurrence: Occurrence;
  /** Name of the Event if it has to be created: chosen once, so that a repeated POST is AlreadyExists. */
  readonly name: string;
  readonly firstMs: number;
  lastMs: number;
  count: number;
  attempts: number;
  /** Monotonic time before which it is not tried again. */
  notBeforeMs: number;
}

/** An Event that we wrote, and may raise the count of. */
interface Written {
  readonly name: string;
  readonly namespace: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly firstMs: number;
  readonly count: number;
}

/** A burst of 2,000 machines must keep its Events, three each, while they trail behind; about 6 MB at worst. */
const MAX_PENDING = 10_000;
const MAX_WRITTEN = 4_096;
/** They trail behind: what machines wait for goes first. */
const SENDERS = 4;
/** At the end nothing else is written, and what still waits is lost. */
const SENDERS_AT_STOP = 32;
/** As client-go: twelve tries, about 10 s apart. */
const MAX_ATTEMPTS = 12;
const RETRY_MS = 10_000;
const WRITE_TIMEOUT_MS = 10_000;

/**
 * Writes core/v1 Events in the background: equal occurrences are one Event with a rising count, see Correlator for what is
 * combined. Memory is bounded: at most 10,000 Events wait, more are dropped and counted.
 */
export class EventRecorder implements Recorder {
  readonly #deps: EventRecorderDeps;
  readonly #correlator = new Correlator();
  readonly #pending = new Map<string, Pending>();
  readonly #sending = new Set<string>();
  readonly #written = new BoundedMap<string, Written>(MAX_WRITTEN);
  readonly #stopping = new AbortController();
  #senders = SENDERS;
  #cancelTimer: (() => void) | undefined;
  #idle: (() => void)[] = [];

  constructor(deps: EventRecorderDeps) {
    this.#deps = deps;
  }

  record(occurrence: Occurrence): void {
    if (this.#stopping.signal.aborted) return;
    const { clock, random = secureRandom } = this.#deps;
    const { key, message, delayMs } = this.#correlator.correlate(occurrence, clock.monotonicMs());
    const nowMs = clock.now();
    this.#enqueue({
      key,
      occurrence: { ...occurrence, message },
      name: eventNameFor(occurrence.subject, nowMs, random),
      firstMs: nowMs,
      lastMs: nowMs,
      count: 1,
      attempts: 0,
      notBeforeMs: clock.monotonicMs() + delayMs,
    });
  }

  /** Writes what waits, for at most `timeoutMs`; then drops the rest, which is told, and everything recorded later. */
  async stop(timeoutMs: number): Promise<void> {
    this.#senders = SENDERS_AT_STOP;
    for (const pending of this.#pending.values()) pending.notBeforeMs = 0;
    this.#pump();
    if (this.#pending.size + this.#sending.size > 0) {
      const cancel = this.#deps.clock.schedule(timeoutMs, () => this.#endWaiting());
      await new Promise<void>((resolve) => this.#idle.push(resolve));
      cancel();
    }
    this.#stopping.abort(new Error('the recorder has stopped'));
    this.#cancelTimer?.();
    this.#drop();
  }

  #enqueue(pending: Pending): void {
    const waiting = this.#pending.get(pending.key);
    if (waiting !== undefined) {
      // The later message is kept: it differs only for combined events.
      const merged = { ...waiting, occurrence: pending.occurrence, count: waiting.count + pending.count };
      merged.lastMs = Math.max(waiting.lastMs, pending.lastMs);
      this.#pending.set(pending.key, merged);
      return;
    }
    if (this.#pending.size >= MAX_PENDING) return this.#count('overflow');
    this.#pending.set(pending.key, pending);
    this.#pump();
  }

  #pump(): void {
    const nowMs = this.#deps.clock.monotonicMs();
    let soonestMs = Infinity;
    for (const pending of this.#pending.values()) {
      if (this.#sending.size >= this.#senders) return;
      if (this.#sending.has(pending.key)) continue;
      if (pending.notBeforeMs > nowMs) {
        soonestMs = Math.min(soonestMs, pending.notBeforeMs);
        continue;
      }
      this.#pending.delete(pending.key);
      this.#sending.add(pending.key);
      void this.#send(pending);
    }
    this.#cancelTimer?.();
    if (soonestMs < Infinity) this.#cancelTimer = this.#deps.clock.schedule(soonestMs - nowMs, () => this.#pump());
  }

  /** Writes one Event and goes on with the next. Never rejects. */
  async #send(pending: Pending): Promise<void> {
    const { clock, log } = this.#deps;
    try {
      await this.#write(pending);
      this.#count('written');
    } catch (err) {
      const attempts = pending.attempts + 1;
      const isWorthRetrying = mayHaveHappened(err) || isTooManyRequests(err) || err instanceof GateClosedError;
      if (isWorthRetrying && attempts < MAX_ATTEMPTS && !this.#stopping.signal.aborted) {
        this.#putBack({ ...pending, attempts, notBeforeMs: clock.monotonicMs() + RETRY_MS });
      } else {
        this.#count('failed');
        log.debug({ reason: pending.occurrence.reason, err }, 'could not write Event');
      }
    } finally {
      this.#sending.delete(pending.key);
      if (!this.#stopping.signal.aborted) this.#pump();
      if (this.#pending.size + this.#sending.size === 0) this.#endWaiting();
    }
  }

  /** Gives up what still waits. What is being sent may arrive, or fails by itself. */
  #drop(): void {
    const count = this.#pending.size;
    this.#pending.clear();
    if (count === 0) return;
    this.#count('dropped', count);
    this.#deps.log.warn({ events: count }, 'dropped Events that were still queued at shutdown');
  }

  /** What failed waits again, with what has happened meanwhile. */
  #putBack(failed: Pending): void {
    const newer = this.#pending.get(failed.key);
    if (newer === undefined) {
      this.#pending.set(failed.key, failed);
      return;
    }
    const { occurrence, lastMs, count } = newer;
    this.#pending.set(failed.key, { ...failed, occurrence, lastMs, count: failed.count + count });
  }

  async #write(pending: Pending): Promise<void> {
    const written = this.#written.get(pending.key);
    if (written === undefined) return this.#create(pending, pending.firstMs, pending.count);
    const count = written.count + pending.count;
    try {
      const { message } = pending.occurrence;
      const change = { count, message, lastTimestamp: toTimestamp(pending.lastMs) };
      const patch = mergePatch<PatchBase & Pick<Event, 'count' | 'message' | 'lastTimestamp'>>(
        { metadata: written },
        change,
      );
      await this.#deps.writer.patch('report', events, written, patch, this.#options());
      this.#written.set(pending.key, { ...written, count });
    } catch (err) {
      if (!isNotFound(err)) throw err;
      this.#written.delete(pending.key); // the API server keeps Events for an hour
      await this.#create(pending, written.firstMs, count);
    }
  }

  async #create(pending: Pending, firstMs: number, count: number): Promise<void> {
    const { source, writer } = this.#deps;
    const { key, occurrence, lastMs, name } = pending;
    const event = newEvent(name, source, occurrence, { count, firstMs, lastMs });
    const created = await writer.create('report', events, event, this.#options()).catch(ignoreAlreadyExists);
    if (created === undefined) return; // an earlier attempt, whose answer was lost
    const { namespace = '', uid, resourceVersion } = created.metadata;
    this.#written.set(key, { name, namespace, uid, resourceVersion, firstMs, count });
  }

  #options(): { signal: AbortSignal; timeoutMs: number } {
    return { signal: this.#stopping.signal, timeoutMs: WRITE_TIMEOUT_MS };
  }

  #endWaiting(): void {
    for (const resolve of this.#idle.splice(0)) resolve();
  }

  #count(fate: 'written' | 'overflow' | 'failed' | 'dropped', count = 1): void {
    this.#deps.metrics.events.inc({ fate }, count);
  }
}
