/** An object of JSON. */
export type Members = Record<string, unknown>;

/** Whether a value is an object of JSON, not a list and not null. */
export function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A member of a value that may be no object. */
export function memberOf(value: unknown, name: string): unknown {
  return isMembers(value) ? value[name] : undefined;
}

/** What stands at a path, if all on the way are objects. */
export function at(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>(memberOf, value);
}

/** A copy that shares nothing with the value. Much quicker than `structuredClone`, which knows more than JSON. */
export function copyOf<T>(value: T): T {
  if (Array.isArray(value)) return value.map(copyOf) as T;
  if (!isMembers(value)) return value;
  const copy: Members = {};
  for (const name in value) copy[name] = copyOf(value[name]);
  return copy as T;
}

/** Whether two values of JSON are the same, whatever the order of members. */
export function equal(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((item, i) => equal(item, b[i]));
  if (!isMembers(a) || !isMembers(b)) return false;
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => name in b && equal(a[name], b[name]));
}
