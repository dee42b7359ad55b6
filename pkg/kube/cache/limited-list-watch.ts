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
 * watches end with an ApiError, until it is listed and has less.
 */
export class LimitedListWatch<T extends KubeObject> implements ListWatch<T> {
  readonly resource: Resource<T>;
  readonly selection: Selection;
  readonly #source: ListWatch<T>;
  readonly #maxBytes: number;
  readonly #changed: (err: ApiError | undefined) => void;
  #sizes = new Map<string, number>();
  #bytes = 0;
  #isExceeded = false;

  /** `changed` is told whenever it has more, and with nothing when it has no longer. */
  constructor(source: ListWatch<T>, maxBytes: number, changed: (err: ApiError | undefined) => void) {
    this.resource = source.resource;
    this.selection = source.selection;
    this.#source = source;
    this.#maxBytes = maxBytes;
    this.#changed = changed;
  }

  async list(options: PageOptions): Promise<List<T>> {
    if (options.continue === undefined) this.#forget();
    const list = await this.#source.list(options);
    for (const item of list.items) this.#add(item, true);
    if ((list.metadata.continue ?? '') === '') this.#fits();
    return list;
  }

  async *watch(options: WatchOptions): AsyncGenerator<WatchEvent<T>> {
    if (options.sendInitialEvents === true) this.#forget();
    for await (const event of this.#source.watch(options)) {
      if (event.type === 'DELETED') this.#remove(keyOf(event.object));
      else if (event.type === 'ADDED' || event.type === 'MODIFIED')
        this.#add(event.object, options.sendInitialEvents === true);
      else if (event.type === 'BOOKMARK' && options.sendInitialEvents === true) this.#fits();
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

  #fits(): void {
    if (!this.#isExceeded) return;
    this.#isExceeded = false;
    this.#changed(undefined);
  }

  #add(object: T, isListed: boolean): void {
    const key = keyOf(object);
    const bytes = LEAST_BYTES + JSON.stringify(object).length;
    this.#remove(key);
    this.#sizes.set(key, bytes);
    this.#bytes += bytes;
    if (this.#bytes <= this.#maxBytes) return;
    const { plural } = this.resource;
    const most = `${Math.round(this.#maxBytes / MIB)} MiB`;
    const message = `the ${plural} of the cluster take more than ${most}`;
    const err = new ApiError(0, 'RequestEntityTooLarge', message);
    this.#isExceeded = true;
    this.#changed(err);
    // A watch that goes on where it was would meet the same again: only a list tells whether there is less.
    throw isListed ? err : new ApiError(410, 'Expired', message);
  }

  #remove(key: string): void {
    this.#bytes -= this.#sizes.get(key) ?? 0;
    this.#sizes.delete(key);
  }
}
