import { expired, type Failure } from './failure.ts';
import type { Change } from './history.ts';
import type { Members } from './json.ts';
import { apiVersionOf, type Kind } from './kinds.ts';
import { invalidOptions, revisionIn, selectionOf } from './lists.ts';
import type { Objects } from './objects.ts';
import type { Selector } from './selectors.ts';
import type { StoredObject } from './stored-object.ts';

/** One line of a watch. */
export interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  readonly object: Members;
}

/** A watch that was accepted: it has to be followed before anything else is written. */
export class Watch {
  readonly timeoutSeconds: number | undefined;
  readonly hasBookmarks: boolean;
  readonly #objects: Objects;
  readonly #kind: Kind;
  readonly #select: Selector;
  /** What happened up to it is not told. */
  readonly #fromRV: number;
  /** What is shown first. */
  readonly #first: readonly WatchEvent[];

  /** Throws a Failure. */
  constructor(objects: Objects, kind: Kind, namespace: string | undefined, query: URLSearchParams) {
    this.#objects = objects;
    this.#kind = kind;
    this.#select = selectionOf(kind, namespace, query);
    this.timeoutSeconds = query.has('timeoutSeconds') ? Number(query.get('timeoutSeconds')) : undefined;
    this.hasBookmarks = query.get('allowWatchBookmarks') === 'true';
    const rv = query.get('resourceVersion') ?? '';
    this.#fromRV = /^\d+$/.test(rv) ? Number(rv) : 0;
    this.#first = this.#begin(query);
  }

  /** Tells what there is, at once, and then each change until the returned function is called, or the kind is served no more. */
  follow(emit: (event: WatchEvent) => void, end: () => void = () => undefined): () => void {
    for (const event of this.#first) emit(event);
    if (this.#first.at(-1)?.type === 'ERROR') return () => undefined;
    const stopEnding = this.#objects.onWithdrawal((kind) => {
      if (kind === this.#kind) end();
    });
    const stop = this.#objects.onChange((kind, change) => {
      // Of a server that was set back, a watch from what is its future is silent until it has come so far.
      if (kind !== this.#kind || change.rv <= this.#fromRV) return;
      const event = this.#eventOf(change);
      if (event !== undefined) emit(event);
    });
    return () => {
      stop();
      stopEnding();
    };
  }

  /** How far the watch has come. */
  bookmark(annotations?: Readonly<Record<string, string>>): WatchEvent {
    const resourceVersion = String(this.#objects.revisions.current);
    const metadata = { resourceVersion, ...(annotations && { annotations }) };
    return {
      type: 'BOOKMARK',
      object: { kind: this.#kind.kind, apiVersion: apiVersionOf(this.#kind), metadata },
    };
  }

  #begin(query: URLSearchParams): WatchEvent[] {
    const text = query.get('resourceVersion') ?? '';
    const initial = query.get('sendInitialEvents') === 'true';
    const match = query.get('resourceVersionMatch') ?? '';
    if (initial && match !== 'NotOlderThan') {
      throw invalidOptions('sendInitialEvents requires setting resourceVersionMatch to NotOlderThan');
    }
    if (!initial && match !== '')
      throw invalidOptions('resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided');
    const rv = text === '' ? 0 : revisionIn(text);
    const { revisions } = this.#objects;
    if (initial) {
      const end = this.bookmark({ 'k8s.io/initial-events-end': 'true' });
      return [...this.#present(), ...(this.hasBookmarks ? [end] : [])];
    }
    if (rv === 0) return this.#present();
    if (rv < revisions.compacted)
      return [errorEvent(expired(`too old resource version: ${rv} (${revisions.compacted})`))];
    return this.#objects
      .of(this.#kind)
      .since(rv)
      .flatMap((change) => this.#eventOf(change) ?? []);
  }

  #present(): WatchEvent[] {
    const objects = this.#objects.of(this.#kind).list().filter(this.#select);
    return objects.map((object) => ({ type: 'ADDED', object }));
  }

  /** A change as it looks to those who see only what is selected. */
  #eventOf({ type, object, previous, rv }: Change): WatchEvent | undefined {
    const was = previous !== undefined && this.#select(previous);
    const is = type !== 'DELETED' && this.#select(object);
    if (is) return { type: was ? 'MODIFIED' : 'ADDED', object };
    if (!was) return undefined;
    const last: StoredObject = type === 'DELETED' ? object : previous;
    return { type: 'DELETED', object: { ...last, metadata: { ...last.metadata, resourceVersion: String(rv) } } };
  }
}

/** A watch that cannot go on. */
export function errorEvent(failure: Failure): WatchEvent {
  return { type: 'ERROR', object: failure.status as Members };
}
