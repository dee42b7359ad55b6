import type { ProviderCloud } from '../cloud/provider-fleet.ts';
import type { Bed } from './bed.ts';
import { belongingsOf, volumesOf } from './leftovers.ts';
import { openStackClass } from './requests.ts';

/** Name and value of the type of root disks. */
export const DISK_TYPE = 'ssd';

/** Flavors by their IDs in the bed. */
const FLAVORS = { small: 'tiny', large: 'half' } as const;

/** A bed for the provider for OpenStack. Large machines boot from a volume. */
export class BedCloud implements ProviderCloud {
  readonly name = 'openstack';
  readonly provider = 'OpenStack';
  readonly env = {};
  readonly types = FLAVORS;
  readonly #bed: Bed;

  constructor(bed: Bed) {
    this.#bed = bed;
  }

  async spec(size: 'small' | 'large', cluster: string) {
    const { providerSpec } = openStackClass(this.#bed, {
      subnetID: this.#bed.seeds.subnetID,
      flavorName: FLAVORS[size],
      tags: tagsOf(cluster),
      ...(size === 'large' ? { rootDiskSize: 2, rootDiskType: DISK_TYPE } : {}),
    });
    return await Promise.resolve(providerSpec as Readonly<Record<string, unknown>>); // made above
  }

  async vms() {
    const { servers } = await belongingsOf(this.#bed);
    return servers.map(({ id, name, flavor }) => ({ id, name, type: flavor.original_name }));
  }

  /** What a project still pays for. */
  async leftovers(): Promise<readonly unknown[]> {
    const { servers, ports, floatingIPs } = await belongingsOf(this.#bed);
    return [...servers, ...ports, ...floatingIPs, ...(await volumesOf(this.#bed))];
  }
}

/** Metadata of the servers of a cluster. */
export function tagsOf(cluster: string): Readonly<Record<string, string>> {
  return { [`kubernetes.io-cluster-${cluster}`]: '1', 'kubernetes.io-role-node': '1' };
}
