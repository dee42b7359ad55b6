import type { Lease } from '../../apis/wire.ts';
import { addressOf } from './address.ts';
import type { CallOptions, New } from './client.ts';
import { errorOfStatus } from './failure.ts';
import { HttpListWatch } from './list-watch.ts';
import { MUTATE } from './mutate.ts';
import { leases } from './resource.ts';
import type { LeaseCall, Transport } from './transport.ts';

/** Its own connections, past the rate limit; the elector has its own rhythm. */
const PRIVILEGES = { lane: 'leases', retryTooManyRequests: 'never' } as const;

/**
 * Leases of one namespace, for leader election: past the gate, past the rate limit, on connections of their own. A 429 is
 * not waited for: the elector has its own rhythm.
 */
export class HttpLeaseClient {
  readonly #transport: Transport;
  readonly #namespace: string;

  constructor(options: { transport: Transport; namespace: string }) {
    this.#transport = options.transport;
    this.#namespace = options.namespace;
  }

  /** A quorum read. Throws ApiError; NotFound when there is none. */
  get(name: string, { signal, timeoutMs }: CallOptions = {}): Promise<Lease> {
    const address = addressOf(leases, { namespace: this.#namespace, name });
    return this.#transport.request<Lease>({ method: 'GET', verb: 'get', address, signal, timeoutMs, ...PRIVILEGES });
  }

  /** POST. Throws ApiError; AlreadyExists when somebody else was faster. */
  create(lease: New<Lease>, options: CallOptions = {}): Promise<Lease> {
    return this.#write({ method: 'POST', verb: 'create' }, undefined, lease, options);
  }

  /** PUT of the whole object with its resourceVersion. Throws ApiError; Conflict when it was changed meanwhile. */
  replace(lease: Lease, options: CallOptions = {}): Promise<Lease> {
    return this.#write({ method: 'PUT', verb: 'update' }, lease.metadata.name, lease, options);
  }

  /** Deletes it unless it was changed meanwhile. Throws ApiError. */
  async delete({ metadata }: Lease, { signal, timeoutMs }: CallOptions = {}): Promise<void> {
    const { name, uid, resourceVersion } = metadata;
    const address = addressOf(leases, { namespace: this.#namespace, name });
    const body = { apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { uid, resourceVersion } };
    await this.#transport[MUTATE]({
      method: 'DELETE',
      verb: 'delete',
      address,
      body,
      signal,
      timeoutMs,
      ...PRIVILEGES,
    });
  }

  /** The Lease as it is now and after each change, until the server ends the watch or the Lease is deleted. */
  async *watch(name: string, signal: AbortSignal): AsyncGenerator<Lease> {
    const selection = { namespace: this.#namespace, fieldSelector: `metadata.name=${name}` };
    const source = new HttpListWatch({ transport: this.#transport, resource: leases, selection });
    for await (const event of source.watch({ signal })) {
      switch (event.type) {
        case 'ADDED':
        case 'MODIFIED':
          yield event.object;
          break;
        case 'DELETED':
          return;
        case 'ERROR':
          throw errorOfStatus(event.object, 500);
        case 'BOOKMARK':
          break;
      }
    }
  }

  #write(
    how: Pick<LeaseCall, 'method' | 'verb'>,
    name: string | undefined,
    lease: New<Lease> | Lease,
    { signal, timeoutMs }: CallOptions,
  ): Promise<Lease> {
    const address = addressOf(leases, { namespace: this.#namespace, name });
    const body = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', ...lease };
    return this.#transport[MUTATE]<Lease>({ ...how, address, body, signal, timeoutMs, ...PRIVILEGES });
  }
}
