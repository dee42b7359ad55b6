import { expect, test } from '@jest/globals';
import { Registry } from 'prom-client';

import { FakeClock } from '../../../../../test/fakes/fake-clock.ts';
import { runtimeMachine } from '../../../../../test/fakes/runtime-machine.ts';
import { MemoryClient, type NotedWrite } from '../../../../../test/memory-client.ts';
import type { IronCoreMachinePool } from '../../api/machine-pool.ts';
import type { RuntimeMachine } from '../../runtime/runtime.ts';
import { ironCoreMachinePools } from '../../api/resources.ts';
import { silentLogger } from '../../../../base/log/logger.ts';
import { ironCoreMetrics } from '../metrics.ts';
import { KeptMachines, type Kept } from './kept-machines.ts';

const { signal } = new AbortController();
const READY = { type: 'Ready', status: 'True', reason: 'r', message: 'm' } as const;

function poolWith(status: IronCoreMachinePool['status']): IronCoreMachinePool {
  const metadata = { name: 'p', uid: 'uid', resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' };
  return { metadata, ...(status !== undefined && { status }) };
}

function machine(name: string, poolUID = 'uid'): RuntimeMachine {
  const labels = {
    'downward-api.machinepoollet.ironcore.dev/machinepool-uid': poolUID,
    'machinepoollet.ironcore.dev/machine-namespace': 'ns',
    'machinepoollet.ironcore.dev/machine-name': name,
  };
  return runtimeMachine({ id: `id-${name}`, labels });
}

function world(status: IronCoreMachinePool['status'] = { conditions: [READY] }) {
  const client = new MemoryClient();
  const pool = poolWith(status);
  client.put(ironCoreMachinePools, pool);
  const events: string[] = [];
  const metrics = ironCoreMetrics(new Registry());
  const clock = new FakeClock();
  const poolRecorder = {
    event: (event: { reason: string; message: string }) => void events.push(`${event.reason}: ${event.message}`),
  };
  const kept = new KeptMachines({ writer: client, poolRecorder, metrics, clock, log: silentLogger });
  const tell = async (verdict: Partial<Kept>, release: Parameters<KeptMachines['report']>[2] = 'none') =>
    await kept.report(pool, { kept: [], why: undefined, former: [], ...verdict }, release, signal);
  const leave = async () => await kept.leave(pool, signal);
  return { client, events, metrics, tell, leave };
}

function statusIn(write: NotedWrite | undefined): IronCoreMachinePool['status'] {
  const body = write?.body as Pick<IronCoreMachinePool, 'status'> | undefined; // A patch of the status.
  return body?.status;
}

test('machines that are kept are named by a condition beside those of others, an Event and a gauge, with what releases them', async () => {
  const { client, events, metrics, tell } = world();

  await tell({ kept: [machine('a'), machine('b')], why: 'DeletionNotSeen' }, 'expired');

  const [write] = client.writes;
  expect(write).toMatchObject({ what: 'machinepools/p/status', resourceVersion: '1' });
  const conditions = statusIn(write)?.conditions ?? [];
  expect(conditions).toMatchObject([READY, { type: 'MachinesKept', status: 'True', reason: 'DeletionNotSeen' }]);
  expect(conditions[1]?.message).toContain('Kept (2): ns/a (id-a), ns/b (id-b). ');
  expect(conditions[1]?.message).toMatch(
    /value of the annotation is in the past.* kubectl annotate --overwrite machinepools.compute.ironcore.dev p safety/,
  );
  expect(events).toEqual([expect.stringMatching(/^MachinesKept: .*no deletion of it was observed.* annotate /)]);
  expect((await metrics.kept.get()).values).toEqual([{ labels: { pool: 'p' }, value: 2 }]);
});

test('ten are named, and the others counted', async () => {
  const { client, tell } = world();

  await tell({ kept: Array.from({ length: 12 }, (_, n) => machine(`m${n}`)), why: 'TooManyAtOnce' });

  expect(JSON.stringify(client.writes[0]?.body)).toMatch(/Kept \(12\): .*ns\/m7 \(id-m7\) and 2 more/);
});

test('nothing is written where none was ever kept, and the condition ends with the last one', async () => {
  const without = world();
  await without.tell({ kept: [], why: undefined });
  expect(without.client.writes).toEqual([]);

  const before = { type: 'MachinesKept', status: 'True', reason: 'DeletionNotSeen', message: 'm' } as const;
  const { client, events, metrics, tell } = world({ conditions: [before] });
  await tell({ kept: [], why: undefined }, 'given');

  expect(client.writes[0]?.body).toMatchObject({ status: { conditions: [{ status: 'False', reason: 'NoneKept' }] } });
  expect(events).toEqual([]);
  expect((await metrics.kept.get()).values).toEqual([{ labels: { pool: 'p' }, value: 0 }]);
});

test('what was told is not told again', async () => {
  const first = world();
  await first.tell({ kept: [machine('a'), machine('b')], why: 'DeletionNotSeen' });
  const status = statusIn(first.client.writes[0]);

  const { client, events, tell } = world(status);
  await tell({ kept: [machine('b'), machine('a')], why: 'DeletionNotSeen' });

  expect(client.writes).toEqual([]);
  expect(events).toEqual([]);
});

test('machines of a MachinePool that is not there are told, with how they are made those of this one', async () => {
  const { client, events, metrics, tell } = world();

  await tell({
    kept: [machine('a')],
    why: 'DeletionNotSeen',
    former: [machine('b', 'old'), machine('c', '$(reboot)')],
  });

  const condition = statusIn(client.writes[0])?.conditions?.at(-1);
  expect(condition).toMatchObject({ type: 'MachinesKept', status: 'True', reason: 'DeletionNotSeen' });
  expect(condition?.message).toContain('Kept (3): ns/a (id-a), ns/b (id-b), ns/c (id-c). ');
  const command =
    'kubectl annotate --overwrite machinepools.compute.ironcore.dev p machine.sapcloud.io/former-pool-uids=old. ';
  expect(condition?.message).toContain(command);
  expect(condition?.message).not.toContain('reboot');
  expect(events).toHaveLength(1);
  expect((await metrics.kept.get()).values).toEqual([{ labels: { pool: 'p' }, value: 3 }]);

  const alone = world();
  await alone.tell({ former: [machine('b', 'old')] });
  expect(statusIn(alone.client.writes[0])?.conditions?.at(-1)).toMatchObject({ status: 'True', reason: 'FormerPool' });
});

test('the condition is not True any more when the pool is not served here', async () => {
  const before = { type: 'MachinesKept', status: 'True', reason: 'DeletionNotSeen', message: 'Kept' } as const;
  const { client, leave } = world({ conditions: [READY, before] });

  await leave();

  expect(statusIn(client.writes[0])?.conditions).toMatchObject([
    READY,
    { type: 'MachinesKept', status: 'Unknown', reason: 'NotServed' },
  ]);
  const without = world();
  await without.leave();
  expect(without.client.writes).toEqual([]);
});
