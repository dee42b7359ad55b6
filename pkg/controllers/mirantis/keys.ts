import { keyOf, type KubeObject } from '../../apis/meta.ts';

/** Kinds that the front end serves: one queue for all of them, so that their passes take turns. */
export const SERVED_KINDS = ['Machine', 'MachinePool', 'Cluster'] as const;

/** One of them. */
export type ServedKind = (typeof SERVED_KINDS)[number];

/** The key of an object in the queue: that of caches, with the kind in front. */
export function queueKeyOf(kind: ServedKind, object: KubeObject): string {
  return `${kind}/${keyOf(object)}`;
}

/** The kind, and the key of the object in caches. */
export function servedBy(queueKey: string): { readonly kind: ServedKind; readonly key: string } {
  const kind = SERVED_KINDS.find((one) => queueKey.startsWith(`${one}/`));
  if (kind === undefined) throw new Error(`${queueKey} is the key of no kind that is served`);
  return { kind, key: queueKey.slice(kind.length + 1) };
}
