import type { Clock } from '../../base/clock/clock.ts';
import type { Lease } from '../../apis/wire.ts';
import type { Reader } from '../../kube/client/client.ts';
import { ApiError, ignoreNotFound, REFUSAL_PATIENCE_MS } from '../../kube/client/errors.ts';
import { leases as leasesResource } from '../../kube/client/resource.ts';
import { holderOf, nothingSeen, observe, type Observation, renewTimeOf } from '../../kube/leader/lease.ts';
import { MACHINE_LEASE, MANAGER_LEASE } from '../../kube/leader/names.ts';

export interface OtherManagersOptions {
  /** Of the control cluster. */
  readonly reader: Pick<Reader, 'get'>;
  /** Those under which this process would work in a namespace of its own. */
  readonly leases: ReadonlySet<string>;
  readonly clock: Clock;
}

/** A Lease of a manager of one namespace as it was last read. */
interface SeenLease {
  readonly observation: Observation;
  /** Whether it was seen to be renewed. */
  readonly isRenewed: boolean;
}

/** What was last read of one namespace. */
interface Look {
  readonly leases: ReadonlyMap<string, SeenLease>;
  readonly atMs: number;
  /** Since when one may not be read. */
  readonly refusedSinceMs: number | undefined;
}

/** Whether a namespace has a manager of its own. `text`: of which Lease. */
export type OtherManager =
  | { readonly kind: 'none'; readonly againMs: number }
  | { readonly kind: 'unclear' | 'runs'; readonly text: string; readonly againMs: number };

/** How long a look is good for. */
const AGAIN_MS = 60_000;
/** The same while a Lease is held. */
const HELD_AGAIN_MS = 5_000;
/** What was seen so long ago says nothing about what is seen now. */
const OLD_MS = 3 * AGAIN_MS;
const TIMEOUT_MS = 5_000;

/** Takes in what was read at `nowMs`, monotonic. That a Lease is there for the first time, or again, is no renewal: a backup may have brought it. */
function seeLease(before: SeenLease | undefined, lease: Lease | undefined, nowMs: number): SeenLease {
  const { observation: last = nothingSeen, isRenewed = false } = before ?? {};
  const now = observe(last, lease, nowMs);
  const isDeleted = lease === undefined && last.lease !== undefined;
  // Who leads makes its Lease again within seconds, however long it would last.
  const observation = isDeleted ? { ...now, heldUntilMs: Math.min(now.heldUntilMs, nowMs + AGAIN_MS) } : now;
  const wasHeld = last.lease !== undefined && holderOf(last.lease) !== '';
  const isLater = lease !== undefined && last.lease !== undefined && renewTimeOf(lease) > renewTimeOf(last.lease);
  const isStill = isRenewed && nowMs < last.heldUntilMs;
  return { observation, isRenewed: isStill || (wasHeld && isLater && observation.heldUntilMs > last.heldUntilMs) };
}

/**
 * What the Leases of a namespace say, by name. Clocks are not compared.
 *
 * | a Lease                                                      | another manager | a cell that does not run | one that runs     |
 * |--------------------------------------------------------------|-----------------|--------------------------|-------------------|
 * | is not there, held by nobody, or not renewed for its duration | none            | begins                   | goes on           |
 * | is held, and was not seen to be renewed yet                  | unclear         | waits                    | goes on           |
 * | was held, and was deleted less than a minute ago             | as before       | as before                | as before         |
 * | was seen to be renewed                                       | runs            | waits, which is told     | ends, which is told |
 */
function otherManagerOf(seen: ReadonlyMap<string, SeenLease>, nowMs: number): OtherManager {
  const held = [...seen].filter(([, { observation }]) => nowMs < observation.heldUntilMs);
  const [name, one] = held.find(([, { isRenewed }]) => isRenewed) ?? held[0] ?? [];
  if (name === undefined || one === undefined) return { kind: 'none', againMs: AGAIN_MS };
  const { lease, heldUntilMs } = one.observation;
  const holder = lease === undefined ? 'was held until it was deleted' : `is held by ${holderOf(lease)}`;
  return {
    kind: one.isRenewed ? 'runs' : 'unclear',
    text: `Lease ${name} ${holder}`,
    againMs: Math.min(heldUntilMs - nowMs, HELD_AGAIN_MS),
  };
}

/** The same of a look in which one may not have been readable: a server that is just starting refuses what it permits a moment later. */
function judge({ leases, atMs, refusedSinceMs = -Infinity }: Look): OtherManager {
  const found = otherManagerOf(leases, atMs);
  if (found.kind !== 'none' || atMs - refusedSinceMs >= REFUSAL_PATIENCE_MS) return found;
  return { kind: 'unclear', text: 'Leases may not be read', againMs: HELD_AGAIN_MS };
}

/**
 * Looks for managers that have one namespace of the control cluster, ours or the original's, while it is a cell: they lead under Leases in that
 * namespace, of which the shards know nothing. One that may not be read keeps nothing from going on: the roles of an older version do not
 * permit it, and the start check tells.
 */
export class OtherManagers {
  readonly #options: OtherManagersOptions;
  readonly #names: readonly string[];
  readonly #seen = new Map<string, Look>();

  constructor(options: OtherManagersOptions) {
    this.#options = options;
    this.#names = [MANAGER_LEASE, MACHINE_LEASE].filter((name) => options.leases.has(name));
  }

  /** Reads the Leases, unless what was last seen is still good. Throws ApiError. */
  async look(namespace: string, signal: AbortSignal): Promise<OtherManager> {
    const { clock } = this.#options;
    const before = this.#seen.get(namespace);
    if (before !== undefined) {
      const known = judge(before);
      const againMs = before.atMs + known.againMs - clock.monotonicMs();
      if (againMs > 0) return { ...known, againMs };
    }
    const last = before !== undefined && clock.monotonicMs() - before.atMs < OLD_MS ? before : undefined;
    const read = await Promise.all(
      this.#names.map(async (name) => [name, await this.#read(namespace, name, signal)] as const),
    );
    const atMs = clock.monotonicMs();
    const leases = new Map(
      read.flatMap(([name, lease]) => {
        const seen = last?.leases.get(name);
        const now = lease === 'unreadable' ? seen : seeLease(seen, lease, atMs);
        return now === undefined ? [] : [[name, now] as const];
      }),
    );
    const isRefused = read.some(([, lease]) => lease === 'unreadable');
    const look = { leases, atMs, refusedSinceMs: isRefused ? (last?.refusedSinceMs ?? atMs) : undefined };
    this.#seen.set(namespace, look);
    return judge(look);
  }

  /** The namespace is no cell of this process, or was none until now. */
  forget(namespace: string): void {
    this.#seen.delete(namespace);
  }

  async #read(namespace: string, name: string, signal: AbortSignal): Promise<Lease | 'unreadable' | undefined> {
    const { reader } = this.#options;
    try {
      return await reader
        .get(leasesResource, { namespace, name }, { signal, timeoutMs: TIMEOUT_MS })
        .catch(ignoreNotFound);
    } catch (err) {
      if (ApiError.is(err, 'Forbidden', 'NotServed')) return 'unreadable';
      throw err;
    }
  }
}
