import type { KubeObject } from '../../apis/meta.ts';
import type { ObjectRef, Reader } from '../../kube/client/client.ts';
import { ApiError, isNotFound } from '../../kube/client/errors.ts';
import type { Resource } from '../../apis/resource.ts';

/**
 * What an object names; `missing`: there is none. `unknown`: it names nothing, or who asks may not read it, and is told of the object all
 * the same. Throws ApiError when the server cannot be reached.
 */
export async function readNamed<T extends KubeObject>(
  reader: Reader,
  resource: Resource<T>,
  ref: ObjectRef,
  options: { readonly metadataOnly?: true } = {},
): Promise<T | 'missing' | 'unknown'> {
  if (ref.name === '') return 'unknown';
  try {
    return await reader.get(resource, ref, options);
  } catch (err) {
    if (isNotFound(err)) return 'missing';
    if (isAnswer(err)) return 'unknown';
    throw err;
  }
}

/** Whether an error is an answer of the server: it can be reached, and who asks goes without what it refused. */
export function isAnswer(err: unknown): boolean {
  return err instanceof ApiError && err.code !== 0;
}
