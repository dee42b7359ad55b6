import { expect, test } from '@jest/globals';

import { callOf } from '../../../test/drivers/requests.ts';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { FakeOpenStack } from '../../../test/fakes/fake-openstack.ts';
import { silentLogger } from '../../base/log/logger.ts';
import { Creation } from './creation.ts';
import { FailedBuilds } from './failed-builds.ts';
import { parseProviderSpec } from './provider-spec.ts';
import type { Server } from './server.ts';
import { ServerPoll } from './server-poll.ts';
import { DEFAULT_OPENSTACK_SETTINGS } from './settings.ts';

const { signal } = new AbortController();
const SPEC = parseProviderSpec({
  spec: {
    imageID: 'i-1',
    region: 'region',
    flavorID: 'f',
    tags: { 'kubernetes.io-cluster-x': '1', 'kubernetes.io-role-worker': '1' },
    networkID: 'n-1',
  },
});
const isActive = ({ status }: Server): boolean => status === 'ACTIVE';

function server(id: string, status: string): Server {
  return { id, name: id, status, created: '2026-01-01T00:00:00Z', metadata: {}, addresses: {} };
}

/** Looks as long as anybody waits, and no longer. */
async function pass(clock: FakeClock, ms: number): Promise<void> {
  for (let i = 0; i < 20; i++) await Promise.resolve();
  clock.advance(ms);
  for (let i = 0; i < 20; i++) await Promise.resolve();
}

test('one list shows all servers to everyone who waits; what it does not show is looked at by itself', async () => {
  const clock = new FakeClock();
  const states = new Map([
    ['a', 'BUILD'],
    ['b', 'BUILD'],
  ]);
  const asked: string[] = [];
  const poll = new ServerPoll({
    clock,
    list: async () => {
      asked.push('list');
      return await Promise.resolve([...states].map(([id, status]) => server(id, status)));
    },
    read: async (id) => {
      asked.push(id);
      return await Promise.resolve(id === 'hidden' ? server(id, 'ACTIVE') : undefined);
    },
  });
  const until = (id: string, forMs = 60_000) => poll.until(id, isActive, forMs, signal);
  const waits = Promise.all([until('a'), until('b'), until('hidden'), until('gone'), until('b', 1_000)]);

  await pass(clock, 1_000);
  expect(asked).toEqual(['list', 'hidden', 'gone']);
  states.set('a', 'ACTIVE').set('b', 'ACTIVE');
  await pass(clock, 1_300);

  const [a, b, hidden, gone, early] = await waits;
  expect([a, b, hidden, gone, early].map((one) => one?.status)).toEqual([
    'ACTIVE',
    'ACTIVE',
    'ACTIVE',
    undefined,
    'BUILD',
  ]);
  expect(asked.filter((what) => what === 'list')).toHaveLength(2);
  await pass(clock, 60_000);
  expect(asked.filter((what) => what === 'list')).toHaveLength(2);
});

// promise: openstack/cloud/scale-few-logins-servers
test('fifty machines that are made at once wait for their servers with the lists of one', async () => {
  const cloud = new FakeOpenStack(new FakeClock());
  const shared = cloud.cloud();
  const readyMs = cloud.clock.monotonicMs() + 10_000;
  cloud.answer = (request) => {
    const status = cloud.clock.monotonicMs() < readyMs ? 'BUILD' : 'ACTIVE';
    const launched = status === 'ACTIVE' ? { 'OS-SRV-USG:launched_at': 'x' } : { 'OS-SRV-USG:launched_at': null };
    if (request.startsWith('GET compute /servers/detail?tags='))
      cloud.servers = cloud.servers.map((one) => ({ ...one, status, ...launched }));
    return undefined;
  };

  const made = Array.from({ length: 50 }, async (_, i) => {
    const machine = { cluster: 'c', namespace: 'n', name: `m-${i}`, uid: `u-${i}`, providerID: undefined };
    const deps = { cloud: shared, machine, spec: SPEC, className: 'c', userData: 'x', log: silentLogger };
    const { clock } = cloud;
    const failedBuilds = new FailedBuilds(clock);
    return await new Creation({ ...deps, settings: DEFAULT_OPENSTACK_SETTINGS, clock, failedBuilds }).run(callOf());
  });

  const ended = await cloud.passing(Promise.all(made));
  expect(ended).toMatchObject({ status: 'fulfilled' });
  expect(cloud.servers.filter(({ status }) => status === 'ACTIVE')).toHaveLength(50);
  expect(cloud.askedFor('GET compute /servers/detail?tags=').length).toBeLessThanOrEqual(10);
});

test('a list that fails is told to all who wait', async () => {
  const clock = new FakeClock();
  const poll = new ServerPoll({
    clock,
    list: async () => await Promise.reject(new Error('no answer')),
    read: async () => await Promise.resolve(undefined),
  });
  const waits = Promise.allSettled(['a', 'b'].map(async (id) => await poll.until(id, isActive, 60_000, signal)));

  await pass(clock, 1_000);

  expect((await waits).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
});

test('a list that takes long is followed by a longer pause', async () => {
  const clock = new FakeClock();
  let lists = 0;
  const poll = new ServerPoll({
    clock,
    list: async () => {
      lists += 1;
      await clock.sleep(2_000, signal);
      return [server('a', 'BUILD')];
    },
    read: async () => await Promise.resolve(undefined),
  });
  const wait = poll.until('a', isActive, 8_000, signal);

  await pass(clock, 1_000);
  await pass(clock, 2_000);
  await pass(clock, 5_999);
  expect(lists).toBe(1);
  await pass(clock, 1);
  expect(lists).toBe(2);
  await pass(clock, 2_000);

  expect((await wait)?.status).toBe('BUILD');
});
