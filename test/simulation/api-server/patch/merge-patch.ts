import { copyOf, isMembers, type Members } from '../json.ts';

/** RFC 7386: the value after a JSON merge patch. Shares nothing with either. */
export function mergePatched(value: unknown, patch: unknown): unknown {
  if (!isMembers(patch)) return copyOf(patch);
  const result: Members = isMembers(value) ? copyOf(value) : {};
  for (const [name, change] of Object.entries(patch)) {
    if (change === null) delete result[name];
    else result[name] = mergePatched(result[name], change);
  }
  return result;
}
