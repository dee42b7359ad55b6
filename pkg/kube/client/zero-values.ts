import { isDeepStrictEqual } from 'node:util';

/**
 * Whether two values say the same to a server that is written in Go: one with types of its own leaves out what is empty, or gives back a null,
 * a zero or an empty object where nothing was sent.
 */
export function isEqualInGo(a: unknown, b: unknown): boolean {
  return isDeepStrictEqual(withoutZeros(a), withoutZeros(b));
}

/** Undefined: nothing is left. */
function withoutZeros(value: unknown): unknown {
  if (value === null || value === '' || value === 0 || value === false) return undefined;
  if (Array.isArray(value)) return value.length === 0 ? undefined : value.map(withoutZeros);
  if (typeof value !== 'object') return value;
  const members = Object.entries(value ?? {})
    .map(([name, member]) => [name, withoutZeros(member)] as const)
    .filter(([, member]) => member !== undefined);
  return members.length === 0 ? undefined : Object.fromEntries(members);
}
