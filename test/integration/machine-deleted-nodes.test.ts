import { expect, test } from '@jest/globals';

import { isBeingDeleted } from '../../pkg/apis/meta.ts';
import { events, nodes } from '../../pkg/kube/client/resource.ts';
import { eventually } from '../expect/eventually.ts';
import { MachineWorld } from './machine-world.ts';

const PATIENCE = { timeoutMs: 60_000 };

test('Nodes of a zone that are deleted while they are not ready keep their Machines until they are ready again', async () => {
  await using world = await MachineWorld.open();
  const names = [await world.create(), await world.create(), await world.create()];
  for (const name of names) await world.settled(name);
  const each = async (what: (name: string) => Promise<unknown>): Promise<void> => {
    await Promise.all(names.map(what));
  };
  await each(async (name) => await world.cloud.nodes?.setReadiness(name, 'unknown'));
  await each(async (name) => await world.inPhase(name, 'Unknown'));

  // As a cloud controller manager does that finds none of their VMs.
  await each(async (name) => {
    const { uid } = (await world.user.reader.get(nodes, { name })).metadata;
    await world.user.writer.delete('destroy', nodes, { name }, { uid });
  });
  await eventually(async () => {
    const { items } = await world.user.reader.list(events, { namespace: world.namespace });
    const told = items.filter(({ message = '' }) => message.includes('was deleted while it was not ready'));
    expect(new Set(told.map(({ involvedObject }) => involvedObject.name))).toEqual(new Set(names));
  }, PATIENCE);
  const kept = await Promise.all(names.map((name) => world.read(name)));

  expect(kept.map(isBeingDeleted)).toEqual([false, false, false]);
  expect(kept.map(({ status }) => status?.lastOperation?.errorCode)).toEqual(Array(3).fill('ZoneUnhealthy'));

  await each(async (name) => await world.cloud.nodes?.setReadiness(name, 'ready'));
  await each(async (name) => await world.gone(name));
});
