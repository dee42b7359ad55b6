import { describe, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';

import { FakeClock } from '../../../../../test/fakes/fake-clock.ts';
import { remoteVolume, runtimeMachine } from '../../../../../test/fakes/runtime-machine.ts';
import { MemoryClient } from '../../../../../test/memory-client.ts';
import { MemoryInformer } from '../../../../../test/memory-informer.ts';
import type { IronCoreMachine } from '../../api/machine.ts';
import type { IronCoreMachinePool } from '../../api/machine-pool.ts';
import type { IronCoreNetworkInterface } from '../../api/network-interface.ts';
import type { IronCoreVolume } from '../../api/volume.ts';
import { keyOf } from '../../../../apis/meta.ts';
import { IRONCORE_NETWORK_INTERFACE_INDEXES, IRONCORE_VOLUME_INDEXES } from '../indexes.ts';
import type { RuntimeMachine } from '../../runtime/runtime.ts';
import { ApiError } from '../../../../kube/client/errors.ts';
import { ironCoreMachines } from '../../api/resources.ts';
import { silentLogger } from '../../../../base/log/logger.ts';
import { ironCoreMetrics } from '../metrics.ts';
import { Departures } from './departures.ts';
import { LeftClaims } from './left-claims.ts';
import { Sightings } from './sightings.ts';

const { signal } = new AbortController();
const MINUTE_MS = 60_000;
const FOR_POOL = { 'machine.sapcloud.io/claimed-for-pool': 'p' };
const meta = (name: string, annotations: Record<string, string> = {}) => ({
  name,
  namespace: 'ns',
  uid: `uid-${name}`,
  resourceVersion: '7',
  annotations,
  creationTimestamp: '2026-01-01T00:00:00Z',
});
const claim = { name: 'm', uid: 'uid-m' };
const status = { state: 'Available', access: { driver: 'ceph', handle: 'h' } };
const volume = (annotations = FOR_POOL): IronCoreVolume => ({
  metadata: meta('v', annotations),
  spec: { claimRef: claim },
  status,
});
const nic: IronCoreNetworkInterface = {
  metadata: meta('n', FOR_POOL),
  spec: { machineRef: claim, providerID: 'nic-h' },
};
const machine: IronCoreMachine = { metadata: meta('m'), spec: { machineClassRef: { name: 'c' } } };

const POOL: IronCoreMachinePool = { metadata: { ...meta('p'), namespace: '' } };
const UID = { 'machinepoollet.ironcore.dev/machine-uid': 'uid-m' };
const gone: IronCoreMachine = {
  ...machine,
  metadata: { ...machine.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' },
};

function world({
  volumes = [volume()],
  pool = POOL,
  cached = [] as IronCoreMachine[],
  live = [] as IronCoreMachine[],
} = {}) {
  const clock = new FakeClock();
  const pools = new MemoryInformer([pool]);
  const client = new MemoryClient();
  client.put(ironCoreMachines, ...live);
  const departures = new Departures();
  const sightings = new Sightings();
  const held: (readonly string[])[] = [];
  const metrics = ironCoreMetrics(new Registry());
  const claims = new LeftClaims({
    pools,
    sightings,
    held: {
      report: async (_pool, all) =>
        void held.push(all.map(({ kind, object, machine: of }) => `${kind} ${keyOf(object)} of ${of}`)),
      leave: async () => undefined,
    },
    metrics,
    machines: new MemoryInformer(cached),
    volumes: new MemoryInformer(volumes, IRONCORE_VOLUME_INDEXES),
    networkInterfaces: new MemoryInformer([nic], IRONCORE_NETWORK_INTERFACE_INDEXES),
    departures,
    reader: client,
    writer: client,
    clock,
    log: silentLogger,
  });
  const look = async (machines: readonly RuntimeMachine[] = [], connection = 0): Promise<number> => {
    sightings.saw('p', { machines, connection });
    return await claims.release('p', { machines, connection }, signal);
  };
  const freed = () => client.writes.map(({ what }) => what);
  const leave = async (): Promise<void> => await claims.leave('p', signal);
  return { clock, client, departures, sightings, held, metrics, look, leave, freed };
}

test('claims of a Machine that is gone are taken off when no creation of it can be on its way any more', async () => {
  const { clock, client, look, freed } = world();

  await look([runtimeMachine({ id: 'x', labels: UID })]);
  expect(await look()).toBe(2 * MINUTE_MS);
  clock.advance(2 * MINUTE_MS - 1);
  expect(await look()).toBe(1);
  expect(freed()).toEqual([]);
  clock.advance(1);
  await look();

  expect(freed()).toEqual(['volumes/v', 'networkinterfaces/n']);
  const free = { metadata: { annotations: { 'machine.sapcloud.io/claimed-for-pool': null } } };
  expect(client.writes[0]).toMatchObject({ resourceVersion: '7', body: { ...free, spec: { claimRef: null } } });
  expect(client.writes[1]?.body).toEqual({ ...free, spec: { machineRef: null, providerID: null } });
});

test('those of one that was seen to go with its machine made are taken off after ten seconds', async () => {
  const { clock, departures, look, freed } = world();
  departures.saw({ ...gone, status: { machineID: 'iri://x' } });

  await look([runtimeMachine({ id: 'x' })]);
  expect(await look()).toBe(10_000);
  clock.advance(10_000);
  await look();

  expect(freed()).toHaveLength(2);
});

test('one that the API server refuses to have freed holds up nothing else, and is tried again', async () => {
  const denied = new ApiError(403, 'Forbidden', 'a webhook');
  const { clock, client, departures, held, look, freed } = world();
  departures.saw(gone);
  client.failures.push(denied);

  await look();
  clock.advance(2 * MINUTE_MS);
  await expect(look()).rejects.toBe(denied);

  expect(freed()).toEqual(['volumes/v', 'networkinterfaces/n']);
  expect(held).toHaveLength(2);
  await look();
  expect(freed()).toContain('volumes/v');
});

test.each([
  { what: 'while its Machine is there', parts: { cached: [machine] } },
  { what: 'while its Machine is there, and the cache does not know it yet', parts: { live: [machine] } },
  { what: 'that was made by somebody else', parts: { volumes: [volume({} as never)] } },
  {
    what: 'that was made for another pool',
    parts: { volumes: [volume({ 'machine.sapcloud.io/claimed-for-pool': 'q' })] },
  },
])('a claim $what stays', async ({ parts }) => {
  const { clock, look, freed } = world(parts);

  await look();
  clock.advance(3 * MINUTE_MS);
  await look();

  expect(freed()).not.toContain('volumes/v');
});

// promise: machines-ironcore/machine-ironcore-claimed-given
test.each([
  {
    what: 'a machine of the Machine',
    by: runtimeMachine({ id: 'x', labels: UID }),
  },
  {
    what: 'a machine that lost its labels',
    by: runtimeMachine(
      { id: 'x' },
      { volumes: [remoteVolume('v', { driver: 'ceph', handle: 'h' })] },
      { networkInterfaces: [{ name: 'n', handle: 'nic-h', state: 0 }] },
    ),
  },
])('a claim on what $what uses stays, and its time begins anew', async ({ by }) => {
  const { clock, departures, look, freed } = world();
  departures.saw({ ...gone, status: {} });

  await look([by]);
  clock.advance(3 * MINUTE_MS);
  await look([by]);
  await look();
  expect(freed()).toEqual([]);

  clock.advance(2 * MINUTE_MS);
  await look();
  expect(freed()).toHaveLength(2);
});

test('a claim by a Machine of the same name that is another one is not mistaken for it', async () => {
  const { clock, departures, look, freed } = world({
    cached: [{ ...machine, metadata: { ...machine.metadata, uid: 'uid-new' } }],
  });
  departures.saw({ ...gone, status: {} });

  await look();
  clock.advance(2 * MINUTE_MS);
  await look();

  expect(freed()).toHaveLength(2);
});

describe('claims of a Machine that is gone, of whose machine nothing is shown,', () => {
  const machineID = 'iri://x';
  const sent = { 'machine.sapcloud.io/creation-sent-at': '2026-01-01T00:00:00Z' };
  const there = runtimeMachine({ id: 'x', labels: UID });
  const going = runtimeMachine({ id: 'x', labels: UID, deletedAt: 1n });
  const other = runtimeMachine({ id: 'y' });

  test.each([
    { what: 'are held where this process has never seen it', saw: [], departed: { status: { machineID } }, held: true },
    {
      what: 'are held where the runtime was another one since',
      saw: [there],
      departed: { status: { machineID } },
      held: true,
    },
    { what: 'are held where another machine was seen', saw: [other], departed: { status: { machineID } }, held: true },
    { what: 'are held where nothing is known of the Machine', saw: [], departed: undefined, held: true },
    {
      what: 'are held where a creation may have been sent',
      saw: [],
      departed: { metadata: { ...gone.metadata, annotations: sent } },
      held: true,
    },
    { what: 'are free where it was seen going', saw: [going], departed: { status: { machineID } }, held: false },
    { what: 'are free where none was ever asked for', saw: [], departed: {}, held: false },
  ])('$what', async ({ saw, departed, held: isHeld }) => {
    const { clock, departures, look, leave, freed, held, metrics } = world();
    if (departed !== undefined) departures.saw({ ...gone, ...departed });

    await look(saw, 0);
    await look([], 1);
    clock.advance(3 * MINUTE_MS);
    await look([], 1);

    expect(freed()).toHaveLength(isHeld ? 0 : 2);
    const texts = ['Volume ns/v of m', 'NetworkInterface ns/n of m'];
    expect(held.at(-1)).toEqual(isHeld ? texts : []);
    expect((await metrics.claimsHeld.get()).values).toEqual([{ labels: { pool: 'p' }, value: isHeld ? 2 : 0 }]);
    await leave();
    expect((await metrics.claimsHeld.get()).values).toEqual([]);
  });

  test.each(['the MachinePool', 'the Volume'])('are given up when %s allows it', async (what) => {
    const until = { 'safety.machine.sapcloud.io/give-up-missing-machines-until': '2026-01-01T00:30:00Z' };
    const { clock, look, freed } = world(
      what === 'the Volume'
        ? { volumes: [volume({ ...FOR_POOL, ...until })] }
        : { pool: { metadata: { ...POOL.metadata, annotations: until } } },
    );

    await look();
    clock.advance(3 * MINUTE_MS);
    await look();

    expect(freed()).toEqual(what === 'the Volume' ? ['volumes/v'] : ['volumes/v', 'networkinterfaces/n']);
  });
});
