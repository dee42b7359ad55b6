import type { Reader } from '../../kube/client/client.ts';
import { ApiError } from '../../kube/client/errors.ts';
import { namespaces } from '../../kube/client/resource.ts';

/** UID of a target cluster, which may answer anything. Throws ApiError. */
export async function readTargetUID(reader: Pick<Reader, 'get'>, signal: AbortSignal): Promise<string> {
  const { metadata } = await reader.get(namespaces, { name: 'kube-system' }, { signal });
  const uid: unknown = metadata.uid;
  if (typeof uid === 'string' && uid !== '') return uid;
  throw new ApiError(502, 'BadGateway', 'Namespace kube-system of the target cluster has no UID');
}
