import { describe, expect, test } from '@jest/globals';

import { FakeClock } from '../../../../test/fakes/fake-clock.ts';
import { MemoryClient } from '../../../../test/memory-client.ts';
import type { Lease } from '../../../apis/wire.ts';
import { toMicroTimestamp } from '../../../base/clock/clock.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { leases } from '../../../kube/client/resource.ts';
import { PoolClaims } from './pool-claims.ts';
import { PoolLeases } from './pool-lease.ts';
import { PoolUIDs } from './pool-uids.ts';

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
  const poolUIDs = new PoolUIDs();
  const claims = new PoolClaims({ process: 'me' });
  const deps = { reader: client, writer: client, clock, poolUIDs, claims, family: 'family', identity: 'me' };
  const pools = new PoolLeases(deps);
  return { client, clock, poolUIDs, claims, renew: async (uid?: string) => await pools.renew('p', uid, never) };
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
  expect(client.writes[0]).toMatchObject({ verb, what: 'leases/p' });
  expect(client.writes.map(({ body }) => (body as Lease).spec).filter((spec) => spec !== undefined)).toEqual([
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

  const writes = client.writes.length;
  expect(await renew()).toBe('p_poollet');
  expect(client.writes).toHaveLength(writes);
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

describe('the UID of the MachinePool', () => {
  const POOL_UIDS = 'machine.sapcloud.io/pool-uids';
  const noting = (note: string): Lease => {
    const lease = held('p_family_me');
    return { ...lease, metadata: { ...lease.metadata, annotations: { [POOL_UIDS]: note } } };
  };
  const noteOf = async ({ client }: ReturnType<typeof world>): Promise<string | undefined> =>
    (await client.get(leases, { namespace, name: 'p' })).metadata.annotations?.[POOL_UIDS];

  test.each([
    { what: 'of a new one', before: undefined, note: 'uid-of-p new', known: ['new'] },
    { what: 'beside none', before: held('p_family_me'), note: 'u new', known: [] },
    { what: 'beside those before', before: noting('u old older'), note: 'u old older new', known: ['old', 'older'] },
    { what: 'once', before: noting('u new old'), note: 'u new old', known: ['new', 'old'] },
    { what: 'and none that was copied from another Lease', before: noting('other old'), note: 'u new', known: [] },
  ])('is noted $what', async ({ before, note, known }) => {
    const it = world(before);

    await it.renew('new');

    expect(await noteOf(it)).toBe(note);
    expect(it.poolUIDs.of('p')).toEqual(known);
    await it.renew('new');
    expect(it.poolUIDs.of('p')).toEqual(note.split(' ').slice(1));
  });

  test('is not noted of one that is not there, nor with a Lease that is taken by somebody else', async () => {
    const gone = world(noting('u old'));
    const foreign = world({ ...noting('u old'), spec: held('p_poollet').spec });

    await gone.renew();
    await foreign.renew('new');

    expect([await noteOf(gone), gone.poolUIDs.of('p')]).toEqual(['u old', ['old']]);
    expect([await noteOf(foreign), foreign.poolUIDs.of('p')]).toEqual(['u old', []]);
  });

  test('is the last of fifty', async () => {
    const it = world(noting(['u', ...Array.from({ length: 50 }, (_, i) => `old-${i}`)].join(' ')));

    await it.renew('new');
    await it.renew('new');

    expect([it.poolUIDs.of('p').length, it.poolUIDs.of('p')[0], it.poolUIDs.of('p').at(-1)]).toEqual([
      50,
      'old-1',
      'new',
    ]);
  });
});

describe('claims', () => {
  const CLAIMS = 'machine.sapcloud.io/pool-claims';
  const noting = (note: string, holder = 'p_family_me'): Lease => {
    const lease = held(holder);
    return { ...lease, metadata: { ...lease.metadata, annotations: { [CLAIMS]: note } } };
  };
  const noteOf = async ({ client }: ReturnType<typeof world>): Promise<string | undefined> =>
    (await client.get(leases, { namespace, name: 'p' })).metadata.annotations?.[CLAIMS];

  test.each([
    { what: 'of a new Lease', before: undefined, note: 'uid-of-p me:1', second: 'uid-of-p me:2' },
    { what: 'of one that notes none', before: held('p_family_me'), note: 'u me:1', second: 'u me:2' },
    {
      what: 'after those before',
      before: noting('u you:7 he:2'),
      note: 'u you:7 he:2 me:1',
      second: 'u you:7 he:2 me:2',
    },
    { what: 'and none that was copied', before: noting('other you:7'), note: 'u me:1', second: 'u me:2' },
  ])('each renewal is noted $what', async ({ before, note, second }) => {
    const it = world(before);

    await it.renew();
    expect(await noteOf(it)).toBe(note);
    expect(it.claims.ownOf('p')).toEqual({ process: 'me', renewals: 1 });
    await it.renew();

    expect(await noteOf(it)).toBe(second);
    expect(it.claims.ownOf('p')).toEqual({ process: 'me', renewals: 2 });
  });

  test('a Lease that was set back gets all back that this process knows', async () => {
    const it = world(noting('u you:7'));
    await it.renew();
    await it.renew();

    it.client.put(leases, noting('u you:3 me:1'));
    await it.renew();

    expect(await noteOf(it)).toBe('u you:7 me:3');
  });

  test('whoever takes over from a process before writes nothing over what that has noted meanwhile', async () => {
    const it = world(noting('u you:7', 'p_family_you'));

    await it.renew();
    expect(it.client.writes.at(-1)).toMatchObject({ resourceVersion: '1' });
    await it.renew();

    expect(it.client.writes.at(-1)?.resourceVersion).toBeUndefined();
  });

  test('a renewal of a Lease that is gone counts for nothing', async () => {
    const it = world(noting('u you:7'));
    it.client.patch = async () => {
      throw new ApiError(404, 'NotFound', 'gone');
    };

    await it.renew();

    expect(it.claims.of('p')).toBeUndefined();
    expect(it.claims.ownOf('p')).toBeUndefined();
  });
});
