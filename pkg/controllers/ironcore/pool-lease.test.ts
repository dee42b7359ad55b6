import { expect, test } from '@jest/globals';

import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { MemoryClient } from '../../../test/memory-client.ts';
import type { Lease } from '../../apis/wire.ts';
import { leases } from '../../kube/resource.ts';
import { PoolLeases } from './pool-lease.ts';

const namespace = 'ironcore-machinepool-lease';
const never = new AbortController().signal;
const held = (holderIdentity: string) => ({
  metadata: { name: 'p', namespace, uid: 'u', resourceVersion: '1', creationTimestamp: '' },
  spec: { holderIdentity, leaseDurationSeconds: 40, acquireTime: 'then', renewTime: 'then' },
});

test.each([
  { what: 'none is made', before: undefined, verb: 'create', acquired: true },
  { what: 'one of ours is renewed', before: held('p_me'), verb: 'patch', acquired: false },
  { what: 'one of a former process is taken over', before: held('p_you'), verb: 'patch', acquired: true },
])('of a pool $what', async ({ before, verb, acquired }) => {
  const client = new MemoryClient();
  if (before !== undefined) client.put(leases, before);
  const clock = new FakeClock();
  const pools = new PoolLeases({ reader: client, writer: client, clock, identity: 'me' });

  await pools.renew('p', never);

  const renewTime = '2026-01-01T00:00:00.000000Z';
  expect(client.writes).toMatchObject([{ verb, what: 'leases/p' }]);
  expect(client.writes.map(({ body }) => (body as Lease).spec)).toEqual([
    {
      holderIdentity: 'p_me',
      leaseDurationSeconds: 40,
      renewTime,
      ...(acquired && { acquireTime: renewTime }),
    },
  ]);
});
