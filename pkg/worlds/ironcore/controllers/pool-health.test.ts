import { beforeEach, expect, test } from '@jest/globals';

import { FakeClock } from '../../../../test/fakes/fake-clock.ts';
import { MemoryClient } from '../../../../test/memory-client.ts';
import { MemoryInformer } from '../../../../test/memory-informer.ts';
import type { IronCoreMachinePool } from '../api/machine-pool.ts';
import type { IronCoreCondition } from '../api/reference.ts';
import type { Lease } from '../../../apis/wire.ts';
import { leases } from '../../../kube/client/resource.ts';
import { PoolHealth } from './pool-health.ts';

const NOW = '2026-01-01T00:00:00Z';
const never = new AbortController().signal;
const other: IronCoreCondition = { type: 'Other', status: 'True', reason: '', message: '' };

let pools: MemoryInformer<IronCoreMachinePool>;
let poolLeases: MemoryInformer<Lease>;
let client: MemoryClient;
let clock: FakeClock;
let health: PoolHealth;

function pool(status: IronCoreCondition['status'], resourceVersion = '1'): IronCoreMachinePool {
  const metadata = { name: 'p', uid: 'p', resourceVersion, generation: 3, creationTimestamp: NOW };
  return { metadata, status: { conditions: [other, { type: 'Ready', status, reason: '', message: '' }] } };
}

function lease(renewTime: string): Lease {
  const metadata = { name: 'p', namespace: 'ironcore-machinepool-lease', uid: 'l', resourceVersion: renewTime };
  return { metadata: { ...metadata, creationTimestamp: NOW }, spec: { renewTime } };
}

function seen(one: Lease): void {
  poolLeases.put(one);
  client.put(leases, one);
}

beforeEach(() => {
  pools = new MemoryInformer([pool('True')]);
  poolLeases = new MemoryInformer<Lease>();
  client = new MemoryClient();
  clock = new FakeClock();
  health = new PoolHealth({ pools, poolLeases, reader: client, writer: client, clock });
  seen(lease('t1'));
});

const pass = () => health.reconcile('p', never);

test('a pool whose Lease is renewed is let alone, and looked at when that has been missing for 50 s', async () => {
  expect(await pass()).toMatchObject({ kind: 'requeue', afterMs: 50_000 });
  clock.advance(49_999);
  seen(lease('t2'));

  expect(await pass()).toMatchObject({ afterMs: 50_000 });
  clock.advance(49_999);
  expect(await pass()).toMatchObject({ afterMs: 1 });
  expect(client.writes).toEqual([]);
});

// promise: ironcore/pools-classes/pool-nobody-serves-more
test.each(['True', 'False'] as const)(
  'one that says %s and is silent for 50 s is unknown from then on',
  async (status) => {
    pools.put(pool(status, '2'));
    await pass();
    clock.advance(50_000);

    expect(await pass()).toEqual({ kind: 'stop' });
    expect(client.writes).toMatchObject([
      {
        intent: 'change',
        what: 'machinepools/p/status',
        resourceVersion: '2',
        body: {
          status: {
            conditions: [
              other,
              { type: 'Ready', status: 'Unknown', reason: 'MachinePoolStatusUnknown', observedGeneration: 3 },
            ],
          },
        },
      },
    ]);
    pools.put(pool('Unknown', '3'));
    expect(await pass()).toEqual({ kind: 'stop' });
    expect(client.writes).toHaveLength(1);
  },
);

test('nothing is said of one whose renewal has only not been heard of yet', async () => {
  await pass();
  clock.advance(50_000);
  client.put(leases, lease('t2'));

  expect(await pass()).toMatchObject({ kind: 'requeue', afterMs: 50_000 });
  expect(client.writes).toEqual([]);
});

test('after an outage of the API server each pool has its whole time again', async () => {
  await pass();
  clock.advance(50_000);
  health.forgive();

  expect(await pass()).toMatchObject({ afterMs: 50_000 });
});

test('one without a Lease has that time, too; one that goes or is gone is nobody’s business', async () => {
  poolLeases.remove('ironcore-machinepool-lease/p');
  expect(await pass()).toMatchObject({ afterMs: 50_000 });
  const { metadata, status } = pool('True', '2');

  pools.put({ metadata: { ...metadata, deletionTimestamp: NOW }, status: status ?? {} });
  expect(await pass()).toEqual({ kind: 'stop' });
  pools.remove('p');
  expect(await pass()).toEqual({ kind: 'stop' });
  expect(client.writes).toEqual([]);
});
