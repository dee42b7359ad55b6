import { isDeepStrictEqual } from 'node:util';

import type { KubeObject } from '../../../apis/meta.ts';
import { mergePatchIfUnchanged, type MergePatch, type Patch } from '../../../kube/client/patch.ts';

/** Path of a field from the object on, such as `['metadata', 'labels', 'node']`. */
export type FieldPath = readonly string[];

/** Those of the owned fields of which a pass has changed its copy. An empty list is as good as none. */
export function changedFields(before: object, after: object, owned: readonly FieldPath[]): readonly FieldPath[] {
  return owned.filter((path) => !isDeepStrictEqual(valueAt(before, path), valueAt(after, path)));
}

/** The merge patch that makes these fields what they are in the copy: null removes a field, and of a list what it had. */
export function patchOf<T extends KubeObject>(after: T, fields: readonly FieldPath[]): MergePatch<T> {
  const patch: Record<string, unknown> = {};
  for (const path of fields) put(patch, path, read(after, path) ?? null);
  // All its members are members of `after`.
  return patch as MergePatch<T>;
}

/** The patch of the owned fields of which a pass has changed its copy, to the version that was read; undefined: of none. */
export function ownedPatch(before: KubeObject, after: KubeObject, owned: readonly FieldPath[]): Patch | undefined {
  const changed = changedFields(before, after, owned);
  return changed.length === 0 ? undefined : mergePatchIfUnchanged(before, patchOf(after, changed));
}

function valueAt(object: object, path: FieldPath): unknown {
  const value = read(object, path);
  return Array.isArray(value) && value.length === 0 ? undefined : value;
}

function read(object: object, path: FieldPath): unknown {
  return path.reduce<unknown>((value, member) => (isRecord(value) ? value[member] : undefined), object);
}

function put(object: Record<string, unknown>, [member = '', ...rest]: FieldPath, value: unknown): void {
  if (rest.length === 0) {
    object[member] = value;
    return;
  }
  const inner = object[member];
  const next = isRecord(inner) ? inner : {};
  object[member] = next;
  put(next, rest, value);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
