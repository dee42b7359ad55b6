import type { KubeObject, List } from '../../apis/meta.ts';
import { addressOf, queryOf } from './address.ts';
import { METADATA, METADATA_LIST } from './list-watch.ts';
import type { GetOptions, ListOptions, ObjectRef, Reader } from './client.ts';
import { normalised, normalisedList, received, receivedList } from './resource.ts';
import type { Resource } from '../../apis/resource.ts';
import { asServed } from './served-versions.ts';
import type { Transport } from './transport.ts';

export class HttpReader implements Reader {
  readonly #transport: Transport;
  readonly #lane: 'requests' | 'probes';
  readonly #flow: string | undefined;

  /** `probes` bypasses the rate limit, on connections of its own: for reads that ask how the server is. `flow`: for whom it reads. */
  constructor(transport: Transport, lane: 'requests' | 'probes' = 'requests', flow?: string) {
    this.#transport = transport;
    this.#lane = lane;
    this.#flow = flow;
  }

  async get<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef, options: GetOptions = {}): Promise<T> {
    return await asServed(this.#transport, resource, options.signal, async (served) => {
      const object = await this.#transport.request<T>({
        method: 'GET',
        verb: 'get',
        lane: this.#lane,
        flow: this.#flow,
        address: addressOf(served, ref),
        ...(options.metadataOnly === true ? { accept: METADATA } : {}),
        signal: options.signal,
        timeoutMs: options.timeoutMs,
      });
      return options.metadataOnly === true ? received(served, object) : normalised(served, object);
    });
  }

  async list<T extends KubeObject>(resource: Resource<T>, options: ListOptions = {}): Promise<List<T>> {
    const { namespace, signal, timeoutMs, metadataOnly, ...selection } = options;
    return await asServed(this.#transport, resource, signal, async (served) => {
      const list = await this.#transport.request<List<T>>({
        method: 'GET',
        verb: 'list',
        lane: this.#lane,
        flow: this.#flow,
        address: addressOf(served, { namespace }),
        query: queryOf(selection),
        ...(metadataOnly === true ? { accept: METADATA_LIST } : {}),
        signal,
        timeoutMs,
      });
      return metadataOnly === true ? receivedList(served, list) : normalisedList(served, list);
    });
  }
}
