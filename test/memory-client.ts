import { isBeingDeleted, type KubeObject, type List } from '../pkg/apis/meta.ts';
import type { Pod } from '../pkg/apis/wire.ts';
import type { Cluster, Intent } from '../pkg/kube/gate/gate.ts';
import type {
  DeleteOptions,
  New,
  ObjectRef,
  Preconditions,
  Reader,
  WriteOptions,
  Writer,
} from '../pkg/kube/client/client.ts';
import { ApiError } from '../pkg/kube/client/errors.ts';
import type { Patch } from '../pkg/kube/client/patch.ts';
import { normalised } from '../pkg/kube/client/resource.ts';
import type { Resource } from '../pkg/apis/resource.ts';

/** A write that was asked for, with all that guards it. */
export interface NotedWrite {
  readonly verb: 'create' | 'patch' | 'delete' | 'evict';
  readonly intent: Intent;
  /** `machines/m-1`, `machinesets/set-1/status`, … */
  readonly what: string;
  /** Preconditions on the wire. */
  readonly uid: string | undefined;
  readonly resourceVersion: string | undefined;
  /** Other clusters that it concerns. */
  readonly clusters: readonly Cluster[];
  /** What is written, without preconditions; undefined for a deletion. */
  readonly body: unknown;
}

type Fields = Record<string, unknown>;

/** A cache of one kind, which a test fills. */
export interface ShownCache<T extends KubeObject> {
  get(key: string): T | undefined;
  list(): readonly T[];
  put(object: T): void;
  remove(key: string): void;
}

/**
 * Reads and writes of unit tests, each noted. What is in a cache that it `shows` is on the server too, and its writes are seen there at
 * once, as with the caches of a process; what was `put` differs from the cache. Of the rules of an API server it has for such kinds those
 * on which the end of a pass depends: what was computed from an older version, or from another object of that name, is refused, and an
 * object that is deleted goes with its last finalizer. All others are shown by test/integration.
 */
export class MemoryClient implements Reader, Writer {
  readonly writes: NotedWrite[] = [];
  readonly reads: string[] = [];
  /** What the next writes end with, one each; undefined lets one succeed. */
  readonly failures: unknown[] = [];
  /** What every read fails with. */
  readFailure: unknown;
  /** Undefined for one that is gone, whatever the cache shows. */
  readonly #objects = new Map<string, KubeObject | undefined>();
  readonly #caches = new Map<string, ShownCache<KubeObject>>();
  #version = 1_000;

  /** From now on objects of this kind are those of `cache`. */
  shows<T extends KubeObject>(resource: Kind, cache: ShownCache<T>): void {
    // The map is keyed by resource, so that a cache only ever gets objects of its own type.
    this.#caches.set(kindOf(resource), cache);
  }

  put(resource: Kind, ...objects: readonly KubeObject[]): void {
    for (const object of objects) this.#objects.set(keyOf(resource, object.metadata), object);
  }

  /** Somebody has written it, and the cache has heard of it. */
  wrote<T extends KubeObject>(resource: Resource<T>, object: T): void {
    this.#store(resource, { ...object, metadata: { ...object.metadata, resourceVersion: this.nextVersion() } });
  }

  /** Somebody has deleted it, and the cache has heard of it. */
  deleted(resource: Kind, ref: ObjectRef): void {
    this.#remove(resource, ref);
  }

  /** Somebody has deleted it, and the cache has not heard of it. */
  lose(resource: Kind, ref: ObjectRef): void {
    this.#objects.set(keyOf(resource, ref), undefined);
  }

  /** A resourceVersion that is newer than all before it. */
  nextVersion(): string {
    return String(++this.#version);
  }

  get<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef): Promise<T> {
    this.reads.push(`${resource.plural}/${ref.name}`);
    if (this.readFailure !== undefined) return Promise.reject(this.readFailure);
    const object = this.#find(resource, ref);
    return object === undefined ? Promise.reject(new ApiError(404, 'NotFound', 'not found')) : answer(object);
  }

  list<T extends KubeObject>(resource: Resource<T>): Promise<List<T>> {
    this.reads.push(resource.plural);
    if (this.readFailure !== undefined) return Promise.reject(this.readFailure);
    const kind = kindOf(resource);
    const given = new Map([...this.#objects].filter(([key]) => key.startsWith(kind)));
    const cached = this.#caches.get(kind)?.list() ?? [];
    const others = cached.filter(({ metadata }) => !given.has(keyOf(resource, metadata)));
    const items = [...others, ...given.values()].filter((one) => one !== undefined) as T[];
    return Promise.resolve({ metadata: { resourceVersion: String(this.#version) }, items });
  }

  create<T extends KubeObject>(
    intent: Intent,
    resource: Resource<T>,
    object: New<T>,
    { clusters = [] }: WriteOptions = {},
  ): Promise<T> {
    const what = `${resource.plural}/${object.metadata.name}`;
    const rest = { uid: undefined, resourceVersion: undefined, clusters, body: object };
    return this.#note({ verb: 'create', intent, what, ...rest }, () => {
      if (this.#find(resource, object.metadata) !== undefined) throw new ApiError(409, 'AlreadyExists', 'it is there');
      const { name } = object.metadata;
      const metadata = { ...object.metadata, uid: `uid-of-${name}`, resourceVersion: this.nextVersion() };
      return this.#store(resource, { ...object, metadata } as unknown as T);
    });
  }

  patch<T extends KubeObject>(
    intent: Intent,
    resource: Resource<T>,
    ref: ObjectRef,
    { body, subresource }: Patch,
    { clusters = [] }: WriteOptions = {},
  ): Promise<T> {
    const { metadata = {}, ...others } = body as Fields & { metadata?: Fields };
    const { uid, resourceVersion, ...change } = metadata as { uid?: string; resourceVersion?: string };
    const written = Object.keys(change).length === 0 ? others : { ...others, metadata: change };
    const what = [resource.plural, ref.name, ...(subresource === undefined ? [] : [subresource])].join('/');
    return this.#note({ verb: 'patch', intent, what, uid, resourceVersion, clusters, body: written }, () => {
      const current = this.#current(resource, ref, { uid, resourceVersion }) ?? {
        metadata: { ...ref, uid: uid ?? '' },
      };
      const merged = merge(current, written) as T;
      return this.#store(resource, {
        ...merged,
        metadata: { ...merged.metadata, resourceVersion: this.nextVersion() },
      });
    });
  }

