import { keyOf, type KubeObject, type List } from '../../apis/meta.ts';
import type { Resource } from '../../apis/resource.ts';
import { ApiError } from '../client/errors.ts';
import type { ListWatch, PageOptions, Selection, WatchOptions } from '../client/list-watch.ts';
import type { WatchEvent } from '../client/watch.ts';

/** What an object takes at least, in a cache and its indexes. */
const LEAST_BYTES = 1_000;
const MIB = 1024 * 1024;

/**
 * Lists and watches a collection of a server that may send anything, for one cache: as soon as it has more than `maxBytes`, as JSON, lists and
 * watches end with an ApiError. Each begins anew with what it is told then.
 */
export class LimitedListWatch<T extends KubeObject> implements ListWatch<T> {
  readonly resource: Resource<T>;
  readonly selection: Selection;
  readonly #source: ListWatch<T>;
  readonly #maxBytes: number;
  readonly #exceeded: (err: ApiError) => void;
  #sizes = new Map<string, number>();
  #bytes = 0;

  /** `exceeded` is told whenever it has more. */
  constructor(source: ListWatch<T>, maxBytes: number, exceeded: (err: ApiError) => void) {
    this.resource = source.resource;
    this.selection = source.selection;
    this.#source = source;
    this.#maxBytes = maxBytes;
    this.#exceeded = exceeded;
  }

  async list(options: PageOptions): Promise<List<T>> {
    if (options.continue === undefined) this.#forget();
    const list = await this.#source.list(options);
    for (const item of list.items) this.#add(item);
    return list;
  }

  async *watch(options: WatchOptions): AsyncGenerator<WatchEvent<T>> {
    if (options.sendInitialEvents === true) this.#forget();
    for await (const event of this.#source.watch(options)) {
      if (event.type === 'DELETED') this.#remove(keyOf(event.object));
      else if (event.type === 'ADDED' || event.type === 'MODIFIED') this.#add(event.object);
      yield event;
    }
  }

  answeredSince(sinceMs: number, signal: AbortSignal): Promise<void> {
    return this.#source.answeredSince(sinceMs, signal);
  }

  #forget(): void {
    this.#sizes = new Map();
    this.#bytes = 0;
  }

  #add(object: T): void {
    const key = keyOf(object);
    const bytes = LEAST_BYTES + JSON.stringify(object).length;
    this.#remove(key);
    this.#sizes.set(key, bytes);
    this.#bytes += bytes;
    if (this.#bytes <= this.#maxBytes) return;
    const { plural } = this.resource;
    this.#forget();
    const most = `${Math.round(this.#maxBytes / MIB)} MiB`;
    const err = new ApiError(0, 'RequestEntityTooLarge', `the ${plural} of the cluster take more than ${most}`);
    this.#exceeded(err);
    throw err;
  }

  #remove(key: string): void {
    this.#bytes -= this.#sizes.get(key) ?? 0;
    this.#sizes.delete(key);
  }
}
