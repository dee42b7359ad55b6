import { setTimeout as sleep } from 'node:timers/promises';

import { HttpLeaseClient } from '../../pkg/kube/client/lease-client.ts';
import type { Transport } from '../../pkg/kube/client/transport.ts';
import { observerOf } from './observer.ts';

const LEASES = ['machine-controller', 'machine-controller-manager'];

/** How long Leases go without being renewed, by their own `renewTime`: every 2 s is asked for, 10 s end leadership. */
export class LeaseGaps implements AsyncDisposable {
  readonly #transport: Transport;
  readonly #end = new AbortController();
  readonly #watches: readonly Promise<void>[];
  readonly #renewals = new Map<string, number[]>(LEASES.map((name) => [name, []]));

  constructor(connection: Parameters<typeof observerOf>[0]) {
    this.#transport = observerOf(connection);
    this.#watches = LEASES.map((name) => this.#watch(name));
  }

  /** Forgets all renewals but the last of each Lease: what is asked for counts from there. */
  reset(): void {
    for (const times of this.#renewals.values()) times.splice(0, times.length - 1);
  }

  /** The longest time between two renewals of one Lease, in milliseconds; 0 before the second. */
  longestMs(): number {
    const gaps = [...this.#renewals.values()].flatMap((times) => times.slice(1).map((at, i) => at - (times[i] ?? at)));
    return Math.max(0, ...gaps);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort(new Error('the end'));
    await Promise.all(this.#watches);
    await this.#transport.close();
  }

  async #watch(name: string): Promise<void> {
    const client = new HttpLeaseClient({ transport: this.#transport, namespace: 'machinist' });
    while (!this.#end.signal.aborted) {
      try {
        for await (const { spec } of client.watch(name, this.#end.signal)) {
          if (spec?.renewTime && spec.holderIdentity) this.#renewals.get(name)?.push(Date.parse(spec.renewTime));
        }
      } catch {
        await sleep(100); // not there yet, or the end
      }
    }
  }
}
