import { isDeepStrictEqual } from 'node:util';

type Fields = Record<string, unknown>;

/**
 * What a JSON merge patch has to hold so that a member that is `before` becomes `after`: a merge patch merges objects, so
 * what vanished must be named with null; lists and scalars are replaced.
 */
export function replacing(before: unknown, after: unknown): unknown {
  if (after === undefined) return null;
  if (!isFields(before) || !isFields(after)) return after;
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const changed = names.filter((name) => !isDeepStrictEqual(before[name], after[name]));
  return Object.fromEntries(changed.map((name) => [name, replacing(before[name], after[name])]));
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
