/** Kinds that are looked after: one queue for both. */
const KINDS = ['Machine', 'Cluster'] as const;

/** One of them. */
export type ServedKind = (typeof KINDS)[number];

/** The key of an object in the queue: that of caches, with the kind in front. */
export function queueKeyOf(kind: ServedKind, key: string): string {
  return `${kind}/${key}`;
}

/** The kind, and the key of the object in caches. */
export function servedBy(queueKey: string): { readonly kind: ServedKind; readonly key: string } {
  const kind = KINDS.find((one) => queueKey.startsWith(`${one}/`));
  if (kind === undefined) throw new Error(`${queueKey} is the key of no kind that is looked after`);
  return { kind, key: queueKey.slice(kind.length + 1) };
}
