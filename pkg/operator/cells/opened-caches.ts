import type { KubeObject } from '../../apis/meta.ts';
import type { Resource } from '../../apis/resource.ts';
import { indexesByNamespace, NamespaceViews } from '../../kube/cache/namespace-views.ts';
import type { ApiError } from '../../kube/client/errors.ts';
import type { ClusterCaches, OpenCache, SharedCache } from '../cluster-caches.ts';

/** Who reads a kind. */
interface KindReader {
  readonly namespace: string;
  readonly refused: (err: ApiError) => void;
  readonly close: () => void;
}

interface OpenKind {
  readonly cache: OpenCache<KubeObject>;
  readonly views: NamespaceViews<KubeObject>;
  readonly readers: Set<KindReader>;
  /** Last told, and of no interest once the cache is filled. */
  refusal: ApiError | undefined;
}

/** Caches of kinds that become known while cells run: one watch of each, from its first reader to its last, of which each sees its namespace. */
export class OpenedCaches {
  readonly #control: Pick<ClusterCaches, 'open'>;
  readonly #failed: (resource: Resource<KubeObject>, err: unknown) => void;
  readonly #kinds = new Map<string, OpenKind>();

  /** `failed` is told what handlers of changes throw. */
  constructor(control: Pick<ClusterCaches, 'open'>, failed: (resource: Resource<KubeObject>, err: unknown) => void) {
    this.#control = control;
    this.#failed = failed;
  }

  /** As ClusterCaches does, for what is in one namespace. */
  open(resource: Resource<KubeObject>, namespace: string, refused: (err: ApiError) => void): SharedCache {
    const kind = this.#kindOf(resource);
    const { views, cache } = kind;
    const view = views.open(namespace);
    const closing = new AbortController();
    const reader: KindReader = {
      namespace,
      refused,
      close: () => {
        closing.abort(new Error('the cache is no longer needed'));
        view.close();
        kind.readers.delete(reader);
        this.#closeUnread(resource, kind);
      },
    };
    kind.readers.add(reader);
    // Whoever comes later is told what the others know.
    if (kind.refusal !== undefined && !cache.informer.hasSynced) refused(kind.refusal);
    const waitForSync = (signal: AbortSignal): Promise<void> =>
      cache.informer.waitForSync(AbortSignal.any([signal, closing.signal]));
    // Its own properties are getters, which a copy would lose.
    return { informer: Object.assign(view.informer, { waitForSync }), close: reader.close };
  }

  /** Closes what a namespace has left open. */
  forget(namespace: string): void {
    const left = [...this.#kinds.values()].flatMap(({ readers }) => [...readers]);
    for (const reader of left) if (reader.namespace === namespace) reader.close();
  }

  #kindOf(resource: Resource<KubeObject>): OpenKind {
    const key = keyOf(resource);
    const known = this.#kinds.get(key);
    if (known !== undefined) return known;
    const cache = this.#control.open(resource, {
      indexes: indexesByNamespace(),
      refused: (err) => {
        kind.refusal = err;
        for (const { refused } of kind.readers) refused(err);
      },
    });
    const views = new NamespaceViews(cache.informer, (err) => this.#failed(resource, err));
    const kind: OpenKind = { cache, views, readers: new Set(), refusal: undefined };
    this.#kinds.set(key, kind);
    return kind;
  }

  #closeUnread(resource: Resource<KubeObject>, kind: OpenKind): void {
    if (kind.readers.size > 0 || this.#kinds.get(keyOf(resource)) !== kind) return;
    this.#kinds.delete(keyOf(resource));
    kind.cache.close();
  }
}

/** A kind is read anew in another version. */
function keyOf({ group, version, plural }: Resource<KubeObject>): string {
  return `${group}/${version}/${plural}`;
}
