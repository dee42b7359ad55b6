import { CELL_TARGET_LABEL, CELL_WORKLOAD_LABEL } from '../../apis/machine/v1alpha1/labels.ts';
import type { KubeObject } from '../../apis/meta.ts';
import type { Lease } from '../../apis/wire.ts';
import type { Informer } from '../../kube/cache/lister.ts';
import type { Reader } from '../../kube/client/client.ts';
import { ApiError, ignoreNotFound } from '../../kube/client/errors.ts';
import { namespaces, secrets } from '../../kube/client/resource.ts';
import { holderOf } from '../../kube/leader/lease.ts';
import type { CellsConfig } from '../config/cells.ts';
import type { CellCaches } from './cell-caches.ts';
import type { CellNamespaces } from './cell-namespaces.ts';
import { ALL_NAMESPACES } from './target-claims.ts';
import { secretsOf } from './workload-claims.ts';

export interface ClaimNeedsOptions {
  readonly config: CellsConfig;
  /** Of the control cluster. */
  readonly reader: Pick<Reader, 'get'>;
  readonly shared: Pick<CellCaches, 'withMachines' | 'machinesIn' | 'secretsIn'>;
  readonly selected: Pick<CellNamespaces, 'get'>;
  /** See Shards. */
  readonly areSettled: () => boolean;
  /** The claims of target clusters. Throws ApiError. */
  readonly claims: () => Promise<readonly Lease[]>;
}

/** Whether those who hold clusters still need them, by live reads before it is denied. */
export class ClaimNeeds {
  readonly #options: ClaimNeedsOptions;

  constructor(options: ClaimNeedsOptions) {
    this.#options = options;
  }

  /** Throws ApiError. */
  async isNeeded(lease: Lease): Promise<boolean | 'unknown'> {
    const { labels } = lease.metadata;
    const isWorkload = labels?.[CELL_WORKLOAD_LABEL] !== undefined;
    const isTarget = !isWorkload || labels[CELL_TARGET_LABEL] !== undefined;
    const holder = holderOf(lease);
    if (holder === ALL_NAMESPACES) return await this.#byAll();
    const isNeeded = isTarget && (await this.#by(holder));
    if (isNeeded !== false) return isNeeded;
    return isWorkload && (await this.#hasSecretOf(lease, this.#options.shared.secretsIn(holder)));
  }

  async #byAll(): Promise<boolean | 'unknown'> {
    const { config, shared, areSettled, claims } = this.#options;
    if (config.hasOneTarget) return true;
    if (config.names !== undefined || !areSettled()) return 'unknown';
    // Of those that have a target cluster of their own, Nodes are there; of the others nobody knows.
    const owners = new Set((await claims()).map(holderOf));
    return shared.withMachines().every((name) => owners.has(name)) ? false : 'unknown';
  }

  async #by(name: string): Promise<boolean | 'unknown'> {
    const { selected, shared } = this.#options;
    return selected.get(name) !== undefined || shared.machinesIn(name) > 0 || (await this.#isThere(name));
  }

  /** Whether a namespace is there and one of ours; of one that may not be read it is unknown. */
  async #isThere(name: string): Promise<boolean | 'unknown'> {
    const { reader, config } = this.#options;
    const { names, isSelected } = config;
    try {
      const namespace = await reader.get(namespaces, { name }, { metadataOnly: true }).catch(ignoreNotFound);
      if (namespace === undefined || isSelected(namespace)) return namespace !== undefined;
      // Whether it has Machines is known of no other namespace than those that are named.
      return names === undefined ? false : 'unknown';
    } catch (err) {
      if (names !== undefined && ApiError.is(err, 'Forbidden')) return 'unknown';
      throw err;
    }
  }

  /** Whether there is one of the Secrets for which a namespace has a workload cluster. */
  async #hasSecretOf(claim: Lease, cached: Pick<Informer<KubeObject>, 'get'>): Promise<boolean> {
    const { reader } = this.#options;
    const namespace = holderOf(claim);
    const names = secretsOf(claim.metadata);
    if (names.some((name) => cached.get(`${namespace}/${name}`) !== undefined)) return true;
    for (const name of names) {
      const secret = await reader.get(secrets, { namespace, name }, { metadataOnly: true }).catch(ignoreNotFound);
      if (secret !== undefined) return true;
    }
    return false;
  }
}