  delete<T extends KubeObject>(
    intent: Intent,
    resource: Resource<T>,
    ref: ObjectRef,
    { uid, resourceVersion }: Preconditions,
    { clusters = [] }: DeleteOptions = {},
  ): Promise<T | undefined> {
    const what = `${resource.plural}/${ref.name}`;
    return this.#note({ verb: 'delete', intent, what, uid, resourceVersion, clusters, body: undefined }, () => {
      const current = this.#current(resource, ref, { uid, resourceVersion });
      if (current === undefined) return this.#remove(resource, ref);
      const { deletionTimestamp = '2026-01-01T00:00:00Z', ...metadata } = current.metadata;
      const left = { ...metadata, deletionTimestamp, resourceVersion: this.nextVersion() };
      const stored = this.#store(resource, { ...(current as T), metadata: left });
      return (metadata.finalizers ?? []).length === 0 ? undefined : stored;
    });
  }

  evict({ metadata: { name, uid } }: Pod, { clusters = [] }: WriteOptions = {}): Promise<void> {
    const rest = { uid, resourceVersion: undefined, clusters, body: undefined };
    return this.#note({ verb: 'evict', intent: 'destroy', what: `pods/${name}`, ...rest }, () => undefined);
  }

  #note<T>(write: NotedWrite, happens: () => unknown): Promise<T> {
    this.writes.push(write);
    const failure = this.failures.shift();
    if (failure instanceof ApiError) failure.object = write.what;
    if (failure !== undefined) return Promise.reject(failure);
    return new Promise((resolve) => {
      resolve(happens() as T);
    });
  }

  #find(resource: Kind, ref: ObjectRef): KubeObject | undefined {
    const key = keyOf(resource, ref);
    return this.#objects.has(key) ? this.#objects.get(key) : this.#caches.get(kindOf(resource))?.get(cacheKeyOf(ref));
  }

  /** The object that is to be written, if it may be; undefined for one of a kind that it does not show, and that it was not given. */
  #current(resource: Kind, ref: ObjectRef, { uid, resourceVersion }: Guard): KubeObject | undefined {
    const current = this.#find(resource, ref);
    if (!this.#caches.has(kindOf(resource))) return current;
    if (current === undefined) throw new ApiError(404, 'NotFound', 'not found');
    const isOther = uid !== undefined && uid !== current.metadata.uid;
    const isOlder = resourceVersion !== undefined && resourceVersion !== current.metadata.resourceVersion;
    if (isOther || isOlder) throw new ApiError(409, 'Conflict', 'the object has changed');
    return current;
  }

  #store<T extends KubeObject>(resource: Resource<T>, object: T): T {
    const stored = normalised(resource, object);
    const { metadata } = stored;
    if (isBeingDeleted(stored) && (metadata.finalizers ?? []).length === 0) {
      this.#remove(resource, metadata);
      return stored;
    }
    const cache = this.#caches.get(kindOf(resource));
    if (cache === undefined) this.put(resource, stored);
    else this.#objects.delete(keyOf(resource, metadata));
    cache?.put(stored);
    return stored;
  }

  #remove(resource: Kind, ref: ObjectRef): undefined {
    this.#objects.delete(keyOf(resource, ref));
    this.#caches.get(kindOf(resource))?.remove(cacheKeyOf(ref));
  }
}

function answer<T>(value: unknown): Promise<T> {
  return Promise.resolve(value as T);
}

type Guard = Pick<NotedWrite, 'uid' | 'resourceVersion'>;

/** Kinds of two groups may have one name. */
type Kind = Pick<Resource<KubeObject>, 'group' | 'plural'>;

function kindOf({ group, plural }: Kind): string {
  return `${group}/${plural}/`;
}

function keyOf(kind: Kind, { namespace = '', name }: ObjectRef): string {
  return `${kindOf(kind)}${namespace}/${name}`;
}

function cacheKeyOf({ namespace, name }: ObjectRef): string {
  return namespace === undefined ? name : `${namespace}/${name}`;
}

/** A JSON merge patch. */
function merge(before: unknown, change: unknown): unknown {
  if (typeof change !== 'object' || change === null || Array.isArray(change)) return change;
  const merged: Fields = { ...(before as Fields | undefined) };
  for (const [key, value] of Object.entries(change)) {
    if (value === null) delete merged[key];
    else merged[key] = merge(merged[key], value);
  }
  return merged;
}
