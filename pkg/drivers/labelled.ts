import type { KubeObject } from '../apis/meta.ts';
import { listAll } from '../kube/cache/pager.ts';
import type { Reader } from '../kube/client/client.ts';
import type { Resource } from '../apis/resource.ts';

/** Which objects; those of all namespaces, or of none, where `namespace` is left out. */
export interface Labelled {
  readonly namespace?: string;
  readonly labelSelector: string;
  /** Nothing but their metadata is sent. */
  readonly metadataOnly?: true;
  readonly signal: AbortSignal;
}

/** Every object of a kind that has these labels, as a quorum read, page by page. Throws ApiError. */
export async function labelled<T extends KubeObject>(
  reader: Pick<Reader, 'list'>,
  resource: Resource<T>,
  { signal, ...which }: Labelled,
): Promise<readonly T[]> {
  const source = { list: (options: object) => reader.list(resource, { ...options, ...which }) };
  const { items } = await listAll(source, { resourceVersion: '', signal });
  return items;
}
