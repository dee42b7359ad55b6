import { shortText } from '../../apis/short-text.ts';
import { fromTimestamp, MINUTE_MS } from '../../base/clock/clock.ts';
import type { LastOperation } from '../../apis/machine/v1alpha1/machine.ts';

/** Older than this, an operation is written again although nothing but its text changed. */
const FRESH_FOR_MS = 30 * MINUTE_MS;

/**
 * Whether writing `next` over `previous` would tell nobody anything new: same type, state and code, and descriptions that differ in nothing
 * but what varies from one attempt to the next. Provider errors carry request ids; without this rule each retry would be a write. Another word is
 * another error: the original compares by edit distance, and keeps short texts that name another field or Machine.
 */
export function isSimilar(previous: LastOperation | undefined, next: LastOperation, nowMs: number): boolean {
  if (previous === undefined) return false;
  const writtenMs = fromTimestamp(previous.lastUpdateTime);
  if (writtenMs === undefined || nowMs - writtenMs > FRESH_FOR_MS) return false;
  return (
    previous.type === next.type &&
    previous.state === next.state &&
    (previous.errorCode ?? '') === (next.errorCode ?? '') &&
    lasting(previous.description) === lasting(next.description)
  );
}

const VARIES = '#';

/** What varies from one attempt to the next, in the order in which it is left out. */
const VARYING: readonly RegExp[] = [
  // Named as the id of a request: whatever it looks like.
  /(?<=\b(?:request|correlation|trace|activity|operation)[ _-]?id["']?\s*[:=]?\s*["']?)[\w./+=-]+/gi,
  // UUIDs, timestamps, durations as Go writes them.
  /\b[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}\b/gi,
  /\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?/g,
  /\b(?:\d+(?:\.\d+)?(?:ns|us|µs|ms|s|m|h))+\b/g,
  // Long ids of letters and digits in both cases, such as messages that only the provider can decode.
  /(?<![\w-])(?=[\w-]*[a-z])(?=[\w-]*[A-Z])(?=[\w-]*\d)[\w-]{40,}/g,
  // Ids of letters and digits; hexadecimal ones of letters only.
  /\b(?=[a-z]*\d)[a-z\d]{6,}\b/gi,
  /\b[a-f]{8,64}\b/gi,
  // What is left of numbers.
  /\d+(?:\.\d+)?/g,
];

/** A text without what varies. */
function lasting(text = ''): string {
  return VARYING.reduce((left, one) => left.replace(one, VARIES), shortText(text));
}
