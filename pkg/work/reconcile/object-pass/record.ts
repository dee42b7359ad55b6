import { hasFinalizer } from '../../../apis/finalizers.ts';
import { isBeingDeleted, refOf, type KubeObject } from '../../../apis/meta.ts';
import { CONTROL } from '../../../kube/gate/gate.ts';
import type { Writer } from '../../../kube/client/client.ts';
import { ignoreNotFound } from '../../../kube/client/errors.ts';
import type { Patch } from '../../../kube/client/patch.ts';
import type { Resource } from '../../../apis/resource.ts';

/** Whether a pass takes our finalizer from an object that is being deleted. */
export function isRelease(finalizer: string, before: KubeObject, after: KubeObject): boolean {
  return isBeingDeleted(before) && hasFinalizer(before, finalizer) && !hasFinalizer(after, finalizer);
}

/**
 * Writes what a pass has changed outside of the status: the record. Resolves with what the status goes on top of, so that both fail when
 * anybody else wrote meanwhile; undefined when the object is gone, or goes with this very write. To release an object destroys, also
 * when finalizers of others keep it; only the control cluster is asked for a sign of life then, because nothing is left in the target
 * cluster. Throws ApiError and GateClosedError.
 */
export async function writeRecord<T extends KubeObject>(
  writer: Pick<Writer, 'patch'>,
  { resource, finalizer }: { readonly resource: Resource<T>; readonly finalizer: string },
  { observed, after, patch }: { readonly observed: T; readonly after: KubeObject; readonly patch: Patch | undefined },
  signal: AbortSignal,
): Promise<T | undefined> {
  if (patch === undefined) return observed;
  const intent = isRelease(finalizer, observed, after) ? 'destroy' : 'change';
  const clusters = intent === 'destroy' ? [CONTROL] : [];
  const written = await writer
    .patch(intent, resource, refOf(observed), patch, { signal, clusters })
    .catch(ignoreNotFound);
  return isBeingDeleted(observed) && after.metadata.finalizers?.length === 0 ? undefined : written;
}
