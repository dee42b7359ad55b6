import { DriverError } from '../../driver/error.ts';

/** Types of services, as they stand in the catalog. */
export type ServiceType = 'compute' | 'network' | 'image' | 'volumev3';

/** One service of a token's catalog. */
export interface CatalogEntry {
  readonly type: string;
  readonly endpoints: readonly {
    readonly interface: string;
    readonly region?: string | null;
    readonly region_id?: string | null;
    readonly url: string;
  }[];
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

/** The public address of a service in a region. Throws InvalidArgument that says which regions there are. */
export function endpointOf(catalog: readonly CatalogEntry[], type: ServiceType, region: string): string {
  const endpoints = publicEndpoints(catalog, type);
  const found = endpoints.find((endpoint) => regionOf(endpoint) === region);
  if (found === undefined) {
    const regions = [...new Set(endpoints.map(regionOf))].toSorted().join(', ');
    const there =
      regions === '' ? 'its catalog has none at all, ask whoever runs the cloud' : `there is one in ${regions}`;
    throw new DriverError(
      'InvalidArgument',
      `providerSpec.spec.region: the cloud has no public endpoint of type ${type} in region ${region}; ${there}`,
    );
  }
  const url = found.url.replace(/\/+$/, '');
  return VERSIONS[type].isThere.test(url) ? url : `${url}${VERSIONS[type].path}`;
}

/** Whether a region has the service. */
export function isOffered(catalog: readonly CatalogEntry[], type: ServiceType, region: string): boolean {
  return publicEndpoints(catalog, type).some((endpoint) => regionOf(endpoint) === region);
}

/** Addresses of a service that is only asked whether it answers; empty when the catalog does not tell. */
export function addressesOf(catalog: readonly CatalogEntry[], type: string, region: string): readonly string[] {
  return catalog
    .filter((entry) => entry.type === type)
    .flatMap((entry) => entry.endpoints)
    .filter((endpoint) => endpoint.interface === 'public' && regionOf(endpoint) === region)
    .map(({ url }) => url);
}

function publicEndpoints(catalog: readonly CatalogEntry[], type: ServiceType): CatalogEntry['endpoints'] {
  return catalog
    .filter((entry) => NAMES[type].includes(entry.type))
    .flatMap((entry) => entry.endpoints)
    .filter((endpoint) => endpoint.interface === 'public');
}

function regionOf({ region, region_id: id }: CatalogEntry['endpoints'][number]): string {
  return id ?? region ?? '';
}
