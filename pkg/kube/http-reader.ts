import type { KubeObject, List } from '../apis/meta.ts';
import { addressOf, queryOf } from './address.ts';
import type { CallOptions, ListOptions, ObjectRef, Reader } from './client.ts';
import type { Resource } from './resource.ts';
import type { Transport } from './transport.ts';

/** Live reads of one cluster. */
export class HttpReader implements Reader {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  get<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef, options: CallOptions = {}): Promise<T> {
    return this.#transport.request<T>({
      method: 'GET',
      verb: 'get',
      address: addressOf(resource, ref),
      signal: options.signal,
      timeoutMs: options.timeoutMs,
    });
  }

  list<T extends KubeObject>(resource: Resource<T>, options: ListOptions = {}): Promise<List<T>> {
    const { namespace, signal, timeoutMs, ...selection } = options;
    return this.#transport.request<List<T>>({
      method: 'GET',
      verb: 'list',
      address: addressOf(resource, { namespace }),
      query: queryOf(selection),
      signal,
      timeoutMs,
    });
  }
}
