import { BoundedMap } from './bounded-map.ts';

/** Normal: something happened. Warning: somebody may have to look. */
export type EventType = 'Normal' | 'Warning';

/** The object that an Event is about. */
export interface EventSubject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace: string | undefined;
  readonly name: string;
  readonly uid: string;
}

/** What happened to it. */
export interface Occurrence {
  readonly subject: EventSubject;
  readonly type: EventType;
  readonly reason: string;
  readonly message: string;
}

/** What to write: one Event for all occurrences with the same key. */
export interface Correlated {
  readonly key: string;
  readonly message: string;
}

const SIMILAR_LIMIT = 10;
const SIMILAR_WINDOW_MS = 600_000;
const BURST = 25;
const REFILL_MS = 300_000;
const CAPACITY = 4_096;
const LONGEST_MESSAGE = 1_024;

interface Similar {
  lastMs: number;
  readonly messages: Set<string>;
}

interface Bucket {
  tokens: number;
  atMs: number;
}

/**
 * client-go's rules for the Events of one source: equal ones are one Event; more than 10 that differ only in their message,
 * within 10 min, become one "(combined from similar events)"; about one object 25 at once, then one per 5 min. Remembers
 * the 4,096 objects and groups used last.
 */
export class Correlator {
  readonly #similar = new BoundedMap<string, Similar>(CAPACITY);
  readonly #buckets = new BoundedMap<string, Bucket>(CAPACITY);

  /** The Event that this occurrence belongs to; undefined when there were too many about its object. */
  correlate({ subject, type, reason, message }: Occurrence, nowMs: number): Correlated | undefined {
    const object = keyOf(subject.apiVersion, subject.kind, subject.namespace, subject.name, subject.uid);
    if (!this.#take(object, nowMs)) return undefined;
    const group = keyOf(object, type, reason);
    if (this.#isOneOfMany(group, message, nowMs)) {
      return { key: group, message: truncated(`(combined from similar events): ${message}`) };
    }
    return { key: keyOf(group, message), message: truncated(message) };
  }

  #isOneOfMany(group: string, message: string, nowMs: number): boolean {
    const known = this.#similar.get(group);
    const similar =
      known === undefined || nowMs - known.lastMs > SIMILAR_WINDOW_MS
        ? { lastMs: nowMs, messages: new Set<string>() }
        : known;
    similar.lastMs = nowMs;
    this.#similar.set(group, similar);
    if (similar.messages.has(message)) return false;
    if (similar.messages.size >= SIMILAR_LIMIT) return true;
    similar.messages.add(message);
    return false;
  }

  #take(object: string, nowMs: number): boolean {
    const bucket = this.#buckets.get(object) ?? { tokens: BURST, atMs: nowMs };
    bucket.tokens = Math.min(BURST, bucket.tokens + (nowMs - bucket.atMs) / REFILL_MS);
    bucket.atMs = nowMs;
    const isAllowed = bucket.tokens >= 1;
    if (isAllowed) bucket.tokens -= 1;
    this.#buckets.set(object, bucket);
    return isAllowed;
  }
}

function keyOf(...parts: readonly (string | undefined)[]): string {
  return parts.map((part) => part ?? '').join('\u0000');
}

function truncated(message: string): string {
  return message.length <= LONGEST_MESSAGE ? message : `${message.slice(0, LONGEST_MESSAGE - 1).toWellFormed()}…`;
}
