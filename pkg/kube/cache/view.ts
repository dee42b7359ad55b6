import type { KubeObject } from '../../apis/meta.ts';
import type { Informer } from './lister.ts';

/** What one reader of a cache that many share sees of it, until it is closed: then it hears of nothing any more. */
export interface View<T extends KubeObject> {
  readonly informer: Informer<T>;
  close(): void;
}

/** A cache that many readers share, each under a name. */
export interface Views<T extends KubeObject> {
  /** What a reader sees; until it is forgotten. */
  of(reader: string): Informer<T>;
  /** Nobody reads under a name any more: those who listened hear of nothing that happens from now on. */
  forget(reader: string): void;
}

/** A cache of which a reader sees as much as `seen` says; all else of it is the same for all. */
export function viewOf<T extends KubeObject>(
  informer: Informer<T>,
  seen: Pick<Informer<T>, 'get' | 'list' | 'byIndex' | 'reachesAcross' | 'onChange' | 'onDelivered'>,
): Informer<T> {
  return {
    ...seen,
    get hasSynced() {
      return informer.hasSynced;
    },
    get resourceVersion() {
      return informer.resourceVersion;
    },
    waitFor: (resourceVersion, signal) => informer.waitFor(resourceVersion, signal),
    wrote: (object) => informer.wrote(object),
    deleted: (object) => informer.deleted(object),
  };
}
