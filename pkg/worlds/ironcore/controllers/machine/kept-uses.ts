import type { RuntimeMachine } from '../../runtime/runtime.ts';

/** What is used once: a volume, as its provider calls it. */
export function volumeHandle({
  driver = '',
  handle = '',
}: {
  readonly driver?: string;
  readonly handle?: string;
}): string {
  return `volume ${driver} ${handle}`;
}

/** An address in a network, as the runtime calls that. */
export function addressHandle(networkID: string, ip: string): string {
  return `address ${networkID} ${ip}`;
}

export interface Holder {
  readonly id: string;
  readonly pool: string;
}

/**
 * What machines without a Machine use at the runtimes of all pools of this process. The API server may have forgotten that: a volume that
 * looks free there is given to nobody while such a machine has it, in whatever pool, and neither is an address.
 */
export class KeptUses {
  readonly #byPool = new Map<string, ReadonlyMap<string, string>>();
  readonly #failures = new Map<string, string>();

  /** These machines at the runtime of a pool have no Machine; all that there are. `others` are of somebody else, whose networks may be others, too. */
  saw(pool: string, ownerless: readonly RuntimeMachine[], others: readonly RuntimeMachine[] = []): void {
    const volumes = [...ownerless, ...others].flatMap(({ metadata: { id }, spec }) =>
      spec.volumes.flatMap(({ connection }) =>
        connection === undefined ? [] : [[volumeHandle(connection), id] as const],
      ),
    );
    const addresses = ownerless.flatMap(({ metadata: { id }, spec }) =>
      spec.networkInterfaces.flatMap(({ networkId, ips }) =>
        ips.map((ip) => [addressHandle(networkId, ip), id] as const),
      ),
    );
    this.#byPool.set(pool, new Map([...volumes, ...addresses]));
    this.#failures.delete(pool);
  }

  failed(pool: string, why: string): void {
    this.#failures.set(pool, why);
  }

  /** Why the runtime of a pool did not say what it has, when it was last asked; undefined: it did, or was not asked. */
  whyNot(pool: string): string | undefined {
    return this.#failures.get(pool);
  }

  forget(pool: string): void {
    this.#byPool.delete(pool);
    this.#failures.delete(pool);
  }

  /** Whether the runtime of a pool has been looked at. */
  has(pool: string): boolean {
    return this.#byPool.has(pool);
  }

  /** What uses something at the runtime of any pool; undefined: none that has no Machine. */
  holderOf(handle: string): Holder | undefined {
    for (const [pool, uses] of this.#byPool) {
      const id = uses.get(handle);
      if (id !== undefined) return { id, pool };
    }
    return undefined;
  }
}
