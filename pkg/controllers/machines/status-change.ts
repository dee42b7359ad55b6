import { isDeepStrictEqual } from 'node:util';

import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';

/** Members of the status that the machine controller owns. */
const OWNED_STATUS = [
  'addresses',
  'conditions',
  'lastOperation',
  'currentStatus',
  'lastKnownState',
  'machineConditions',
] as const;

type Fields = Record<string, unknown>;

/** What a pass changed in the status, as a merge patch of the fields that we own; undefined when nothing did. */
export function statusChange(before: Machine, after: Machine): Fields | undefined {
  const old = (before.status ?? {}) as Fields;
  const current = (after.status ?? {}) as Fields;
  const change: Fields = {};
  for (const member of OWNED_STATUS) {
    if (!isDeepStrictEqual(old[member], current[member])) change[member] = replace(old[member], current[member]);
  }
  return Object.keys(change).length === 0 ? undefined : change;
}

/** A merge patch replaces lists and scalars, but merges objects: members that vanished must be named to go. */
function replace(before: unknown, after: unknown): unknown {
  if (after === undefined) return null;
  if (!isObject(before) || !isObject(after)) return after;
  const gone = Object.keys(before).filter((member) => after[member] === undefined);
  return { ...after, ...Object.fromEntries(gone.map((member) => [member, null])) };
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
