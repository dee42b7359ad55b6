import type { KubeObject } from '../../apis/meta.ts';
import type { Clock } from '../../base/clock/clock.ts';
import type { Informer } from '../../kube/cache/lister.ts';
import type { Reader } from '../../kube/client/client.ts';
import { ConfigError } from '../../kube/client/config-error.ts';
import { type ForeignContent, foreignEndpoint } from '../../kube/client/config.ts';
import type { Endpoint } from '../../kube/client/endpoint.ts';
import { isNotFound } from '../../kube/client/errors.ts';
import { secrets } from '../../kube/client/resource.ts';
import type { CellsConfig } from '../config/cells.ts';

/** Where the kubeconfig of a cell is. */
export interface CellKubeconfig {
  readonly reader: Reader;
  /** Metadata of the Secrets of its namespace. */
  readonly secrets: Pick<Informer<KubeObject>, 'get'>;
  readonly namespace: string;
  readonly names: Pick<CellsConfig, 'kubeconfigSecret' | 'tokenSecret'>;
  readonly clock: Clock;
  /** Told that they name another server than at first, which is not used. */
  readonly moved: () => void;
}

/** A Secret, which the message names, does not have what it has to. */
class CellSecretError extends ConfigError {}

/**
 * The way to the target cluster of a cell, which its Secrets tell; they are read again once they have changed. Throws ConfigError, which names
 * the Secret and what is wrong with it, and ApiError.
 */
export async function cellEndpoint(cell: CellKubeconfig): Promise<Endpoint> {
  const { kubeconfigSecret, tokenSecret } = cell.names;
  const readKubeconfig = valueOf(cell, kubeconfigSecret, 'kubeconfig');
  const readToken = tokenSecret === '' ? () => Promise.resolve(undefined) : valueOf(cell, tokenSecret, 'token');
  const content = async (): Promise<ForeignContent> => {
    const [kubeconfig, token] = await Promise.all([readKubeconfig(), readToken()]);
    return { kubeconfig, token, namespace: cell.namespace };
  };
  try {
    return await foreignEndpoint({ content, clock: cell.clock, moved: cell.moved });
  } catch (err) {
    if (!(err instanceof ConfigError) || err instanceof CellSecretError) throw err;
    throw new ConfigError(`Secret ${cell.namespace}/${kubeconfigSecret}: ${err.message}`, { cause: err });
  }
}

/** What a key of a Secret holds, read live when the Secret has changed. */
function valueOf({ reader, secrets: cached, namespace }: CellKubeconfig, name: string, key: string) {
  const secret = `Secret ${namespace}/${name}`;
  let last: { readonly resourceVersion: string; readonly value: string } | undefined;
  return async (): Promise<string> => {
    const current = cached.get(`${namespace}/${name}`)?.metadata.resourceVersion;
    if (last !== undefined && last.resourceVersion === current) return last.value;
    try {
      const { metadata, data } = await reader.get(secrets, { namespace, name });
      const encoded = data?.[key];
      if (encoded === undefined) throw new CellSecretError(`${secret} has no key ${key}; add it`);
      last = { resourceVersion: metadata.resourceVersion, value: Buffer.from(encoded, 'base64').toString('utf8') };
      return last.value;
    } catch (err) {
      if (!isNotFound(err)) throw err;
      throw new CellSecretError(`${secret} does not exist; create it with key ${key}`, { cause: err });
    }
  };
}
