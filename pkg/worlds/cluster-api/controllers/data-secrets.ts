import { bootstrapDataIn } from '../api/bootstrap-secret.ts';
import { keyOf, type KubeObject } from '../../../apis/meta.ts';
import type { Lister } from '../../../kube/cache/lister.ts';
import type { Reader } from '../../../kube/client/client.ts';
import { ignoreNotFound, isForbiddenOrNotServed } from '../../../kube/client/errors.ts';
import { secrets as secretResource } from '../../../kube/client/resource.ts';

/** Why a machine cannot start with a Secret: what is wrong with that, and what would help. */
export interface DataSecretTrouble {
  readonly reason: 'DataSecretMissing' | 'DataSecretEmpty';
  readonly message: string;
}

export interface DataSecretsDeps {
  /** Metadata only. */
  readonly secrets: Lister<KubeObject>;
  readonly reader: Reader;
}

/** Whether the Secrets that machines start with are there. Of their content only that there is some is kept, and no longer than the cache knows it. */
export class DataSecrets {
  readonly #deps: DataSecretsDeps;
  /** Of Secrets as they are in the cache. */
  readonly #secrets = new WeakMap<KubeObject, DataSecretTrouble | undefined>();

  constructor(deps: DataSecretsDeps) {
    this.#deps = deps;
  }

  /**
   * What is wrong with a Secret; undefined: nothing, or nobody can tell, because we may not read it. Whoever makes it may be faster than the
   * cache, so that one is missing only if a live read says so. Throws ApiError.
   */
  async troubleWith(
    place: { readonly namespace: string; readonly name: string },
    signal: AbortSignal,
  ): Promise<DataSecretTrouble | undefined> {
    const { secrets, reader } = this.#deps;
    const cached = secrets.get(keyOf({ metadata: place }));
    if (cached !== undefined && this.#secrets.has(cached)) return this.#secrets.get(cached);
    try {
      const live = await reader.get(secretResource, place, { signal }).catch(ignoreNotFound);
      const trouble =
        live === undefined ? missing(place.name) : bootstrapDataIn(live) === undefined ? empty(place.name) : undefined;
      if (cached?.metadata.resourceVersion === live?.metadata.resourceVersion && cached !== undefined) {
        this.#secrets.set(cached, trouble);
      }
      return trouble;
    } catch (err) {
      if (isForbiddenOrNotServed(err)) return undefined;
      throw err;
    }
  }
}

function missing(name: string): DataSecretTrouble {
  const message = `Secret ${name} does not exist: create it, with the bootstrap data under key value`;
  return { reason: 'DataSecretMissing', message };
}

function empty(name: string): DataSecretTrouble {
  const message = `Secret ${name} has no data under key value: add the bootstrap data`;
  return { reason: 'DataSecretEmpty', message };
}
