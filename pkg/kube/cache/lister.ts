import type { KubeObject } from '../../apis/meta.ts';
import type { ObjectIdentity } from '../client/client.ts';

/** Read side of a cache. Objects are frozen outside production: copy before changing. Reads include our own writes. */
export interface Lister<T extends KubeObject> {
  /** By `namespace/name`, or by bare name for cluster-scoped kinds. */
  get(key: string): T | undefined;
  list(): readonly T[];
  /** Objects for which the named index function returned `value`; the same array until one changes. Throws for an index that was never declared. */
  byIndex(index: string, value: string): readonly T[];
  /** Whether some indexes also find objects of other namespaces than that which is read. */
  readonly reachesAcross?: boolean;
}

/** Told of every change, after the store has it: added (old undefined), updated, deleted (current undefined). */
export type ChangeHandler<T> = (old: T | undefined, current: T | undefined) => void;

/** A cache kept fresh by list and watch. */
export interface Informer<T extends KubeObject> extends Lister<T> {
  /** Adds a handler; it is first called with every object already known. `hasSynced` is false while it hears the first list. A handler that throws is logged and counted. */
  onChange(handler: ChangeHandler<T>): void;
  /**
   * Adds a handler of what the watch delivers, in order, told before the store has it: `old` is the version right before. It hears of no list
   * and of none of our own writes, which may pass over versions.
   */
  onDelivered(handler: ChangeHandler<T>): void;
  readonly hasSynced: boolean;
  /** resourceVersion up to which the watch has delivered; undefined before the first list. */
  readonly resourceVersion: string | undefined;
  /** Resolves when the cache has reached `resourceVersion`; rejects with the signal's reason. */
  waitFor(resourceVersion: string, signal: AbortSignal): Promise<void>;
  /** Takes the answer of one of our own writes; readers see it until the watch has caught up. */
  wrote(object: T): void;
  /** Takes the success of one of our own DELETEs: that UID is gone for readers. */
  deleted(object: ObjectIdentity): void;
}
