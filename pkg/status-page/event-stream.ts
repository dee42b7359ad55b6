import { type Clock, toTimestamp } from '../base/clock/clock.ts';
import type { Logger } from '../base/log/logger.ts';
import { changesBetween, type EncodedSnapshot, NOTHING_SENT } from './changes.ts';

/** Where Events are written to: a response, as far as it is needed. */
export interface StreamSink {
  /** False: no more is to be written until `drain`. */
  write(text: string): boolean;
  end(): void;
  destroy(): void;
  once(event: 'drain' | 'close', run: () => void): unknown;
}

export interface EventStreamDeps {
  readonly clock: Clock;
  readonly log: Logger;
  /** What is shown now. It is read only while there are readers. */
  read(): Promise<EncodedSnapshot>;
}

export const MAX_READERS = 16;
/** Changes that come within this time are sent together. */
const EVERY_MS = 1_000;
/** The longest share of its time that the process spends on reading, as a divisor. */
const SHARE = 20;
/** So that a browser notices a connection that has broken without a word. */
const BEAT_EVERY_MS = 10_000;
/** A reader that takes nothing for so long is given up. */
const GIVEN_UP_AFTER_MS = 60_000;
/** Browsers connect again after this time. */
const RETRY_MS = 2_000;

interface Reader {
  readonly sink: StreamSink;
  /** What was sent to it last, so that one who is slow is sent less, and nothing is kept for it. */
  known: EncodedSnapshot;
  /** Since when it takes nothing more; undefined while it does. */
  fullSinceMs: number | undefined;
  sentMs: number;
}

/** Sends everything to each reader, then what changes, at most once a second. */
export class EventStream {
  readonly #deps: EventStreamDeps;
  readonly #readers = new Set<Reader>();
  #cancel: (() => void) | undefined;
  #isReading = false;
  #isFailing = false;
  #isStopped = false;

  constructor(deps: EventStreamDeps) {
    this.#deps = deps;
  }

  get isFull(): boolean {
    return this.#isStopped || this.#readers.size >= MAX_READERS;
  }

  add(sink: StreamSink): void {
    const reader: Reader = {
      sink,
      known: NOTHING_SENT,
      fullSinceMs: undefined,
      sentMs: this.#deps.clock.monotonicMs(),
    };
    this.#readers.add(reader);
    sink.once('close', () => this.#remove(reader));
    this.#write(reader, `retry: ${RETRY_MS}\n\n`);
    this.#schedule(0);
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel?.();
    for (const { sink } of this.#readers) sink.end();
    this.#readers.clear();
  }

  #remove(reader: Reader): void {
    this.#readers.delete(reader);
    if (this.#readers.size > 0) return;
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #schedule(delayMs: number): void {
    if (this.#isReading || this.#isStopped || this.#readers.size === 0) return;
    this.#cancel?.();
    this.#cancel = this.#deps.clock.schedule(delayMs, () => void this.#tick());
  }

  /** Never rejects. */
  async #tick(): Promise<void> {
    const { clock, log } = this.#deps;
    const beganMs = clock.monotonicMs();
    this.#isReading = true;
    try {
      const snapshot = await this.#deps.read();
      this.#send(snapshot);
      this.#isFailing = false;
    } catch (err) {
      log[this.#isFailing ? 'debug' : 'error']({ err }, 'could not read what the status page shows');
      this.#isFailing = true;
    } finally {
      this.#isReading = false;
    }
    this.#schedule(Math.max(EVERY_MS, SHARE * (clock.monotonicMs() - beganMs)));
  }

  #send(snapshot: EncodedSnapshot): void {
    const nowMs = this.#deps.clock.monotonicMs();
    const wallMs = this.#deps.clock.now();
    const beat = `event: beat\ndata: ${JSON.stringify({ at: toTimestamp(wallMs) })}\n\n`;
    // Most readers know the same.
    const changes = new Map<EncodedSnapshot, string | undefined>();
    for (const reader of this.#readers) {
      if (reader.fullSinceMs !== undefined) {
        if (nowMs - reader.fullSinceMs > GIVEN_UP_AFTER_MS) reader.sink.destroy();
        continue;
      }
      const { known } = reader;
      if (!changes.has(known)) changes.set(known, changesBetween(known, snapshot, wallMs));
      const text = changes.get(known);
      reader.known = snapshot;
      if (text !== undefined) this.#write(reader, `data: ${text}\n\n`);
      else if (nowMs - reader.sentMs >= BEAT_EVERY_MS) this.#write(reader, beat);
    }
  }

  #write(reader: Reader, text: string): void {
    const { clock } = this.#deps;
    reader.sentMs = clock.monotonicMs();
    if (reader.sink.write(text)) return;
    reader.fullSinceMs = clock.monotonicMs();
    reader.sink.once('drain', () => (reader.fullSinceMs = undefined));
  }
}
