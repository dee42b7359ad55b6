import { expect, test } from '@jest/globals';

import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { MemoryClient } from '../../../test/memory-client.ts';
import type { Lease } from '../../apis/wire.ts';
import { toMicroTimestamp } from '../../clock/clock.ts';
import { leases } from '../../kube/resource.ts';
import { PoolLeases } from './pool-lease.ts';

const namespace = 'ironcore-machinepool-lease';
const never = new AbortController().signal;
const START_MS = new FakeClock().now();
const held = (holderIdentity: string, renewedAtMs = START_MS) => ({
  metadata: { name: 'p', namespace, uid: 'u', resourceVersion: '1', creationTimestamp: '' },
  spec: { holderIdentity, leaseDurationSeconds: 40, acquireTime: 'then', renewTime: toMicroTimestamp(renewedAtMs) },
});

function world(before: Lease | undefined) {
  const client = new MemoryClient();
  if (before !== undefined) client.put(leases, before);
  const clock = new FakeClock();
  const pools = new PoolLeases({ reader: client, writer: client, clock, family: 'family', identity: 'me' });
  return { client, clock, renew: async () => await pools.renew('p', never) };
}

test.each([
  { what: 'none is made', before: undefined, verb: 'create', acquired: true },
  { what: 'one of ours is renewed', before: held('p_family_me'), verb: 'patch', acquired: false },
  {
    what: 'one of a former process is taken over at once',
    before: held('p_family_you'),
    verb: 'patch',
    acquired: true,
  },
  { what: 'one that nobody holds is taken', before: held(''), verb: 'patch', acquired: true },
  {
    what: 'one of somebody who ended long ago is taken over at once',
    before: held('p_x', START_MS - 100_001),
    verb: 'patch',
    acquired: true,
  },
])('of a pool $what', async ({ before, verb, acquired }) => {
  const { client, renew } = world(before);

  expect(await renew()).toBeUndefined();

  const renewTime = '2026-01-01T00:00:00.000000Z';
  expect(client.writes).toMatchObject([{ verb, what: 'leases/p' }]);
  expect(client.writes.map(({ body }) => (body as Lease).spec)).toEqual([
    {
      holderIdentity: 'p_family_me',
      leaseDurationSeconds: 40,
      renewTime,
      ...(acquired && { acquireTime: renewTime }),
    },
  ]);
});

test('that of somebody else is left to them until it has not been renewed for its time, and then taken by one of those who want it', async () => {
  const { client, clock, renew } = world(held('p_poollet'));

  for (let i = 0; i < 6; i++) {
    expect(await renew()).toBe('p_poollet');
    clock.advance(10_000);
    if (i < 2) client.put(leases, held('p_poollet', clock.now()));
  }
  expect(client.writes).toEqual([]);

  expect(await renew()).toBeUndefined();
  expect(client.writes).toMatchObject([
    { verb: 'patch', resourceVersion: '1', body: { spec: { holderIdentity: 'p_family_me' } } },
  ]);
});

test('whoever takes it from us has it', async () => {
  const { client, renew } = world(undefined);
  await renew();
  client.put(leases, held('p_poollet'));

  expect(await renew()).toBe('p_poollet');
  expect(client.writes).toHaveLength(1);
});

test('whoever takes it from us has it, also when their clock is slow, until they renew it no more', async () => {
  const { client, clock, renew } = world(held('p_poollet', START_MS - 600_000));
  expect(await renew()).toBeUndefined();
  client.put(leases, held('p_poollet', START_MS - 590_000));

  expect(await renew()).toBe('p_poollet');
  clock.advance(39_999);
  expect(await renew()).toBe('p_poollet');
  clock.advance(1);

  expect(await renew()).toBeUndefined();
});
