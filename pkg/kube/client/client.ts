import type { KubeObject, List, ObjectMeta } from '../../apis/meta.ts';
import type { Pod } from '../../apis/wire.ts';
import type { Cluster, Intent } from '../gate/gate.ts';
import type { Patch } from './patch.ts';
import type { Resource } from '../../apis/resource.ts';

/** Which object. `namespace` is left out for cluster-scoped ones. */
export interface ObjectRef {
  readonly namespace?: string;
  readonly name: string;
}

/** An object of which only the identity is known. */
export interface ObjectIdentity {
  readonly metadata: Pick<ObjectMeta, 'name' | 'namespace' | 'uid'>;
}

/** Every call can be aborted and has a deadline (30 s unless told otherwise). */
export interface CallOptions {
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
}

export interface WriteOptions extends CallOptions {
  /** Clusters that it concerns besides the one it is written to (a Machine's target): the gate is asked about them too. */
  readonly clusters?: readonly Cluster[];
}

/** What a list selects, and how fresh it must be: without `resourceVersion` it is a quorum read. */
export interface ListOptions extends CallOptions {
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly limit?: number;
  readonly continue?: string;
  readonly resourceVersion?: string;
  readonly resourceVersionMatch?: 'Exact' | 'NotOlderThan';
  /** As with one object. */
  readonly metadataOnly?: true;
}

export interface GetOptions extends CallOptions {
  /** Nothing but its metadata is sent: no content of Secrets, above all. */
  readonly metadataOnly?: true;
}

/** Live reads. They throw ApiError. */
export interface Reader {
  get<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef, options?: GetOptions): Promise<T>;
  list<T extends KubeObject>(resource: Resource<T>, options?: ListOptions): Promise<List<T>>;
}

/** What is sent to create an object: the server fills in the rest of the metadata. */
export type New<T extends KubeObject> = Omit<T, 'metadata'> & {
  metadata: Partial<ObjectMeta> & { name: string };
};

/** DELETE always names the UID it means, and the resourceVersion when the deletion follows from what was read. */
export interface Preconditions {
  readonly uid: string;
  readonly resourceVersion?: string;
}

export interface DeleteOptions extends WriteOptions {
  readonly gracePeriodSeconds?: number;
  readonly propagationPolicy?: 'Background' | 'Foreground' | 'Orphan';
}

/**
 * Mutations. Each asks the gate first and ends before the fence closes; throws GateClosedError or ApiError. Answers are
 * handed to the caches, so that the next pass reads its own writes.
 */
export interface Writer {
  /** POST under a name chosen by the caller: a repeated POST is AlreadyExists. */
  create<T extends KubeObject>(
    intent: Intent,
    resource: Resource<T>,
    object: New<T>,
    options?: WriteOptions,
  ): Promise<T>;
  /** PATCH of fields that we own; `patch` carries its preconditions (see patch.ts). */
  patch<T extends KubeObject>(
    intent: Intent,
    resource: Resource<T>,
    ref: ObjectRef,
    patch: Patch,
    options?: WriteOptions,
  ): Promise<T>;
  /** DELETE. Resolves with the object while finalizers hold it, with undefined when it is gone. */
  delete<T extends KubeObject>(
    intent: Intent,
    resource: Resource<T>,
    ref: ObjectRef,
    preconditions: Preconditions,
    options?: DeleteOptions,
  ): Promise<T | undefined>;
  /** Eviction of exactly this pod (UID precondition). TooManyRequests: a PodDisruptionBudget forbids it now. */
  evict(pod: Pod, options?: WriteOptions & { readonly gracePeriodSeconds?: number }): Promise<void>;
}
