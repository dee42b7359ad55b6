import { expect, test } from '@jest/globals';

import { API_VERSION } from '../../pkg/apis/machine/v1alpha1/group.ts';
import { isBeingDeleted } from '../../pkg/apis/meta.ts';
import { events, machineSets, nodes } from '../../pkg/kube/client/resource.ts';
import { forCreation, machineSet } from '../builders.ts';
import { eventually } from '../expect/eventually.ts';
import { MachineWorld } from './machine-world.ts';

const PATIENCE = { timeoutMs: 60_000 };

test('Nodes of a zone that are deleted while they are not ready keep their Machines, and take them along one by one when they are ready again', async () => {
  await using world = await MachineWorld.open();
  // Nobody runs it.
  const built = forCreation(machineSet((one) => void (one.metadata.namespace = world.namespace)));
  const { metadata: set } = await world.user.writer.create('create', machineSets, built);
  const owner = { apiVersion: API_VERSION, kind: 'MachineSet', name: set.name, uid: set.uid, controller: true };
  const create = (): Promise<string> => world.create((m) => void (m.metadata.ownerReferences = [owner]));
  const names = [await create(), await create(), await create()];
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
  const toldOf = async (why: string): Promise<string[]> => {
    const { items } = await world.user.reader.list(events, { namespace: world.namespace });
    const told = items.filter(
      ({ message = '' }) => /was deleted while it was not ready/.test(message) && message.includes(why),
    );
    return [...new Set(told.map(({ involvedObject }) => involvedObject.name ?? ''))];
  };
  await eventually(
    async () => expect((await toldOf('became unhealthy at once')).toSorted()).toEqual(names.toSorted()),
    PATIENCE,
  );
  const kept = await Promise.all(names.map((name) => world.read(name)));

  expect(kept.map(isBeingDeleted)).toEqual([false, false, false]);
  expect(kept.map(({ status }) => status?.lastOperation?.errorCode)).toEqual(Array(3).fill('ZoneUnhealthy'));

  await each(async (name) => await world.cloud.nodes?.setReadiness(name, 'ready'));
  const waiting = await eventually(async () => {
    const told = await toldOf('several machines are unhealthy');
    expect(told).toHaveLength(2);
    return told;
  }, PATIENCE);
  const gone = names.find((name) => !waiting.includes(name)) ?? '';
  await world.gone(gone);

  const running = await Promise.all(waiting.map((name) => world.inPhase(name, 'Running')));
  expect(running.map(isBeingDeleted)).toEqual([false, false]);
});
