import type { KubeObject } from '../../apis/meta.ts';
import type { Reader } from '../client/client.ts';
import { isForbiddenOrNotServed } from '../client/errors.ts';
import type { Resource } from '../../apis/resource.ts';
import type { Informer } from './lister.ts';

export interface CacheSource {
  readonly resource: Resource<KubeObject>;
  readonly namespace: string | undefined;
  readonly reader: Reader;
  readonly informer: Pick<Informer<KubeObject>, 'waitFor'>;
  /** We can do without it: when we may not read it, nobody waits for it. */
  readonly isOptional?: boolean;
}

/**
 * Resolves when every cache has caught up with the present: reads the resourceVersion of each kind by a live list of one
 * object and waits until the informer has reached it. A new leader, and everyone after an outage, does this before acting,
 * so that nothing is decided on what was true before. Rejects with ApiError or the signal's reason.
 */
export async function reachPresent(kinds: readonly CacheSource[], signal: AbortSignal): Promise<void> {
  await Promise.all(
    kinds.map(async ({ resource, namespace, reader, informer, isOptional = false }) => {
      const scope = namespace === undefined ? {} : { namespace };
      try {
        const { metadata } = await reader.list(resource, { ...scope, limit: 1, signal });
        await informer.waitFor(metadata.resourceVersion, signal);
      } catch (err) {
        if (!isOptional || !isForbiddenOrNotServed(err)) throw err;
      }
    }),
  );
}
