import { BoundedMap } from '../../../../kube/events/bounded-map.ts';
import type { PoolRuntime } from '../../runtime/gated-runtime.ts';
import type { RuntimeFilter, RuntimeMachine } from '../../runtime/runtime.ts';
import { UID_LABEL } from './keys.ts';

export interface Shown {
  readonly machines: readonly RuntimeMachine[];
  /** See RuntimeVersion; undefined: it was lost meanwhile. */
  readonly connection: number | undefined;
}

export type ListedRuntime = Pick<PoolRuntime, 'version' | 'machines'>;

/** Asks a runtime for machines, and by which connection it answers. Throws RuntimeError. */
export async function listRuntimeMachines(
  runtime: ListedRuntime,
  filter: RuntimeFilter,
  signal: AbortSignal,
): Promise<Shown> {
  const before = await runtime.version(signal);
  const machines = await runtime.machines(filter, signal);
  const { connection } = await runtime.version(signal);
  return { machines, connection: connection === before.connection ? connection : undefined };
}

/** A machine, or all of one Machine, as seen last. */
interface Sighting {
  readonly connection: number | undefined;
  /** The first connection that has shown it. */
  readonly first: number | undefined;
  /** When it was made, by the runtime's clock, in nanoseconds; 0: it does not say, or it is about all of a Machine. */
  readonly createdAt: bigint;
  /** It was told to go, by whomever. That it is terminating does not say so: a guest that shuts down is, and is started again. */
  readonly isDeletionSent: boolean;
}

interface Witnesses {
  readonly connection: number;
  /** When the youngest was made, by the connection that has shown it first. */
  readonly youngest: Map<number, bigint>;
}

/** So many are remembered for each pool; those that were not seen for longest are forgotten first, and nothing vouches for them then. */
const CAPACITY = 32_768;

/**
 * What this process has seen at the runtimes of pools. That a runtime does not show a machine proves nothing: it may have been started anew
 * without its state, or with that of yesterday, or be another one. It is believed of one that was seen going, or that the same process at the
 * other end has shown before: whoever lost its state was started again, and the connection is another one.
 */
export class Sightings {
  readonly #byPool = new Map<string, BoundedMap<string, Sighting>>();
  readonly #witnesses = new Map<string, Witnesses>();

  /** The runtime of a pool shows these. */
  saw(pool: string, { machines, connection }: Shown): void {
    const seen = this.#of(pool);
    this.#witness(pool, { machines, connection });
    for (const [uid, all] of Map.groupBy(machines, ({ metadata }) => metadata.labels[UID_LABEL] ?? '')) {
      let areGoing = true;
      for (const { metadata } of all) {
        const key = idKey(metadata.id);
        const isDeletionSent = metadata.deletedAt !== 0n || seen.get(key)?.isDeletionSent === true;
        const first = seen.get(key)?.first ?? connection;
        seen.set(key, { connection, first, createdAt: metadata.createdAt, isDeletionSent });
        areGoing &&= isDeletionSent;
      }
      if (uid !== '') seen.set(uidKey(uid), { connection, first: undefined, createdAt: 0n, isDeletionSent: areGoing });
    }
  }

  /** The runtime of a pool has accepted that a machine goes: that of the Machine with this UID. */
  deletionSent(pool: string, id: string, uid: string): void {
    const seen = this.#of(pool);
    for (const key of [idKey(id), uidKey(uid)]) {
      const before = seen.get(key) ?? { connection: undefined, first: undefined, createdAt: 0n };
      seen.set(key, { ...before, isDeletionSent: true });
    }
  }

  /** What is seen from now on at the runtime of a pool has nothing to do with what was before. */
  forget(pool: string): void {
    this.#byPool.delete(pool);
    this.#witnesses.delete(pool);
  }

  /** Whether a machine of the Machine with this UID was ever seen. */
  has(pool: string, uid: string): boolean {
    return this.#of(pool).get(uidKey(uid)) !== undefined;
  }

  /** What was seen of the Machine with this UID at the runtime of a pool is gone, and says nothing any more. */
  left(pool: string, uid: string): void {
    this.#of(pool).delete(uidKey(uid));
  }

  /** Whether a machine is gone that this connection does not show. */
  vouchesFor(pool: string, what: { readonly id: string } | { readonly uid: string }, connection?: number): boolean {
    const seen = this.#of(pool).get('id' in what ? idKey(what.id) : uidKey(what.uid));
    if (seen === undefined) return false;
    return seen.isDeletionSent || (connection !== undefined && seen.connection === connection);
  }

  /**
   * Whether the state that the runtime has by this connection is younger than a machine that it does not show, as this process has seen it: it
   * shows a younger one that was there beside it. A state of before would have neither; so whoever has told the runtime that the machine is to
   * go was heard.
   */
  remembers(pool: string, id: string, connection?: number): boolean {
    const { connection: last, createdAt = 0n } = this.#of(pool).get(idKey(id)) ?? {};
    const witnesses = this.#witnesses.get(pool);
    if (last === undefined || createdAt === 0n || connection === undefined) return false;
    if (witnesses?.connection !== connection) return false;
    return [...witnesses.youngest].some(([first, youngest]) => first <= last && youngest > createdAt);
  }

  /** Connections are numbered in their order. */
  #witness(pool: string, { machines, connection }: Shown): void {
    if (connection === undefined) return;
    const before = this.#witnesses.get(pool);
    const youngest = before?.connection === connection ? before.youngest : new Map<number, bigint>();
    this.#witnesses.set(pool, { connection, youngest });
    for (const { metadata } of machines) {
      const first = this.#of(pool).get(idKey(metadata.id))?.first ?? connection;
      if (metadata.createdAt > (youngest.get(first) ?? 0n)) youngest.set(first, metadata.createdAt);
    }
  }

  #of(pool: string): BoundedMap<string, Sighting> {
    const found = this.#byPool.get(pool) ?? new BoundedMap<string, Sighting>(2 * CAPACITY);
    this.#byPool.set(pool, found);
    return found;
  }
}

function idKey(id: string): string {
  return `id ${id}`;
}

function uidKey(uid: string): string {
  return `uid ${uid}`;
}
