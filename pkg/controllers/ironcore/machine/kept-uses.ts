import type { RuntimeMachine } from '../../../ironcore-runtime/runtime.ts';

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

/**
 * What machines without a Machine use at the runtimes of pools. The API server may have forgotten that: a volume that looks free there is
 * given to nobody while such a machine has it, and neither is an address.
 */
export class KeptUses {
  readonly #byPool = new Map<string, ReadonlyMap<string, string>>();
  readonly #failures = new Map<string, string>();

  /** These machines at the runtime of a pool have no Machine; all that there are. */
  saw(pool: string, ownerless: readonly RuntimeMachine[]): void {
    const uses = ownerless.flatMap(({ metadata: { id }, spec }) => [
      ...spec.volumes.flatMap(({ connection }) =>
        connection === undefined ? [] : [[volumeHandle(connection), id] as const],
      ),
      ...spec.networkInterfaces.flatMap(({ networkId, ips }) =>
        ips.map((ip) => [addressHandle(networkId, ip), id] as const),
      ),
    ]);
    this.#byPool.set(pool, new Map(uses));
    this.#failures.delete(pool);
  }

  /** The runtime of a pool did not say what it has. */
  failed(pool: string, why: string): void {
    this.#failures.set(pool, why);
  }

  /** Why the runtime of a pool did not say what it has, when it was last asked; undefined: it did, or was not asked. */
  whyNot(pool: string): string | undefined {
    return this.#failures.get(pool);
  }

  /** The runtime of a pool is not looked at any more. */
  forget(pool: string): void {
    this.#byPool.delete(pool);
    this.#failures.delete(pool);
  }

  /** Whether the runtime of a pool has been looked at. */
  knows(pool: string): boolean {
    return this.#byPool.has(pool);
  }

  /** Id of the machine that uses something at the runtime of a pool; undefined: none that has no Machine. */
  holderOf(pool: string, handle: string): string | undefined {
    return this.#byPool.get(pool)?.get(handle);
  }
}
