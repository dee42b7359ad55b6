import { expect, test } from '@jest/globals';

import { API_VERSION } from '../../pkg/apis/machine/v1alpha1/group.ts';
import { isBeingDeleted } from '../../pkg/apis/meta.ts';
import type { Node } from '../../pkg/apis/wire.ts';
import { mergePatch } from '../../pkg/kube/client/patch.ts';
import { events, machineSets, nodes } from '../../pkg/kube/client/resource.ts';
import { forCreation, machineSet } from '../builders.ts';
import { eventually } from '../expect/eventually.ts';
import { MachineWorld } from './machine-world.ts';

const PATIENCE = { timeoutMs: 120_000 };

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

test('Machines of which no Node is in the target cluster are kept past their health timeout, until a Node of one of them is there', async () => {
  const flags = { 'machine-health-timeout': '1s', 'machine-safety-grace': '0s' };
  await using world = await MachineWorld.open({ flags });
  const names = [await world.create(), await world.create()] as const;
  for (const name of names) await world.settled(name);
  const read = (name: string): Promise<Node> => world.user.reader.get(nodes, { name });
  const was = await Promise.all([read(names[0]), read(names[1])]);

  // As a process sees it that was given the kubeconfig of another cluster.
  await world.restart(async () => {
    for (const seen of was) {
      const { name, uid } = seen.metadata;
      await world.user.writer.patch('change', nodes, { name }, mergePatch(seen, { metadata: { finalizers: null } }));
      await world.user.writer.delete('destroy', nodes, { name }, { uid });
    }
  });
  await eventually(async () => {
    const held = await Promise.all(names.map((name) => world.read(name)));
    expect(held.map(({ status }) => status?.lastOperation?.errorCode)).toEqual(['NoNodesInTarget', 'NoNodesInTarget']);
  }, PATIENCE);

  await world.user.writer.create('create', nodes, forCreation(was[0]));
  await world.cloud.nodes?.setReadiness(names[0], 'ready');

  await world.inPhase(names[0], 'Running');
  await world.inPhase(names[1], 'Failed');
});
