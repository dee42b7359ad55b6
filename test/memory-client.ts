import type { KubeObject, List } from '../pkg/apis/meta.ts';
import type { Pod } from '../pkg/apis/wire.ts';
import type { Cluster, Intent } from '../pkg/gate/gate.ts';
import type { DeleteOptions, New, ObjectRef, Preconditions, Reader, WriteOptions, Writer } from '../pkg/kube/client.ts';
import { ApiError } from '../pkg/kube/errors.ts';
import type { Patch } from '../pkg/kube/patch.ts';
import type { Resource } from '../pkg/kube/resource.ts';

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

/**
 * Reads and writes of unit tests: it answers from the objects that it was given, and notes each write. It keeps none of the
 * API server's rules, so that it can only show what is asked of one; what a server makes of it is shown by test/integration.
 */
export class MemoryClient implements Reader, Writer {
  readonly writes: NotedWrite[] = [];
  readonly reads: string[] = [];
  /** What the next writes end with, one each; undefined lets one succeed. */
  readonly failures: unknown[] = [];
  /** What every read fails with. */
  readFailure: unknown;
  readonly #objects = new Map<string, KubeObject>();
  #version = 1_000;

  put(resource: Kind, ...objects: readonly KubeObject[]): void {
    for (const object of objects) this.#objects.set(keyOf(resource, object.metadata), object);
  }

  /** A resourceVersion that is newer than all before it. */
  nextVersion(): string {
    return String(++this.#version);
  }

  get<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef): Promise<T> {
    this.reads.push(`${resource.plural}/${ref.name}`);
    if (this.readFailure !== undefined) return Promise.reject(this.readFailure);
    const object = this.#objects.get(keyOf(resource, ref));
    return object === undefined ? Promise.reject(new ApiError(404, 'NotFound', 'not found')) : answer(object);
  }

  list<T extends KubeObject>(resource: Resource<T>): Promise<List<T>> {
    this.reads.push(resource.plural);
    if (this.readFailure !== undefined) return Promise.reject(this.readFailure);
    const items = [...this.#objects].filter(([key]) => key.startsWith(kindOf(resource))).map(([, one]) => one as T);
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
    return this.#note({ verb: 'create', intent, what, ...rest }, () => ({
      ...object,
      metadata: { ...object.metadata, uid: `uid-of-${object.metadata.name}`, resourceVersion: this.nextVersion() },
    }));
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
      const known = this.#objects.get(keyOf(resource, ref)) ?? { metadata: { ...ref, uid: uid ?? '' } };
      const merged = merge(known, written) as KubeObject;
      const patched = { ...merged, metadata: { ...merged.metadata, resourceVersion: this.nextVersion() } };
      this.put(resource, patched);
      return patched;
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
      this.#objects.delete(keyOf(resource, ref));
      return undefined;
    });
  }

  evict({ metadata: { name, uid } }: Pod, { clusters = [] }: WriteOptions = {}): Promise<void> {
    const rest = { uid, resourceVersion: undefined, clusters, body: undefined };
    return this.#note({ verb: 'evict', intent: 'destroy', what: `pods/${name}`, ...rest }, () => undefined);
  }

  #note<T>(write: NotedWrite, happens: () => unknown): Promise<T> {
    this.writes.push(write);
    const failure = this.failures.shift();
    return failure === undefined ? answer(happens()) : Promise.reject(failure);
  }
}

function answer<T>(value: unknown): Promise<T> {
  return Promise.resolve(value as T);
}

/** Kinds of two groups may have one name. */
type Kind = Pick<Resource<KubeObject>, 'group' | 'plural'>;

function kindOf({ group, plural }: Kind): string {
  return `${group}/${plural}/`;
}

function keyOf(kind: Kind, { namespace = '', name }: ObjectRef): string {
  return `${kindOf(kind)}${namespace}/${name}`;
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
