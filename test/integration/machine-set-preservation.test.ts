import { expect, test } from '@jest/globals';

import { PRESERVE_ANNOTATION } from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import { toTimestamp } from '../../pkg/base/clock/clock.ts';
import { statusPatch } from '../../pkg/kube/client/patch.ts';
import { machines, machineSets } from '../../pkg/kube/client/resource.ts';
import { eventually } from '../expect/eventually.ts';
import { MachineSetWorld } from './machine-set-world.ts';

const PATIENCE = { timeoutMs: 120_000 };
const FAILURE = { type: 'HealthCheck', state: 'Failed' } as const;

const valueOf = ({ metadata }: Machine): string | undefined => metadata.annotations?.[PRESERVE_ANNOTATION];

test('a set keeps as many failed machines as it may, and replaces each when its time is over', async () => {
  await using world = await MachineSetWorld.start();
  const set = await world.createSet(3, ({ spec }) => {
    spec.autoPreserveFailedMachineMax = 1;
  });
  await eventually(() => expect(world.running()).toHaveLength(3), PATIENCE);
  const names = world.running().map(({ metadata }) => metadata.name);
  const [first = '', second = '', third = ''] = names;
  const find = (name: string): Machine | undefined =>
    world.machines.list().find(({ metadata }) => metadata.name === name);

  await world.setPhase(first, 'Failed', FAILURE);
  await eventually(() => expect(valueOf(find(first) as Machine)).toBe('auto-preserved'), PATIENCE);
  await world.setPhase(second, 'Failed', FAILURE);
  await eventually(() => {
    expect(find(second)).toBeUndefined();
    expect(world.running()).toHaveLength(2);
  }, PATIENCE);
  expect(world.running().map(({ metadata }) => metadata.name)).toContain(third);
  await eventually(async () => {
    expect((await world.get(machineSets, set.metadata.name)).status).toMatchObject({
      replicas: 3,
      autoPreserveFailedMachineCount: 1,
    });
  }, PATIENCE);

  // What the machine controller writes when it preserves.
  const expiry = toTimestamp(world.user.clock.now() + 4_000);
  await eventually(async () => {
    const kept = await world.get(machines, first);
    const change = { currentStatus: { phase: 'Failed' as const, preserveExpiryTime: expiry } };
    const ref = { namespace: world.namespace.name, name: first };
    await world.user.writer.patch('change', machines, ref, statusPatch(kept, change));
    return true;
  }, PATIENCE);
  await eventually(() => {
    expect(find(first)).toBeUndefined();
    expect(world.running()).toHaveLength(3);
  }, PATIENCE);
  expect(world.machines.list().map(valueOf)).toEqual([undefined, undefined, undefined]);
});
