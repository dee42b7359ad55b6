import { isDeepStrictEqual } from 'node:util';

import type { Credentials, Endpoint } from '../client/endpoint.ts';

/** An endpoint whose credentials another thread loads and tells: the thread of the Leases reads no kubeconfig. */
export class RelayedEndpoint implements Endpoint {
  #url: string;
  readonly namespace = undefined;
  readonly #requestRenewal: () => void;
  #current: Credentials | undefined;
  /** Settles when the present credentials, or those that replace refused ones, have come; or why they have not. */
  #reported = Promise.withResolvers<void>();
  #isAwaited = true;
  #why: string | undefined;

  /** `requestRenewal` asks the other thread for credentials in place of refused ones. */
  constructor(options: { url: string; requestRenewal: () => void }) {
    this.#url = options.url;
    this.#requestRenewal = options.requestRenewal;
  }

  get url(): string {
    return this.#url;
  }

  async credentials(): Promise<Credentials> {
    await this.#reported.promise;
    if (this.#why !== undefined || this.#current === undefined) throw new Error(this.#why ?? 'no credentials yet');
    return this.#current;
  }

  refused(): void {
    if (this.#isAwaited) return;
    this.#isAwaited = true;
    this.#reported = Promise.withResolvers<void>();
    this.#requestRenewal();
  }

  /** Takes credentials over, and the server that they are for. */
  report({ headers, connection }: Credentials, url: string = this.#url): void {
    this.#url = url;
    const before = this.#current?.connection;
    this.#current = {
      headers,
      connection: isDeepStrictEqual(before, connection) ? (before ?? connection) : connection,
    };
    this.#settle(undefined);
  }

  /** There are none any more, and why; the next `refused` or `report` changes that. */
  fail(why: string): void {
    this.#settle(why);
  }

  #settle(why: string | undefined): void {
    this.#why = why;
    this.#isAwaited = false;
    this.#reported.resolve();
  }
}
