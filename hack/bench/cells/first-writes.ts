import { SystemClock } from '../../../pkg/base/clock/system-clock.ts';
import type { Machine } from '../../../pkg/apis/machine/v1alpha1/machine.ts';
import { HttpListWatch } from '../../../pkg/kube/client/list-watch.ts';
import { machines } from '../../../pkg/kube/client/resource.ts';
import type { Transport } from '../../../pkg/kube/client/transport.ts';
import { observerOf } from '../observer.ts';

/** When the Machines of some namespaces were first seen with the VM that was created for them. */
export class FirstWrites implements AsyncDisposable {
  readonly #transport: Transport;
  readonly #clock = new SystemClock();
  readonly #end = new AbortController();
  readonly #seenMs = new Map<string, number>();
  readonly #watches: readonly Promise<void>[];

  constructor(connection: Parameters<typeof observerOf>[0], namespaces: readonly string[]) {
    this.#transport = observerOf(connection);
    this.#watches = namespaces.map((namespace) => this.#watch(namespace));
  }

  /** Milliseconds since the epoch; undefined: not yet. */
  of(machine: string): number | undefined {
    return this.#seenMs.get(machine);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort(new Error('the end'));
    await Promise.all(this.#watches);
    await this.#transport.close();
  }

  async #watch(namespace: string): Promise<void> {
    const source = new HttpListWatch<Machine>({
      transport: this.#transport,
      resource: machines,
      selection: { namespace },
    });
    const { signal } = this.#end;
    while (!signal.aborted) {
      try {
        for await (const event of source.watch({ signal, sendInitialEvents: true })) {
          if (event.type === 'BOOKMARK' || event.type === 'ERROR') continue;
          const { metadata, spec } = event.object;
          if (spec.providerID && !this.#seenMs.has(metadata.name)) this.#seenMs.set(metadata.name, this.#clock.now());
        }
      } catch {
        // One in which nothing happens for long ends so.
      }
    }
  }
}
