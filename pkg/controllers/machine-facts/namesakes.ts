import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { Reader } from '../../kube/client/client.ts';
import { machines } from '../../kube/client/resource.ts';

/** The Machines of a name in all namespaces, read live. Throws ApiError. */
export async function machinesNamed(
  name: string,
  reader: Pick<Reader, 'list'>,
  signal: AbortSignal,
): Promise<readonly Machine[]> {
  const { items } = await reader.list(machines, { fieldSelector: `metadata.name=${name}`, signal });
  return items;
}
