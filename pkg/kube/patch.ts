/** Media type of a patch: JSON merge (CRDs, most things), strategic merge (Nodes), JSON patch (tests before writing). */
export type PatchType = 'merge' | 'strategic' | 'json';

/** A patch and where it goes. Build it with the functions below, so that it carries its preconditions. */
export interface Patch {
  readonly type: PatchType;
  readonly body: unknown;
  readonly subresource?: 'status' | 'scale';
}

/** The object a patch was computed from. */
export interface Base {
  readonly metadata: { readonly uid: string; readonly resourceVersion: string };
}

/**
 * Merge patch of the main resource, refused (422) when the name meanwhile belongs to another UID.
 * `change` holds only fields that we own; null removes a member.
 */
export function mergePatch(base: Base, change: Record<string, unknown>): Patch {
  return { type: 'merge', body: withPreconditions(change, { uid: base.metadata.uid }) };
}

/** Merge patch that also fails (409) when the object changed since it was read: for decisions, lists, finalizers. */
export function mergePatchIfUnchanged(base: Base, change: Record<string, unknown>): Patch {
  const { uid, resourceVersion } = base.metadata;
  return { type: 'merge', body: withPreconditions(change, { uid, resourceVersion }) };
}

/**
 * Merge patch of `/status`. Always with resourceVersion: on a custom resource's status a wrong uid is silently ignored
 * (tried on 1.36).
 */
export function statusPatch(base: Base, status: Record<string, unknown>): Patch {
  const { uid, resourceVersion } = base.metadata;
  return { type: 'merge', subresource: 'status', body: withPreconditions({ status }, { uid, resourceVersion }) };
}

/** Strategic merge patch of a Node: merges labels, annotations and, by their patch merge key, conditions and finalizers. */
export function strategicPatch(base: Base, change: Record<string, unknown>, subresource?: 'status'): Patch {
  const body = withPreconditions(change, { uid: base.metadata.uid });
  return subresource === undefined ? { type: 'strategic', body } : { type: 'strategic', body, subresource };
}

function withPreconditions(
  change: Record<string, unknown>,
  preconditions: Record<string, string>,
): Record<string, unknown> {
  const metadata = (change['metadata'] ?? {}) as Record<string, unknown>;
  return { ...change, metadata: { ...metadata, ...preconditions } };
}
