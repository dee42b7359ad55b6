import { BoundedMap } from './bounded-map.ts';
import { combinedMessage, LONGEST_MESSAGE, truncated } from './combined-message.ts';

/** Normal: something happened. Warning: somebody may have to look. */
export type EventType = 'Normal' | 'Warning';

export interface EventSubject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace: string | undefined;
  readonly name: string;
  readonly uid: string;
}

export interface Occurrence {
  readonly subject: EventSubject;
  readonly type: EventType;
  readonly reason: string;
  readonly message: string;
}

/** What to write: one Event for all occurrences with the same key. */
export interface Correlated {
  readonly key: string;
  /** Of the Event as it is now, this occurrence included. */
  readonly message: string;
  /** How long the write may wait for more of the same; 0 when it is to be told at once. */
  readonly delayMs: number;
}

const SIMILAR_LIMIT = 10;
const SIMILAR_WINDOW_MS = 600_000;
/** client-go's limit for one object; beyond it nothing is dropped here, it is only written less often. */
const BURST = 25;
/** Combined Events about one object: with some 25 names each, a burst of 2,000 machines is told in full. */
const COMBINED_BURST = 100;
const REFILL_MS = 300_000;
const PACE_MS = 2_000;
const CAPACITY = 4_096;

/** Occurrences that differ only in their message. */
interface Similar {
  lastMs: number;
  /** The first ones, each of which has an Event of its own. */
  readonly messages: Set<string>;
  batch: Batch | undefined;
}

interface Batch {
  readonly key: string;
  messages: readonly string[];
}

/**
 * Which Event an occurrence belongs to. As in client-go equal ones are one Event with a rising count, and more than 10 that
 * differ only in their message, within 10 min, are combined. Unlike it, nothing is left out: a combined Event names all that it
 * stands for and is followed by another one when it is full, and many Events about one object are written later, not dropped.
 * Only after 100 full ones does the last one let go of its oldest messages; its count still tells of them. Remembers the 4,096
 * objects and groups used last. docs/decisions/events-of-many-machines.md says why.
 */
export class Correlator {
  readonly #similar = new BoundedMap<string, Similar>(CAPACITY);
  readonly #events = new Buckets(BURST);
  readonly #combined = new Buckets(COMBINED_BURST);
  #batches = 0;

  /** The Event that this occurrence belongs to. */
  correlate({ subject, type, reason, message: whole }: Occurrence, nowMs: number): Correlated {
    // At once: what is remembered and compared is no longer than what is written.
    const message = truncated(whole);
    const object = keyOf(subject.apiVersion, subject.kind, subject.namespace, subject.name, subject.uid);
    const isPrompt = this.#events.take(object, nowMs);
    const group = keyOf(object, type, reason);
    const similar = this.#similarTo(group, nowMs);
    if (similar.messages.has(message) || similar.messages.size < SIMILAR_LIMIT) {
      similar.messages.add(message);
      return { key: keyOf(group, message), message, delayMs: isPrompt ? 0 : PACE_MS };
    }
    const batch = this.#combine(similar, object, group, message, nowMs);
    return { key: batch.key, message: truncated(combinedMessage(batch.messages)), delayMs: PACE_MS };
  }

  #similarTo(group: string, nowMs: number): Similar {
    const known = this.#similar.get(group);
    if (known !== undefined && nowMs - known.lastMs <= SIMILAR_WINDOW_MS) {
      known.lastMs = nowMs;
      return known;
    }
    const similar = { lastMs: nowMs, messages: new Set<string>(), batch: undefined };
    this.#similar.set(group, similar);
    return similar;
  }

  #combine(similar: Similar, object: string, group: string, message: string, nowMs: number): Batch {
    const { batch } = similar;
    if (batch === undefined) return (similar.batch = this.#newBatch(group, message));
    if (batch.messages.includes(message)) return batch;
    const messages = [...batch.messages, message];
    if (fits(messages)) batch.messages = messages;
    else if (this.#combined.take(object, nowMs)) return (similar.batch = this.#newBatch(group, message));
    else batch.messages = latestThatFit(messages);
    return batch;
  }

  #newBatch(group: string, message: string): Batch {
    this.#batches += 1;
    return { key: keyOf(group, '', String(this.#batches)), messages: [message] };
  }
}

/** Token buckets, one for each object, refilled one token in 5 min. */
class Buckets {
  readonly #buckets = new BoundedMap<string, { tokens: number; atMs: number }>(CAPACITY);
  readonly #size: number;

  constructor(size: number) {
    this.#size = size;
  }

  take(object: string, nowMs: number): boolean {
    const bucket = this.#buckets.get(object) ?? { tokens: this.#size, atMs: nowMs };
    bucket.tokens = Math.min(this.#size, bucket.tokens + (nowMs - bucket.atMs) / REFILL_MS);
    bucket.atMs = nowMs;
    const isAllowed = bucket.tokens >= 1;
    if (isAllowed) bucket.tokens -= 1;
    this.#buckets.set(object, bucket);
    return isAllowed;
  }
}

function fits(messages: readonly string[]): boolean {
  return combinedMessage(messages).length <= LONGEST_MESSAGE;
}

/** The last of `messages`, as many as one Event can tell; at least one. */
function latestThatFit(messages: readonly string[]): readonly string[] {
  let from = 1;
  while (from < messages.length - 1 && !fits(messages.slice(from))) from += 1;
  return messages.slice(from);
}

function keyOf(...parts: readonly (string | undefined)[]): string {
  return parts.map((part) => part ?? '').join('\u0000');
}
