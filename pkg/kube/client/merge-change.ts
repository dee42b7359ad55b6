import { isDeepStrictEqual } from 'node:util';

import { isObject } from '../../apis/members.ts';
import type { MergePatch } from './patch.ts';

export type ObjectFields = Readonly<Record<string, unknown>>;

/**
 * What a JSON merge patch has to hold so that a member that is `before` becomes `after`: a merge patch merges objects, so
 * what vanished must be named with null; lists and scalars are replaced.
 */
export function replacing<T>(before: T | undefined, after: T | undefined): MergePatch<T> | null {
  return difference(before, after) as MergePatch<T> | null; // of the same members, at every depth
}

function difference(before: unknown, after: unknown): unknown {
  if (after === undefined) return null;
  if (!isObject(before) || !isObject(after)) return after;
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const changed = names.filter((name) => !isDeepStrictEqual(before[name], after[name]));
  return Object.fromEntries(changed.map((name) => [name, difference(before[name], after[name])]));
}

export function isEmptyChange(change: object | null): boolean {
  return change === null || Object.keys(change).length === 0;
}
