import type { KubeObject } from '../../apis/meta.ts';
import { isExpired } from '../client/errors.ts';
import type { ListWatch } from '../client/list-watch.ts';

/** Objects a page: what client-go uses. */
const PAGE_SIZE = 500;

/** A complete list, as of `resourceVersion`. */
export interface Listed<T> {
  readonly items: readonly T[];
  readonly resourceVersion: string;
}

/**
 * Lists a whole collection, page by page; one page in memory at a time beyond what is kept. `resourceVersion`: '' = quorum
 * read, '0' = whatever the server has cached, else not older than this. When the continue token expires half-way, the list
 * is read again in one piece. Throws ApiError.
 */
export async function listAll<T extends KubeObject>(
  source: Pick<ListWatch<T>, 'list'>,
  options: { resourceVersion: string; signal: AbortSignal; pageSize?: number },
): Promise<Listed<T>> {
  const { resourceVersion, signal, pageSize = PAGE_SIZE } = options;
  // The server's cache answers a list that is not older than a version, and does not page; with a limit it would mean "exactly".
  const isCached = resourceVersion !== '' && resourceVersion !== '0';
  const first = isCached
    ? await source.list({ resourceVersion, resourceVersionMatch: 'NotOlderThan', signal })
    : await source.list({ resourceVersion, limit: pageSize, signal });

  const { items } = first;
  let page = first;
  while (page.metadata.continue !== undefined && page.metadata.continue !== '') {
    try {
      page = await source.list({ limit: pageSize, continue: page.metadata.continue, signal });
    } catch (err) {
      if (!isExpired(err)) throw err;
      const whole = await source.list({ resourceVersion: '', signal });
      return { items: whole.items, resourceVersion: whole.metadata.resourceVersion };
    }
    for (const item of page.items) items.push(item);
  }
  return { items, resourceVersion: first.metadata.resourceVersion };
}
