import { DriverError } from '../../driver/error.ts';
import type { ServiceClient } from './service-client.ts';

export interface PagedList {
  /** What is said to be done, such as `listing ports`. */
  readonly what: string;
  /** With its query, which may be empty. */
  readonly path: string;
  /** The member of the answer that holds the list. */
  readonly member: string;
  readonly pageSize: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** The answer that means that there is no such list, which is empty then. */
  readonly none?: number;
}

/** A list that changed under its marker is begun again so often. */
const RESTARTS = 3;

/** Everything that a list has, from all its pages. A service may have shorter pages than are asked for. */
export async function allOf<T extends { readonly id: string }>(
  client: Pick<ServiceClient, 'call'>,
  list: PagedList,
  signal: AbortSignal,
): Promise<readonly T[]> {
  for (let restarts = 0; ; restarts++) {
    const found = await pages<T>(client, list, signal);
    if (found !== undefined) return found;
    if (restarts === RESTARTS) throw new DriverError('Unavailable', `${list.what}: the list changed while it was read`);
  }
}

/** Undefined: the last one of a page is gone, so that the next page cannot be found. */
async function pages<T extends { readonly id: string }>(
  client: Pick<ServiceClient, 'call'>,
  { what, path, member, pageSize, headers = {}, none }: PagedList,
  signal: AbortSignal,
): Promise<readonly T[] | undefined> {
  const all = new Map<string, T>();
  for (let marker = ''; ;) {
    const url = `${path}${path.includes('?') ? '&' : '?'}limit=${pageSize}${marker}`;
    const isFirst = marker === '';
    const allowed = isFirst ? (none === undefined ? [] : [none]) : [400, 404];
    const page = await client.call<Readonly<Record<string, unknown>>>(what, 'GET', url, signal, { headers, allowed });
    if (page === undefined) return isFirst ? [] : undefined;
    const members = page[member] as readonly T[]; // what the service's documentation promises
    for (const one of members) all.set(one.id, one);
    const last = members.at(-1);
    if (last === undefined || (members.length < pageSize && !hasNext(page[`${member}_links`])))
      return [...all.values()];
    marker = `&marker=${encodeURIComponent(last.id)}`;
  }
}

function hasNext(links: unknown): boolean {
  return Array.isArray(links) && links.some((link) => (link as { rel?: unknown } | null)?.rel === 'next');
}
