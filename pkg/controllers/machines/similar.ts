import { shortText } from '../../apis/short-text.ts';
import { fromTimestamp, MINUTE_MS } from '../../clock/clock.ts';
import type { LastOperation } from '../../apis/machine/v1alpha1/machine.ts';

/** Older than this, an operation is written again although nothing but its text changed. */
const FRESH_FOR_MS = 30 * MINUTE_MS;
/** Texts more alike than this count as the same. */
const ALIKE = 0.75;
/** Of a longer text only so many bytes are compared, these of its end among them. */
const MAX_BYTES = 1_024;
const END_BYTES = 256;

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
    likeness(previous.description ?? '', next.description ?? '').isAlike
  );
}

/** Whether two texts differ by less than a quarter of their length; and how much `work` it was to see that, in cells of a table. */
export function likeness(a: string, b: string): { readonly isAlike: boolean; readonly work: number } {
  if (a === b) return { isAlike: true, work: 0 };
  const [left, right] = [bytesOf(a), bytesOf(b)];
  const mean = (left.length + right.length) / 2;
  return isWithin(...whereTheyDiffer(left, right), mean * (1 - ALIKE));
}

/** What is stored may be longer than anything that we write, and a character takes up to three bytes for each of its UTF-16 units. */
function bytesOf(text: string): Uint8Array {
  const bytes = Buffer.from(shortText(text));
  if (bytes.length <= MAX_BYTES) return bytes;
  return Buffer.concat([bytes.subarray(0, MAX_BYTES - END_BYTES), bytes.subarray(-END_BYTES)]);
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

/**
 * Whether the Levenshtein distance, in bytes as the original counts, is less than `limit`. Only cells of the table are computed that lie
 * on a way of fewer edits: anyone who is off the diagonal by `k` has needed `k` edits, and needs as many again to come back.
 */
function isWithin(a: Uint8Array, b: Uint8Array, limit: number): ReturnType<typeof likeness> {
  const most = Math.ceil(limit) - 1;
  const longer = b.length - a.length;
  const spare = Math.floor((most - Math.abs(longer)) / 2);
  if (spare < 0) return { isAlike: false, work: 0 };
  const [lowest, highest] = [Math.min(longer, 0) - spare, Math.max(longer, 0) + spare];
  const tooMany = most + 1;
  let work = 0;
  let row = Uint16Array.from({ length: b.length + 1 }, (_unused, j) => (j <= highest ? j : tooMany));
  let below = new Uint16Array(b.length + 1).fill(tooMany);
  for (let i = 1; i <= a.length; i++) {
    const [first, last] = [Math.max(1, i + lowest), Math.min(b.length, i + highest)];
    below[first - 1] = first === 1 ? i : tooMany;
    let least = below[first - 1] ?? tooMany;
    for (let j = first; j <= last; j++) {
      const replace = (row[j - 1] ?? tooMany) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const edits = Math.min(replace, (row[j] ?? tooMany) + 1, (below[j - 1] ?? tooMany) + 1);
      below[j] = edits;
      if (edits < least) least = edits;
    }
    // The next row begins and ends one further.
    if (last < b.length) below[last + 1] = tooMany;
    work += last - first + 1;
    if (least > most) return { isAlike: false, work };
    [row, below] = [below, row];
  }
  return { isAlike: (row[b.length] ?? tooMany) <= most, work };
}
