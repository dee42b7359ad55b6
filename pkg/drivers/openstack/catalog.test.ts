import { expect, test } from '@jest/globals';

import { type CatalogEntry, endpointOf, type ServiceType } from './catalog.ts';

const at = (type: string, url: string, region = 'eu-1', kind = 'public'): CatalogEntry => ({
  type,
  endpoints: [{ interface: kind, region_id: region, url }],
});

test.each<{ type: ServiceType; catalog: CatalogEntry[]; url: string }>([
  { type: 'compute', catalog: [at('compute', 'https://a/v2.1')], url: 'https://a/v2.1' },
  { type: 'network', catalog: [at('network', 'https://a:9696/')], url: 'https://a:9696/v2.0' },
  { type: 'network', catalog: [at('network', 'https://a/v2.0')], url: 'https://a/v2.0' },
  { type: 'image', catalog: [at('image', 'https://a/image')], url: 'https://a/image/v2' },
  { type: 'volumev3', catalog: [at('block-storage', 'https://a/v3/p')], url: 'https://a/v3/p' },
  {
    type: 'compute',
    catalog: [
      at('compute', 'https://inside', 'eu-1', 'internal'),
      at('compute', 'https://other', 'us-1'),
      at('compute', 'https://a'),
    ],
    url: 'https://a',
  },
])('the $type service is at $url', ({ type, catalog, url }) => {
  expect(endpointOf(catalog, type, 'eu-1')).toBe(url);
});

test('a region that is not there is told together with those that are', () => {
  expect(() => endpointOf([at('compute', 'https://a', 'us-1')], 'compute', 'eu-1')).toThrow(
    'providerSpec.spec.region: the cloud has no public endpoint of type compute in region eu-1; there is one in us-1',
  );
  expect(() => endpointOf([], 'network', 'eu-1')).toThrow('its catalog has none at all');
});
