import { refOf, type KubeObject } from '../../apis/meta.ts';
import type { Writer } from '../../kube/client/client.ts';
import { ignoreNotFound } from '../../kube/client/errors.ts';
import type { Patch } from '../../kube/client/patch.ts';
import type { Resource } from '../../apis/resource.ts';
import { atOnce } from './at-once.ts';

const PATCHES_AT_ONCE = 20;

/** Patches objects of one kind. One that is gone needs nothing; any other error is thrown when all were tried. */
export async function patchEach<T extends KubeObject>(
  writer: Pick<Writer, 'patch'>,
  resource: Resource<T>,
  objects: readonly T[],
  patchOf: (object: T) => Patch,
  signal: AbortSignal,
): Promise<void> {
  await atOnce(PATCHES_AT_ONCE, objects, (object) => patchPresent(writer, resource, object, patchOf(object), signal));
}

/** Patches an object; one that is gone needs nothing. Throws any other error. */
export async function patchPresent<T extends KubeObject>(
  writer: Pick<Writer, 'patch'>,
  resource: Resource<T>,
  object: T,
  patch: Patch,
  signal: AbortSignal,
): Promise<void> {
  await writer.patch('change', resource, refOf(object), patch, { signal }).catch(ignoreNotFound);
}
