/** Media type of a patch: JSON merge (CRDs, most things), strategic merge (Nodes). */
export type PatchType = 'merge' | 'strategic';

/** A JSON merge patch (RFC 7386) of a `T`: members that it names replace, null removes, lists are replaced whole. */
export type MergePatch<T> = T extends readonly (infer Item)[]
  ? readonly Item[]
  : T extends object
    ? { [Member in keyof T]?: MergePatch<T[Member]> | null | undefined }
    : T;

/** A strategic merge patch of a `T`: as a merge patch, but lists that have a merge key are merged entry by entry. */
export type StrategicPatch<T> = T extends readonly (infer Item)[]
  ? readonly StrategicPatch<Item>[]
  : T extends object
    ? { [Member in keyof T]?: StrategicPatch<T[Member]> | null | undefined } & {
        '$deleteFromPrimitiveList/finalizers'?: readonly string[];
      }
    : T;

/** A patch and where it goes. Build it with the functions below, so that it carries its preconditions. */
export interface Patch {
  readonly type: PatchType;
  readonly body: unknown;
  readonly subresource?: 'status' | 'scale';
  /** What it was computed from: what it comes to in an older version of the kind follows from both. Not sent. */
  readonly base?: PatchBase;
}

export interface PatchBase {
  readonly metadata: { readonly uid: string; readonly resourceVersion: string };
}

/**
 * Merge patch of the main resource, refused (422) when the name meanwhile belongs to another UID.
 * `change` holds only fields that we own; null removes a member.
 */
export function mergePatch<T extends PatchBase>(base: T, change: MergePatch<NoInfer<T>>): Patch {
  return { type: 'merge', body: withPreconditions(change, { uid: base.metadata.uid }), base };
}

/** Merge patch that also fails (409) when the object changed since it was read: for decisions, lists, finalizers. */
export function mergePatchIfUnchanged<T extends PatchBase>(base: T, change: MergePatch<NoInfer<T>>): Patch {
  const { uid, resourceVersion } = base.metadata;
  return { type: 'merge', body: withPreconditions(change, { uid, resourceVersion }), base };
}

/**
 * Merge patch of `/status`. Always with resourceVersion: on a custom resource's status a wrong uid is silently ignored
 * (tried on 1.36).
 */
export function statusPatch<T extends PatchBase & { readonly status?: unknown }>(
  base: T,
  status: MergePatch<NonNullable<NoInfer<T>['status']>>,
): Patch {
  const { uid, resourceVersion } = base.metadata;
  return { type: 'merge', subresource: 'status', body: withPreconditions({ status }, { uid, resourceVersion }), base };
}

/** Strategic merge patch of a Node: merges labels, annotations and, by their patch merge key, conditions and finalizers. */
export function strategicPatch<T extends PatchBase>(
  base: T,
  change: StrategicPatch<NoInfer<T>>,
  subresource?: 'status',
): Patch {
  const body = withPreconditions(change, { uid: base.metadata.uid });
  return subresource === undefined ? { type: 'strategic', body } : { type: 'strategic', body, subresource };
}

function withPreconditions(change: object, preconditions: Record<string, string>): object {
  const { metadata = {} } = change as { metadata?: object };
  return { ...change, metadata: { ...metadata, ...preconditions } };
}
