import { hasFinalizer } from '../../../apis/finalizers.ts';
import { isBeingDeleted, refOf, type KubeObject } from '../../../apis/meta.ts';
import { CONTROL } from '../../../kube/gate/gate.ts';
import type { Writer } from '../../../kube/client/client.ts';
import { isNotFound } from '../../../kube/client/errors.ts';
import type { Patch } from '../../../kube/client/patch.ts';
import type { Resource } from '../../../apis/resource.ts';

/** What is recorded of objects of a kind outside of their status, with the finalizer that keeps them. */
export interface RecordKind<T extends KubeObject> {
  readonly resource: Resource<T>;
  readonly finalizer: string;
}

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
  { resource, finalizer }: RecordKind<T>,
  { observed, after, patch }: { readonly observed: T; readonly after: KubeObject; readonly patch: Patch | undefined },
  signal: AbortSignal,
): Promise<T | undefined> {
  if (patch === undefined) return observed;
  const intent = isRelease(finalizer, observed, after) ? 'destroy' : 'change';
  const clusters = intent === 'destroy' ? [CONTROL] : [];
  try {
    const written = await writer.patch(intent, resource, refOf(observed), patch, { signal, clusters });
    return isBeingDeleted(observed) && after.metadata.finalizers?.length === 0 ? undefined : written;
  } catch (err) {
    if (isNotFound(err)) return undefined;
    throw err;
  }
}
