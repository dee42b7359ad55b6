import { expect, test } from '@jest/globals';

import type { Port } from './network.ts';
import { firstPort } from './ports.ts';

const OWNER = 'machinist cluster=c-1 namespace=shoot uid=u-1';

function port(id: string, network: string, description = OWNER): Port {
  return { id, network_id: network, device_id: 's-1', description, fixed_ips: [] };
}

test.each([
  { what: 'listed last', bound: [port('p-2', 'second'), port('p-1', 'first')], found: 'p-1' },
  { what: 'beside one that was added by hand', bound: [port('p-2', 'first', ''), port('p-1', 'first')], found: 'p-1' },
  { what: "an earlier provider's", bound: [port('p-2', 'second', ''), port('p-1', 'first', '')], found: 'p-1' },
  { what: 'marked', bound: [port('p-1', 'first', `${OWNER} sent=1 by=x`)], found: 'p-1' },
  { what: 'gone', bound: [port('p-2', 'second')], found: undefined },
])('the port of the first network is found: $what', ({ bound, found }) => {
  expect(firstPort(bound, 'first', OWNER)?.id).toBe(found);
});
