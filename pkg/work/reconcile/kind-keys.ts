/** Keys of a queue that holds objects of several kinds. */
export interface KindKeys<Kind extends string> {
  /** The key of an object in the queue: that of caches, with the kind in front. */
  readonly queueKeyOf: (kind: Kind, key: string) => string;
  /** The kind, and the key of the object in caches. Throws for a key of none of the kinds. */
  readonly objectOf: (queueKey: string) => { readonly kind: Kind; readonly key: string };
}

/** Keys of one queue for objects of these kinds, whose passes take turns there. */
export function kindKeys<Kind extends string>(...kinds: readonly Kind[]): KindKeys<Kind> {
  return {
    queueKeyOf: (kind, key) => `${kind}/${key}`,
    objectOf: (queueKey) => {
      const kind = kinds.find((one) => queueKey.startsWith(`${one}/`));
      if (kind === undefined) throw new Error(`${queueKey} is not a key of ${kinds.join(', ')}`);
      return { kind, key: queueKey.slice(kind.length + 1) };
    },
  };
}
