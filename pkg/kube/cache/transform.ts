import type { KubeObject } from '../../apis/meta.ts';

/** Makes what is kept of an object that the server sent. It is given the object for good and may change it. */
export type Transform<T extends KubeObject> = (object: T) => T;

/**
 * Leaves out `managedFields`, which nobody looks for in a cache and which are a third of most objects. A new metadata object, for
 * deleting a member in place costs more memory than it saves.
 */
export function dropManagedFields<T extends KubeObject>(object: T): T {
  if (object.metadata.managedFields === undefined) return object;
  const { managedFields: _, ...kept } = object.metadata;
  object.metadata = kept;
  return object;
}

/** Leaves nothing but the metadata: for caches that must never hold content. */
export function onlyMetadata<T extends KubeObject>(object: T): T {
  return { metadata: object.metadata } as T;
}

/** Freezes an object and all that hangs below it; a write then throws. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const member of Object.values(value)) deepFreeze(member);
  return value;
}
