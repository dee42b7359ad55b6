import { expect, test } from '@jest/globals';

import { serviceAddressesOf, type CatalogEntry, endpointOf, isOffered, type ServiceType } from './catalog.ts';

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
  expect(endpointOf({ catalog, kind: 'public' }, type, 'eu-1')).toBe(url);
});

test('a region that is not there is told together with those that are', () => {
  expect(() =>
    endpointOf({ catalog: [at('compute', 'https://a', 'us-1')], kind: 'public' }, 'compute', 'eu-1'),
  ).toThrow(
    'providerSpec.spec.region: the cloud has no public endpoint of type compute in region eu-1; there is one in us-1',
  );
  expect(() => endpointOf({ catalog: [], kind: 'internal' }, 'network', 'eu-1')).toThrow('its catalog has none');
});

test.each(['public', 'internal', 'admin'] as const)('of the addresses of a service the %s one counts', (kind) => {
  const catalog = [
    {
      type: 'compute',
      endpoints: ['public', 'internal', 'admin'].flatMap(
        (one) => at('compute', `https://${one}`, 'eu-1', one).endpoints,
      ),
    },
    at('placement', 'https://placement', 'eu-1', kind),
    at('network', 'https://network', 'eu-1', kind === 'public' ? 'admin' : 'public'),
  ];

  expect(endpointOf({ catalog, kind }, 'compute', 'eu-1')).toBe(`https://${kind}`);
  expect(serviceAddressesOf({ catalog, kind }, 'placement', 'eu-1')).toEqual(['https://placement']);
  expect(serviceAddressesOf({ catalog, kind }, 'network', 'eu-1')).toEqual([]);
  expect(isOffered({ catalog, kind }, 'compute', 'eu-1')).toBe(true);
  expect(isOffered({ catalog, kind }, 'network', 'eu-1')).toBe(false);
  expect(() => endpointOf({ catalog, kind }, 'network', 'eu-1')).toThrow(`has no ${kind} endpoint of type network`);
});
