import type { ObjectMeta } from './meta.ts';

interface Finalized {
  readonly metadata: Pick<ObjectMeta, 'finalizers'>;
}

export function hasFinalizer({ metadata }: Finalized, finalizer: string): boolean {
  return metadata.finalizers?.includes(finalizer) === true;
}

/** The garbage collector's promise to take the owner references away, so that dependents stay (`--cascade=orphan`). */
export const ORPHAN_FINALIZER = 'orphan';

/** The finalizers of an object, with this one as the last if it is missing. */
export function withFinalizer({ metadata: { finalizers = [] } }: Finalized, finalizer: string): string[] {
  return finalizers.includes(finalizer) ? [...finalizers] : [...finalizers, finalizer];
}

/** The finalizers of an object without this one; those of others stay, in their order. */
export function withoutFinalizer({ metadata: { finalizers = [] } }: Finalized, finalizer: string): string[] {
  return finalizers.filter((other) => other !== finalizer);
}
