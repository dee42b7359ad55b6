import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import { isBeingDeleted, keyOf, type KubeObject } from '../../pkg/apis/meta.ts';
import type { Store } from '../../pkg/cache/store.ts';
import type { Intent } from '../../pkg/gate/gate.ts';
import type { ObjectRef, WriteOptions } from '../../pkg/kube/client.ts';
import { ApiError } from '../../pkg/kube/errors.ts';
import type { Patch } from '../../pkg/kube/patch.ts';
import { machines as machineResource, type Resource } from '../../pkg/kube/resource.ts';
import { MemoryClient } from '../memory-client.ts';

/**
 * A MemoryClient whose patches of Machines are seen in the cache at once. Of the rules of an API server it has those on which the end of a
 * pass depends: what was computed from an older version, or from another Machine of that name, is refused, and a Machine that is deleted
 * goes with its last finalizer.
 */
export class MachineWriter extends MemoryClient {
  readonly #cache: Store<Machine>;

  constructor(cache: Store<Machine>) {
    super();
    this.#cache = cache;
  }

  override async patch<T extends KubeObject>(
    intent: Intent,
    resource: Resource<T>,
    ref: ObjectRef,
    patch: Patch,
    options?: WriteOptions,
  ): Promise<T> {
    if (resource.plural !== machineResource.plural) return super.patch(intent, resource, ref, patch, options);
    const current = this.#cache.get(`${ref.namespace}/${ref.name}`);
    if (current === undefined) throw new ApiError(404, 'NotFound', 'not found');
    const { uid, resourceVersion } = (patch.body as { metadata?: Partial<Machine['metadata']> }).metadata ?? {};
    const isOther = uid !== undefined && uid !== current.metadata.uid;
    const isOlder = resourceVersion !== undefined && resourceVersion !== current.metadata.resourceVersion;
    if (isOther || isOlder) throw new ApiError(409, 'Conflict', 'the Machine has changed');
    this.put(resource, current);
    const written = await super.patch<T>(intent, resource, ref, patch, options);
    const { managedFields: _, ...metadata } = written.metadata as T['metadata'] & { managedFields?: unknown };
    const stored = { ...written, metadata } as unknown as Machine;
    const isGone = isBeingDeleted(stored) && (stored.metadata.finalizers ?? []).length === 0;
    if (isGone) this.#cache.remove(keyOf(stored));
    else this.#cache.put(stored);
    return stored as unknown as T;
  }
}
