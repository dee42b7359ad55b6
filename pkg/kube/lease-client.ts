import type { Lease } from '../apis/wire.ts';
import { addressOf } from './address.ts';
import type { CallOptions, New } from './client.ts';
import { errorOfStatus } from './failure.ts';
import { HttpListWatch } from './list-watch.ts';
import { leases } from './resource.ts';
import type { Call, Transport } from './transport.ts';

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
  get(name: string, options: CallOptions = {}): Promise<Lease> {
    return this.#send('GET', 'get', name, undefined, options);
  }

  /** POST. Throws ApiError; AlreadyExists when somebody else was faster. */
  create(lease: New<Lease>, options: CallOptions = {}): Promise<Lease> {
    return this.#send('POST', 'create', undefined, lease, options);
  }

  /** PUT of the whole object with its resourceVersion. Throws ApiError; Conflict when it was changed meanwhile. */
  replace(lease: Lease, options: CallOptions = {}): Promise<Lease> {
    return this.#send('PUT', 'update', lease.metadata.name, lease, options);
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

  #send(
    method: Call['method'],
    verb: Call['verb'],
    name: string | undefined,
    lease: New<Lease> | Lease | undefined,
    { signal, timeoutMs }: CallOptions,
  ): Promise<Lease> {
    const body = lease === undefined ? undefined : { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', ...lease };
    return this.#transport.request<Lease>({
      method,
      verb,
      address: addressOf(leases, { namespace: this.#namespace, name }),
      body,
      signal,
      timeoutMs,
      lane: 'leases',
      retryTooManyRequests: 'never',
    });
  }
}
