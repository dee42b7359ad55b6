import type { KubeObject, List } from '../../apis/meta.ts';
import { addressOf, queryOf } from './address.ts';
import type { CallOptions } from './client.ts';
import { normalised, normalisedList, received, receivedList } from './resource.ts';
import type { Resource } from '../../apis/resource.ts';
import { asServed } from './served-versions.ts';
import type { Transport } from './transport.ts';
import { jsonLines, type WatchEvent } from './watch.ts';

/** Which objects of a resource, and how much of each. */
export interface Selection {
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  /** Only names, labels, annotations and the like come over the wire. */
  readonly metadataOnly?: boolean | undefined;
}

export interface PageOptions extends CallOptions {
  readonly limit?: number | undefined;
  readonly continue?: string | undefined;
  readonly resourceVersion?: string | undefined;
  readonly resourceVersionMatch?: 'Exact' | 'NotOlderThan' | undefined;
}

export interface WatchOptions {
  readonly signal: AbortSignal;
  readonly resourceVersion?: string | undefined;
  readonly timeoutSeconds?: number | undefined;
  /** Also stream what exists already (WatchList); its end is a bookmark annotated `k8s.io/initial-events-end`. */
  readonly sendInitialEvents?: boolean | undefined;
  /** Called when the server has accepted the watch, before anything is delivered. Must not throw. */
  readonly onOpen?: (() => void) | undefined;
}

/** What a reflector needs of one collection. `list` and `watch` throw ApiError. */
export interface ListWatch<T extends KubeObject> {
  readonly resource: Resource<T>;
  readonly selection: Selection;
  list(options: PageOptions): Promise<List<T>>;
  watch(options: WatchOptions): AsyncIterable<WatchEvent<T>>;
  /** Resolves when the server has answered anybody at `sinceMs` (monotonic) or later; rejects with the signal's reason. */
  answeredSince(sinceMs: number, signal: AbortSignal): Promise<void>;
}

/** The same of a list. */
export const METADATA_LIST = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json';
/** Asks for one object's metadata alone. */
export const METADATA = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json';
/** The server sends a bookmark about once a minute, so silence for longer than this means a dead connection. */
const IDLE_MS = 90_000;
/** A watch says something 2 s before its time is over, and ends then; one that is silent for so much longer is dead. */
const OVERTIME_MS = 1_500;
/** A watch that goes on where another one ended is accepted at once. */
const OPENING_MS = 10_000;
/** What exists already comes in one stream; a pause in it is as bad as no answer. */
const INITIAL_IDLE_MS = 20_000;
/** A first list of thousands of objects from a server that has just started takes its time. */
const LIST_TIMEOUT_MS = 60_000;

function longestSilenceMs({ timeoutSeconds, sendInitialEvents }: WatchOptions): number {
  if (sendInitialEvents === true) return INITIAL_IDLE_MS;
  return timeoutSeconds === undefined ? Infinity : timeoutSeconds * 1_000 + OVERTIME_MS;
}

/** Lists and watches one selection of one resource. `idleMs` ends a silent watch; the default allows for bookmarks. */
export class HttpListWatch<T extends KubeObject> implements ListWatch<T> {
  readonly resource: Resource<T>;
  readonly selection: Selection;
  readonly #transport: Transport;
  readonly #idleMs: number;

  constructor(options: { transport: Transport; resource: Resource<T>; selection?: Selection; idleMs?: number }) {
    this.#transport = options.transport;
    this.resource = options.resource;
    this.selection = options.selection ?? {};
    this.#idleMs = options.idleMs ?? IDLE_MS;
  }

  async list(options: PageOptions): Promise<List<T>> {
    const { signal, timeoutMs, ...page } = options;
    const { labelSelector, fieldSelector, metadataOnly } = this.selection;
    return await asServed(this.#transport, this.resource, signal, async (served) => {
      const list = await this.#transport.request<List<T>>({
        method: 'GET',
        verb: 'list',
        address: addressOf(served, { namespace: this.selection.namespace }),
        query: queryOf({ labelSelector, fieldSelector, ...page }),
        ...(metadataOnly === true ? { accept: METADATA_LIST } : {}),
        signal,
        timeoutMs: timeoutMs ?? LIST_TIMEOUT_MS,
      });
      return metadataOnly === true ? receivedList(served, list) : normalisedList(served, list);
    });
  }

  answeredSince(sinceMs: number, signal: AbortSignal): Promise<void> {
    return this.#transport.answeredSince(sinceMs, signal);
  }

  async *watch(options: WatchOptions): AsyncGenerator<WatchEvent<T>> {
    const { signal, resourceVersion, timeoutSeconds, sendInitialEvents, onOpen } = options;
    const { labelSelector, fieldSelector, metadataOnly } = this.selection;
    const query = queryOf({
      watch: true,
      allowWatchBookmarks: true,
      labelSelector,
      fieldSelector,
      resourceVersion,
      timeoutSeconds,
      ...(sendInitialEvents === true ? { sendInitialEvents, resourceVersionMatch: 'NotOlderThan' } : {}),
    });
    const open = async (served: Resource<T>) => ({
      served,
      stream: await this.#transport.open(
        {
          method: 'GET',
          verb: 'watch',
          address: addressOf(served, { namespace: this.selection.namespace }),
          query,
          ...(metadataOnly === true ? { accept: METADATA } : {}),
          signal,
          ...(sendInitialEvents === true ? {} : { timeoutMs: OPENING_MS }),
        },
        Math.min(this.#idleMs, longestSilenceMs(options)),
      ),
    });
    const { served, stream } = await asServed(this.#transport, this.resource, signal, open);
    onOpen?.();
    const take = metadataOnly === true ? received<T> : normalised<T>;
    for await (const event of jsonLines<WatchEvent<T>>(stream, signal)) {
      if (event.type !== 'ERROR' && event.type !== 'BOOKMARK') take(served, event.object);
      yield event;
    }
  }
}
