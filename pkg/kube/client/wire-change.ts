import { isDeepStrictEqual } from 'node:util';

import { isObject, membersOf } from '../../apis/members.ts';
import type { KubeObject } from '../../apis/meta.ts';
import { replacing, type ObjectFields } from './merge-change.ts';
import type { Patch } from './patch.ts';
import type { Resource } from '../../apis/resource.ts';

/**
 * What a merge patch comes to in the dialect of a resource: what differs there between the object that it was made of and that object with
 * the patch. So fields that the patch does not touch are not sent, and what a dialect cannot say is left out; undefined: all of it.
 */
export function wireChange(resource: Resource<KubeObject>, { type, body, base }: Patch): object | undefined {
  if (type !== 'merge' || base === undefined) {
    throw new Error(`a ${type} patch of ${resource.plural} cannot be converted to ${resource.version}`);
  }
  const wire = (object: object): object => resource.toWire?.(object) ?? object;
  const { metadata = {}, ...change } = body as ObjectFields & { readonly metadata?: ObjectFields };
  const { uid, resourceVersion, ...own } = metadata;
  const before = wire(base);
  const after = wire(merged(base, { ...change, metadata: own }) as object);
  if (isDeepStrictEqual(before, after)) return undefined;
  const { metadata: changed = {}, ...rest } = replacing<object>(before, after) as ObjectFields & {
    readonly metadata?: ObjectFields;
  };
  return {
    ...rest,
    metadata: {
      ...changed,
      ...(uid !== undefined && { uid }),
      ...(resourceVersion !== undefined && { resourceVersion }),
    },
  };
}

/** RFC 7386. */
function merged(before: unknown, change: unknown): unknown {
  if (!isObject(change)) return change;
  const after = new Map(Object.entries(membersOf(before)));
  for (const [name, value] of Object.entries(change)) {
    if (value === undefined) continue;
    if (value === null) after.delete(name);
    else after.set(name, merged(after.get(name), value));
  }
  return Object.fromEntries(after);
}
