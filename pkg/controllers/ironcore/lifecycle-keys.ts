/** What the queue of the life cycle holds. */
export type LifecycleKind = 'pool' | 'class' | 'machine';

/** The key of an object in that queue. */
export function lifecycleKeyOf(kind: LifecycleKind, key: string): string {
  return `${kind} ${key}`;
}

/** The object that such a key is of. */
export function lifecycleObjectOf(queueKey: string): { readonly kind: LifecycleKind; readonly key: string } {
  const [kind = '', key = ''] = queueKey.split(' ');
  return { kind: kind as LifecycleKind, key };
}
