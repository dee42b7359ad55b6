import { OWN_KINDS } from './cached/own.ts';
import {
  addKinds,
  type AlsoRead,
  type CacheAdder,
  type CachingProcess,
  type Informers,
  type KindTable,
} from './cached/kind.ts';
import type { World } from './world.ts';

/**
 * All that controllers read of the control cluster from caches, with every index that anybody needs, by the names of the tables in `cached/`.
 * Reading one that this process does not have throws.
 */
export interface Caches extends Informers<typeof OWN_KINDS> {
  /** Those of the kinds of another API, by its table. Throws when the process was not told of it. */
  of<Kinds extends KindTable>(kinds: Kinds): Informers<Kinds>;
}

/** Adds the caches that a process needs of the control cluster; nothing is read before that is started. */
export function addCaches(
  control: CacheAdder,
  { process, worlds }: { readonly process: CachingProcess; readonly worlds: readonly World[] },
): Caches {
  const own = addKinds(OWN_KINDS, control, process);
  const tables = new Map<KindTable, object>(worlds.map(({ kinds }) => [kinds, addKinds(kinds, control, process)]));
  const of = (kinds: KindTable): object => {
    const table = tables.get(kinds);
    if (table === undefined) throw new Error(`${Object.keys(kinds).join(', ')} are of no world of this process`);
    return table;
  };
  return Object.defineProperty(own, 'of', { value: of }) as Caches;
}

/** What the worlds of a process read of ours. */
export function alsoReadBy(worlds: readonly World[], process: Omit<CachingProcess, 'alsoRead'>): AlsoRead {
  return Object.assign({}, ...worlds.map(({ alsoReads }) => alsoReads?.(process) ?? {})) as AlsoRead;
}
