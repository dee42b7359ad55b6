import type { KubeObject } from '../apis/meta.ts';
import type { Reader } from '../kube/client/client.ts';
import { ApiError } from '../kube/client/errors.ts';
import { namespaces } from '../kube/client/resource.ts';

/** UID of Namespace kube-system, which tells a cluster from others; what is behind its address may answer anything. Throws ApiError. */
export async function readClusterUID(reader: Pick<Reader, 'get'>, signal: AbortSignal): Promise<string> {
  const { metadata }: Partial<KubeObject> = await reader.get(namespaces, { name: 'kube-system' }, { signal });
  const uid: unknown = metadata?.uid;
  if (typeof uid === 'string' && uid !== '') return uid;
  throw new ApiError(502, 'BadGateway', 'Namespace kube-system of the cluster has no UID');
}
