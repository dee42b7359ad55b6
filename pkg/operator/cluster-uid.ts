import type { Reader } from '../kube/client/client.ts';
import { ApiError } from '../kube/client/errors.ts';
import { namespaces } from '../kube/client/resource.ts';

/** UID of Namespace kube-system, which tells a cluster from others; what is behind its address may answer anything. Throws ApiError. */
export async function readClusterUID(reader: Pick<Reader, 'get'>, signal: AbortSignal): Promise<string> {
  const { metadata } = await reader.get(namespaces, { name: 'kube-system' }, { signal });
  const uid = (metadata as Partial<typeof metadata> | undefined)?.uid as unknown;
  if (typeof uid === 'string' && uid !== '') return uid;
  throw new ApiError(502, 'BadGateway', 'Namespace kube-system of the cluster has no UID');
}
