import type { Api } from '../control-plane/api.ts';

/**
 * Requests that the API server has answered, by `VERB resource[/subresource]`, watches and leases apart. A change that was refused for a
 * conflict is counted by `VERB resource[/subresource] 409`: how many there are depends on how slow the host is.
 */
export type RequestCount = ReadonlyMap<string, number>;

/** Reads the server's own counter, so that every client counts, Nodes included. */
export async function countRequests(api: Api): Promise<RequestCount> {
  const { body } = await api.request('/metrics');
  const counts = new Map<string, number>();
  for (const line of String(body).split('\n')) {
    if (!line.startsWith('apiserver_request_total{')) continue;
    const label = (name: string): string => new RegExp(`[{,]${name}="([^"]*)"`).exec(line)?.[1] ?? '';
    const [verb, resource, subresource] = [label('verb'), label('resource'), label('subresource')];
    if (verb === 'WATCH' || resource === 'leases' || resource === '') continue;
    const conflict = label('code') === '409' && verb !== 'POST' ? ' 409' : '';
    const key = `${verb} ${resource}${subresource === '' ? '' : `/${subresource}`}${conflict}`;
    counts.set(key, (counts.get(key) ?? 0) + Number(line.slice(line.lastIndexOf(' '))));
  }
  return counts;
}

/** What came between two counts, the most frequent first. */
export function difference(before: RequestCount, after: RequestCount): [string, number][] {
  return [...after]
    .map(([key, count]): [string, number] => [key, count - (before.get(key) ?? 0)])
    .filter(([, count]) => count > 0)
    .toSorted(([, a], [, b]) => b - a);
}
