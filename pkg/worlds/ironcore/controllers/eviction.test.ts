import { expect, test } from '@jest/globals';

import { MemoryClient } from '../../../../test/memory-client.ts';
import { MemoryInformer } from '../../../../test/memory-informer.ts';
import type { IronCoreMachine, IronCoreMachineSpec } from '../api/machine.ts';
import type { IronCoreMachinePool } from '../api/machine-pool.ts';
import type { IronCoreTaint } from '../api/taint.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { ironCoreMachinePools } from '../api/resources.ts';
import { Eviction } from './eviction.ts';

const NOW = '2026-01-01T00:00:00Z';
const broken: IronCoreTaint = { key: 'broken', value: 'disk', effect: 'NoExecute' };

function machine(spec: Partial<IronCoreMachineSpec> = {}, metadata: object = {}): IronCoreMachine {
  return {
    metadata: { name: 'm', namespace: 'ns', uid: 'u', resourceVersion: '7', creationTimestamp: NOW, ...metadata },
    spec: { machineClassRef: { name: 'c' }, machinePoolRef: { name: 'p' }, ...spec },
  };
}

function pool(taints: readonly IronCoreTaint[], resourceVersion = '1'): IronCoreMachinePool {
  return { metadata: { name: 'p', uid: 'p', resourceVersion, creationTimestamp: NOW }, spec: { taints } };
}

async function evict(
  one: IronCoreMachine,
  cached: readonly IronCoreTaint[],
  live: readonly IronCoreTaint[] = cached,
  failure?: ApiError,
): Promise<{ client: MemoryClient; events: string[]; ended: PromiseSettledResult<unknown> }> {
  const client = new MemoryClient();
  client.put(ironCoreMachinePools, pool(live));
  if (failure !== undefined) client.failures.push(failure);
  const events: string[] = [];
  const eviction = new Eviction({
    machines: new MemoryInformer([one]),
    pools: new MemoryInformer([pool(cached)]),
    reader: client,
    writer: client,
    recorder: { event: ({ reason, message }) => events.push(`${reason}: ${message}`) },
  });
  const [ended] = await Promise.allSettled([eviction.reconcile('ns/m', new AbortController().signal)]);
  return { client, events, ended };
}

test('a Machine that does not tolerate a taint NoExecute of its pool is deleted as it is, and told of', async () => {
  const { client, events } = await evict(machine(), [{ key: 'soft', effect: 'NoSchedule' }, broken]);

  expect(client.writes).toMatchObject([
    { verb: 'delete', intent: 'destroy', what: 'machines/m', uid: 'u', resourceVersion: '7' },
  ]);
  expect(events).toEqual(['Evicted: Evicted from MachinePool p: does not tolerate taint broken=disk:NoExecute']);
});

// promise: machines-ironcore/machine-goes-taint-taken
test.each([
  { which: 'that tolerates it', one: machine({ tolerations: [{ key: 'broken', operator: 'Exists' }] }) },
  { which: 'without a pool', one: machine({ machinePoolRef: { name: 'another' } }) },
  { which: 'that goes anyway', one: machine({}, { deletionTimestamp: NOW }) },
  { which: 'whose pool only takes no others', taints: [{ ...broken, effect: 'NoSchedule' }] },
  { which: 'whose pool has lost the taint since', live: [] },
])('one $which stays', async ({ one = machine(), taints = [broken], live = taints }) => {
  const { client, events } = await evict(one, taints, live);

  expect([client.writes, events]).toEqual([[], []]);
});

test('one that has changed meanwhile is looked at again, and nothing is told', async () => {
  const conflict = new ApiError(409, 'Conflict', 'changed');

  const { events, ended } = await evict(machine(), [broken], [broken], conflict);

  expect(ended).toEqual({ status: 'rejected', reason: conflict });
  expect(events).toEqual([]);
});
