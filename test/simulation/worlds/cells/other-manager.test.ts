import { expect, jest, test } from '@jest/globals';

import type { Event } from '../../../../pkg/apis/wire.ts';
import { toMicroTimestamp } from '../../../../pkg/base/clock/clock.ts';
import { MACHINE_LEASE } from '../../../../pkg/kube/leader/names.ts';
import { MachinesWorld } from '../../world/machines-world.ts';
import { Cell } from './cell.ts';
import { withCells } from './cells-world.ts';

// Seconds of the processor, which a busy host takes long to give: a life is bounded by its own time.
jest.setTimeout(300_000);

const SHARDS = 3;
const SECOND_MS = 1_000;
const RENEWAL_MS = 2_000;
const MOST_MS = 600 * SECOND_MS;

/** A cell, and one in whose namespace somebody else leads. */
async function scene({ areNamed, flags = {} }: { areNamed: boolean; flags?: Readonly<Record<string, string>> }) {
  const plan = { names: ['cell-1', 'cell-2'], shards: SHARDS, managers: 1, areNamed };
  const world = await MachinesWorld.create(withCells({ seed: 1, flags }, plan));
  const [alone, led] = [
    await Cell.create(world, 'cell-1', SHARDS, { replicas: 1 }),
    await Cell.create(world, 'cell-2', SHARDS, { replicas: 1 }),
  ];
  for (const cell of [alone, led]) cell.setRight();
  const { time } = world;
  let renewals = 0;
  /** As a leader does whose clock is years behind. */
  const renew = (namespace = 'cell-2'): void => {
    const path = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;
    renewals += 1;
    const renewTime = toMicroTimestamp(renewals * SECOND_MS);
    const spec = { holderIdentity: 'machine-controller-0', leaseDurationSeconds: 15, renewTime };
    if (renewals === 1) world.act('POST', path, { metadata: { name: MACHINE_LEASE }, spec });
    else world.act('PATCH', `${path}/${MACHINE_LEASE}`, { spec });
  };
  const until = async (isSo: () => boolean, meanwhile: () => unknown = () => undefined): Promise<void> => {
    for (let ms = 0; ms < MOST_MS && !isSo(); ms += RENEWAL_MS) {
      meanwhile();
      await time.advance(RENEWAL_MS);
    }
    expect(isSo()).toBe(true);
  };
  return { world, alone, led, renew, until };
}

test.each([
  { how: 'selected', areNamed: false },
  { how: 'named', areNamed: true },
])(
  'a namespace that is $how while its own manager runs is managed when that has ended, and no longer when that is started again',
  async ({ areNamed }) => {
    const { world, alone, led, renew, until } = await scene({ areNamed });
    await using _world = world;
    renew();
    const { cells } = await world.processes.start();
    const runs = (): boolean => cells?.running.has('cell-2') ?? false;

    await until(() => cells?.refused.get('cell-2')?.startsWith('Another manager') ?? false, renew);
    await until(() => alone.isAsAsked, renew);
    expect(runs()).toBe(false);
    expect(led.world.cloud.size).toBe(0);
    await until(() => runs() && led.isAsAsked);
    expect(cells?.refused).toEqual(new Map());

    await until(() => !runs(), renew);
    led.world.changePool({ spec: { replicas: 2 } });
    for (let i = 0; i < 100; i++) {
      renew();
      await world.time.advance(RENEWAL_MS);
    }
    expect(cells?.refused.get('cell-2')).toMatch(/^Another manager is running .*machine-controller-0/);
    expect(cells?.running.has('cell-1')).toBe(true);
    expect(led.world.cloud.size).toBe(1);
    await until(() => runs() && led.isAsAsked);

    expect(led.world.cloud.size).toBe(2);
    expect(told(world)).toEqual([
      expect.stringMatching(/held by machine-controller-0, and renewed\. Stop it, .* The Machines are left to it\.$/),
    ]);
  },
);

test('a replica that gets a cell back does not go by what it saw before it gave that away', async () => {
  const { world, renew, until } = await scene({ areNamed: false, flags: { 'leader-elect': 'true' } });
  await using _world = world;
  const { time, processes } = world;
  const former = await processes.start();
  const runs = (name: string): boolean => former.cells?.running.has(name) ?? false;
  await until(() => runs('cell-1') && runs('cell-2'));
  const next = await processes.start();
  const given = (): string | undefined => ['cell-1', 'cell-2'].find((name) => !runs(name));
  await until(() => given() !== undefined);
  const name = given() ?? '';

  next.terminate();
  const ranMs: number[] = [];
  for (let ms = 0; ms < 120 * SECOND_MS; ms += RENEWAL_MS) {
    renew(name);
    await time.advance(RENEWAL_MS);
    if (runs(name)) ranMs.push(ms);
  }

  expect(former.cells?.refused.get(name)).toMatch(/^Another manager is running/);
  expect(ranMs).toEqual([]);
});

function told({ servers }: MachinesWorld): readonly string[] {
  const answer = servers.control.handle({ method: 'GET', path: '/api/v1/namespaces/cell-2/events' });
  const { items } = ('body' in answer ? answer.body : { items: [] }) as { items: readonly Event[] };
  return items.flatMap(({ reason, message = '' }) => (reason === 'ManagedByAnother' ? [message] : []));
}
