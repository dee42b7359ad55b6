import { DriverError } from '../../driver/error.ts';
import type { Interface } from './credentials.ts';

/** Types of services, as they stand in the catalog. */
export type ServiceType = 'compute' | 'network' | 'image' | 'volumev3';

export interface CatalogEntry {
  readonly type: string;
  readonly endpoints: readonly {
    readonly interface: string;
    readonly region?: string | null;
    readonly region_id?: string | null;
    readonly url: string;
  }[];
}

/** A token's catalog, and which of its addresses count. */
export interface Catalog {
  readonly catalog: readonly CatalogEntry[];
  readonly kind: Interface;
}

/** What follows the endpoint, unless it is in there already. */
const VERSIONS: Readonly<Record<ServiceType, { readonly path: string; readonly isThere: RegExp }>> = {
  // The endpoints of Nova and Cinder name their version.
  compute: { path: '', isThere: /$/ },
  volumev3: { path: '', isThere: /$/ },
  network: { path: '/v2.0', isThere: /\/v2\.0$/ },
  image: { path: '/v2', isThere: /\/v2$/ },
};
/** Other names under which a catalog may have the service, the best first. */
const NAMES: Readonly<Record<ServiceType, readonly string[]>> = {
  compute: ['compute'],
  network: ['network'],
  image: ['image'],
  volumev3: ['volumev3', 'block-storage'],
};

/** The address of a service in a region, of the kind that the Secret says. Throws InvalidArgument that says which regions there are. */
export function endpointOf({ catalog, kind }: Catalog, type: ServiceType, region: string): string {
  const endpoints = endpointsOf({ catalog, kind }, type);
  const found = endpoints.find((endpoint) => regionOf(endpoint) === region);
  if (found === undefined) {
    const regions = [...new Set(endpoints.map(regionOf))].toSorted().join(', ');
    const there =
      regions === '' ? 'its catalog has none; contact the operator of the cloud' : `there is one in ${regions}`;
    throw new DriverError(
      'InvalidArgument',
      `providerSpec.spec.region: the cloud has no ${kind} endpoint of type ${type} in region ${region}; ${there}`,
    );
  }
  const url = found.url.replace(/\/+$/, '');
  return VERSIONS[type].isThere.test(url) ? url : `${url}${VERSIONS[type].path}`;
}

export function isOffered(catalog: Catalog, type: ServiceType, region: string): boolean {
  return endpointsOf(catalog, type).some((endpoint) => regionOf(endpoint) === region);
}

/** Addresses of a service that is only asked whether it answers; empty when the catalog does not tell. */
export function serviceAddressesOf({ catalog, kind }: Catalog, type: string, region: string): readonly string[] {
  return catalog
    .filter((entry) => entry.type === type)
    .flatMap((entry) => entry.endpoints)
    .filter((endpoint) => endpoint.interface === kind && regionOf(endpoint) === region)
    .map(({ url }) => url);
}

function endpointsOf({ catalog, kind }: Catalog, type: ServiceType): CatalogEntry['endpoints'] {
  return catalog
    .filter((entry) => NAMES[type].includes(entry.type))
    .flatMap((entry) => entry.endpoints)
    .filter((endpoint) => endpoint.interface === kind);
}

function regionOf({ region, region_id: id }: CatalogEntry['endpoints'][number]): string {
  return id ?? region ?? '';
}
