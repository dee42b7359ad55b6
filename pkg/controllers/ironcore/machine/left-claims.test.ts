import { expect, test } from '@jest/globals';

import { FakeClock } from '../../../../test/fakes/fake-clock.ts';
import { MemoryClient } from '../../../../test/memory-client.ts';
import { MemoryInformer } from '../../../../test/memory-informer.ts';
import type { IronCoreMachine } from '../../../apis/ironcore/machine.ts';
import type { IronCoreNetworkInterface } from '../../../apis/ironcore/network-interface.ts';
import type { IronCoreVolume } from '../../../apis/ironcore/volume.ts';
import { IRONCORE_NETWORK_INTERFACE_INDEXES, IRONCORE_VOLUME_INDEXES } from '../../../indexes/machine-indexes.ts';
import { Machine } from '../../../ironcore-runtime/gen/ironcore/machine/v1alpha1/machine.ts';
import type { RuntimeMachine } from '../../../ironcore-runtime/runtime.ts';
import { ironCoreMachines } from '../../../kube/resource.ts';
import { silentLogger } from '../../../log/logger.ts';
import { Departures } from './departures.ts';
import { LeftClaims } from './left-claims.ts';

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

function at(parts: Parameters<(typeof Machine)['fromPartial']>[0]): RuntimeMachine {
  const whole = Machine.fromPartial({ metadata: { id: 'x' }, spec: {}, status: {}, ...parts });
  return whole as RuntimeMachine; // All three parts are given.
}

function world({ volumes = [volume()], cached = [] as IronCoreMachine[], live = [] as IronCoreMachine[] } = {}) {
  const clock = new FakeClock();
  const client = new MemoryClient();
  client.put(ironCoreMachines, ...live);
  const departures = new Departures();
  const claims = new LeftClaims({
    machines: new MemoryInformer(cached),
    volumes: new MemoryInformer(volumes, IRONCORE_VOLUME_INDEXES),
    networkInterfaces: new MemoryInformer([nic], IRONCORE_NETWORK_INTERFACE_INDEXES),
    departures,
    reader: client,
    writer: client,
    clock,
    log: silentLogger,
  });
  const look = async (machines: readonly RuntimeMachine[] = []) => await claims.release('p', machines, signal);
  const freed = () => client.writes.map(({ what }) => what);
  return { clock, client, departures, look, freed };
}

test('claims of a Machine that is gone are taken off when no creation of it can be on its way any more', async () => {
  const { clock, client, look, freed } = world();

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
  const deletionTimestamp = '2026-01-01T00:00:00Z';
  departures.saw({
    ...machine,
    metadata: { ...machine.metadata, deletionTimestamp },
    status: { machineID: 'iri://1' },
  });

  expect(await look()).toBe(10_000);
  clock.advance(10_000);
  await look();

  expect(freed()).toHaveLength(2);
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

test.each([
  {
    what: 'a machine of the Machine',
    by: at({ metadata: { id: 'x', labels: { 'machinepoollet.ironcore.dev/machine-uid': 'uid-m' } } }),
  },
  {
    what: 'a machine that lost its labels',
    by: at({
      spec: { volumes: [{ name: 'v', connection: { driver: 'ceph', handle: 'h' } }] },
      status: { networkInterfaces: [{ name: 'n', handle: 'nic-h' }] },
    }),
  },
])('a claim on what $what uses stays, and its time begins anew', async ({ by }) => {
  const { clock, look, freed } = world();

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
  const { clock, look, freed } = world({ cached: [{ ...machine, metadata: { ...machine.metadata, uid: 'uid-new' } }] });

  await look();
  clock.advance(2 * MINUTE_MS);
  await look();

  expect(freed()).toHaveLength(2);
});
