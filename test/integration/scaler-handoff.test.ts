import { expect, test } from '@jest/globals';

import {
  LAST_SCALER_CHANGE_ANNOTATION,
  MARKED_FOR_DELETION_TIME_ANNOTATION,
  PRIORITY_ANNOTATION,
  TRIGGER_DELETION_ANNOTATION,
} from '../../pkg/apis/machine/v1alpha1/labels.ts';
import { machineDeployments, machines, machineSets } from '../../pkg/kube/client/resource.ts';
import { eventually } from '../expect/eventually.ts';
import { MachineSetWorld } from './machine-set-world.ts';

const PATIENCE = { timeoutMs: 90_000 };
const EARLIER = '2026-01-01T00:00:00Z';
const NOW = '2026-01-02T00:00:00Z';

const names = (world: MachineSetWorld): string[] =>
  world
    .running()
    .map(({ metadata }) => metadata.name)
    .toSorted();

/** Waits until `replicas` Machines run and none is going. */
async function settled(world: MachineSetWorld, replicas: number): Promise<string[]> {
  await eventually(() => {
    expect(world.running()).toHaveLength(replicas);
    expect(world.machines.list()).toHaveLength(replicas);
  }, PATIENCE);
  return names(world);
}

/** What the autoscaler does: both in one update. */
function scaleDown(world: MachineSetWorld, replicas: number, list: string, time: string | null): Promise<unknown> {
  return world.patch(machineDeployments, 'd', {
    metadata: { annotations: { [TRIGGER_DELETION_ANNOTATION]: list, [LAST_SCALER_CHANGE_ANNOTATION]: time } },
    spec: { replicas },
  });
}

test('whatever write a manager dies at, the chosen machine goes, once, and no other (MCM 539, MCM 1068, MCM 1069)', async () => {
  await using world = await MachineSetWorld.start();
  await world.createDeployment(4);
  await settled(world, 4);
  for (let n = 1; n <= 6; n++) {
    await world.killManager();
    await world.startManager();
    await world.patch(machineDeployments, 'd', { spec: { replicas: 4 } });
    const before = await settled(world, 4);
    await world.killManager();
    // Of the same second as the change before; by a bare name; with marks that were left over; beside a person's.
    const chosen = before[n % before.length] ?? '';
    const leftOver = n % 3 === 0 ? { [MARKED_FOR_DELETION_TIME_ANNOTATION]: EARLIER } : {};
    await world.patch(machines, chosen, { metadata: { annotations: leftOver } });
    await scaleDown(world, 3, n % 2 === 0 ? chosen : `${chosen}~${NOW}`, NOW);

    const dying = await world.startMortalManager(n);
    await eventually(() => dying.writes > n || world.machines.list().length === 3, PATIENCE);
    await world.killManager();
    await world.startManager();

    expect(await settled(world, 3)).toEqual(before.filter((name) => name !== chosen));
  }
  expect(Math.max(...world.moments.map(({ existing }) => existing))).toBe(4);
});

test('a chosen machine of an old set goes from that set, beside a person’s choice that does not', async () => {
  await using world = await MachineSetWorld.start({ comesUp: ({ spec }) => spec.class?.name === 'c' });
  await world.createDeployment(4);
  const before = await settled(world, 4);
  await world.patch(machineDeployments, 'd', {
    spec: { template: { spec: { class: { kind: 'MachineClass', name: 'c2' } } } },
  });
  await eventually(() => expect(world.machines.list()).toHaveLength(5), PATIENCE);
  const [chosen = '', byHand = '', ...others] = before;
  await world.patch(machines, byHand, { metadata: { annotations: { [PRIORITY_ANNOTATION]: '2' } } });
  await scaleDown(world, 3, `${chosen}~${NOW}`, NOW);

  await eventually(() => {
    expect(names(world)).toEqual([byHand, ...others].toSorted());
    expect(world.machines.list()).toHaveLength(4);
  }, PATIENCE);
  const sizes = (await world.list(machineSets)).map(
    ({ spec }) => [spec.template?.spec?.class?.name ?? '', spec.replicas ?? 0] as const,
  );
  expect(Object.fromEntries(sizes)).toEqual({ c: 3, c2: 1 });
});

test('a chosen machine goes also when somebody raises the replicas again at once: another one takes its place (MCM 971, MCM 1078, MCM 1084, MCM 1085)', async () => {
  await using world = await MachineSetWorld.start();
  await world.createDeployment(3);
  const before = await settled(world, 3);
  const [chosen = ''] = before;
  await world.killManager();
  await scaleDown(world, 2, `${chosen}~${NOW}`, NOW);
  await world.patch(machineDeployments, 'd', { spec: { replicas: 3 } });
  await world.startManager();

  await eventually(() => expect(names(world)).not.toContain(chosen), PATIENCE);
  const after = await settled(world, 3);
  expect(after.filter((name) => before.includes(name))).toEqual(before.filter((name) => name !== chosen));
});

test('two choices of the same second both go, and cost no machine', async () => {
  await using world = await MachineSetWorld.start();
  await world.createDeployment(4);
  const before = await settled(world, 4);
  const [first = '', second = ''] = before;
  await scaleDown(world, 3, `${first}~${NOW}`, NOW);
  await settled(world, 3);
  await scaleDown(world, 2, `${second}~${NOW}`, NOW);

  expect(await settled(world, 2)).toEqual(before.slice(2));
  expect(world.succeeded('create', 'machines')).toBe(4);
  expect(world.succeeded('delete', 'machines')).toBe(2);
});

test('marks of an old fork order the victims and delete nothing by themselves', async () => {
  await using world = await MachineSetWorld.start();
  await world.createDeployment(3);
  const before = await settled(world, 3);
  const [, marked = ''] = before;
  await world.patch(machines, marked, { metadata: { annotations: { [PRIORITY_ANNOTATION]: '1' } } });
  await world.patch(machineDeployments, 'd', { metadata: { annotations: { note: 'looked at' } } });
  await eventually(async () => {
    const [set] = await world.list(machineSets);
    expect(set?.metadata.annotations?.['note']).toBe('looked at');
  }, PATIENCE);
  expect(await settled(world, 3)).toEqual(before);

  await world.patch(machineDeployments, 'd', { spec: { replicas: 2 } });
  expect(await settled(world, 2)).toEqual(before.filter((name) => name !== marked));
});
