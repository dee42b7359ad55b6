import { shortText } from '../../apis/short-text.ts';
import { fromTimestamp, MINUTE_MS } from '../../clock/clock.ts';
import type { LastOperation } from '../../apis/machine/v1alpha1/machine.ts';

/** Older than this, an operation is written again although nothing but its text changed. */
const FRESH_FOR_MS = 30 * MINUTE_MS;
/** Texts more alike than this count as the same. */
const ALIKE = 0.75;

/**
 * Whether writing `next` over `previous` would tell nobody anything new: same type, state and code, and descriptions that
 * differ by little. Provider errors carry request ids; without this rule each retry would be a write.
 */
export function isSimilar(previous: LastOperation | undefined, next: LastOperation, nowMs: number): boolean {
  if (previous === undefined) return false;
  const writtenMs = fromTimestamp(previous.lastUpdateTime);
  if (writtenMs === undefined || nowMs - writtenMs > FRESH_FOR_MS) return false;
  return (
    previous.type === next.type &&
    previous.state === next.state &&
    (previous.errorCode ?? '') === (next.errorCode ?? '') &&
    areAlike(previous.description ?? '', next.description ?? '')
  );
}

function areAlike(a: string, b: string): boolean {
  if (a === b) return true;
  // What is stored may be longer than anything that we write.
  const left = Buffer.from(shortText(a));
  const right = Buffer.from(shortText(b));
  const mean = (left.length + right.length) / 2;
  return isWithin(...whereTheyDiffer(left, right), mean * (1 - ALIKE));
}

/** Without what both begin and end with, which needs no edit: long texts mostly differ by an id in the middle. */
function whereTheyDiffer(a: Uint8Array, b: Uint8Array): [Uint8Array, Uint8Array] {
  const shorter = Math.min(a.length, b.length);
  let start = 0;
  while (start < shorter && a[start] === b[start]) start++;
  let end = 0;
  while (end < shorter - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  return [a.subarray(start, a.length - end), b.subarray(start, b.length - end)];
}

/** Whether the Levenshtein distance, in bytes as the original counts, is less than `limit`. Gives up as soon as it cannot be. */
function isWithin(a: Uint8Array, b: Uint8Array, limit: number): boolean {
  // Each byte of difference in length is an edit: no need to look closer.
  if (Math.abs(a.length - b.length) >= limit) return false;
  let row = Uint16Array.from({ length: b.length + 1 }, (_unused, i) => i);
  let below = new Uint16Array(b.length + 1);
  for (let i = 1; i <= a.length; i++) {
    below[0] = i;
    let least = i;
    for (let j = 1; j <= b.length; j++) {
      const replace = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const edits = Math.min(replace, (row[j] ?? 0) + 1, (below[j - 1] ?? 0) + 1);
      below[j] = edits;
      if (edits < least) least = edits;
    }
    if (least >= limit) return false;
    [row, below] = [below, row];
  }
  return (row[b.length] ?? 0) < limit;
}
