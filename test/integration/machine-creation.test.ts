import { setTimeout } from 'node:timers/promises';

import { describe, expect, test } from '@jest/globals';

import { mergePatch } from '../../pkg/kube/patch.ts';
import { events, machineClasses, nodes } from '../../pkg/kube/resource.ts';
import { forCreation, node } from '../builders.ts';
import { eventually } from '../expect/eventually.ts';
import { MachineWorld } from './machine-world.ts';

const SENT_AT = 'machine.sapcloud.io/creation-sent-at';
const GPU = 'example.com/virtual-gpu';
const CAPACITY_RECORD = 'node.machine.sapcloud.io/last-applied-virtual-capacity';

describe('a creation whose answer was lost with the process', () => {
  test('is not repeated by the next one, at a driver that could make a second VM, and its VM is found', async () => {
    await using world = await MachineWorld.open({ idempotentCreate: false });
    const { driver, faults, cloud } = world.cloud;
    // The VM is made at once, nobody is told, and the provider is slow to show it.
    faults.set([
      { method: 'CreateMachine', effect: 'late', delayMs: 60_000, times: 1 },
      { method: 'GetMachineStatus', effect: 'stale', delayMs: 10_000 },
    ]);
    const name = await world.create();
    await eventually(() => cloud.all().length === 1);
    expect((await world.read(name)).metadata.annotations?.[SENT_AT]).toMatch(/^\d{4}-.*Z$/);
    const asked = driver.calls['GetMachineStatus'] ?? 0;

    await world.restart();
    await eventually(() => (driver.calls['GetMachineStatus'] ?? 0) > asked, { timeoutMs: 20_000 });
    const running = await eventually(
      async () => {
        const seen = await world.read(name);
        if (seen.status?.currentStatus?.phase !== 'Running') throw new Error('not Running yet');
        return seen;
      },
      { timeoutMs: 60_000, describe: 'the machine to run' },
    );

    expect(driver.calls['CreateMachine']).toBe(1);
    expect(cloud.all()).toHaveLength(1);
    expect(running.metadata.annotations ?? {}).not.toHaveProperty(SENT_AT);
  });
});

describe('the Node of a machine', () => {
  test('has the virtual capacity of its class, for as long as the class has it', async () => {
    await using world = await MachineWorld.open();
    const name = await world.create();
    await world.inPhase(name, 'Running');
    const ref = { namespace: world.namespace, name: 'class-1' };
    const setCapacity = async (quantity: string | null): Promise<void> => {
      const made = await world.user.reader.get(machineClasses, ref);
      const change = { nodeTemplate: { virtualCapacity: { [GPU]: quantity } } };
      await world.user.writer.patch('change', machineClasses, ref, mergePatch(made, change));
    };
    const shown = async (): Promise<unknown[]> => {
      const { status, metadata } = await world.user.reader.get(nodes, { name });
      return [status?.capacity?.[GPU], metadata.annotations?.[CAPACITY_RECORD]];
    };

    await setCapacity('2');
    await eventually(async () => JSON.stringify(await shown()) === JSON.stringify(['2', `{"${GPU}":"2"}`]), {
      timeoutMs: 20_000,
      describe: 'two virtual GPUs',
    });
    await setCapacity(null);
    await eventually(async () => (await shown()).every((one) => one === undefined), {
      timeoutMs: 20_000,
      describe: 'no virtual GPU',
    });
  });

  test('that is deleted the moment it registers takes its machine along', async () => {
    await using world = await MachineWorld.open();
    // The kubelet never comes; somebody registers the Node and deletes it before, while or after it gets our finalizer.
    world.cloud.driver.settings = {
      ...world.cloud.driver.settings,
      latencyMs: { ...world.cloud.driver.settings.latencyMs, join: 3_600_000 },
    };
    const names = await Promise.all(Array.from({ length: 20 }, () => world.create()));
    await Promise.all(
      names.map(async (name, i) => {
        const { spec } = await world.inPhase(name, 'Pending');
        const registered = forCreation(
          node((n) => {
            n.metadata.name = name;
            n.spec = { providerID: spec.providerID ?? '' };
          }),
        );
        const { metadata } = await world.user.writer.create('create', nodes, registered);
        await setTimeout(i);
        await world.user.writer.delete('destroy', nodes, { name }, { uid: metadata.uid });
      }),
    );

    await Promise.all(names.map((name) => world.gone(name)));

    const left = (await world.user.reader.list(nodes, {})).items.filter(({ metadata }) =>
      names.includes(metadata.name),
    );
    expect(left).toEqual([]);
    expect(world.cloud.cloud.all()).toEqual([]);
  });
});

describe('a machine without its class', () => {
  test('shows a phase and says why, and is made when the class comes', async () => {
    await using world = await MachineWorld.open();
    const name = await world.create((m) => {
      m.spec = { class: { kind: 'MachineClass', name: 'missing' } };
    });

    const { status, metadata } = await world.inPhase(name, 'CrashLoopBackOff');

    const problem = `No VM was asked for: MachineClass ${world.namespace}/missing not found: create it.`;
    expect(status?.lastOperation).toMatchObject({ type: 'Create', state: 'Failed', description: problem });
    expect(status?.machineConditions?.map(({ type, reason, message }) => [type, reason, message])).toEqual([
      ['VMCreated', 'CannotCreate', problem],
      ['NodeJoined', 'NoVM', 'There is no VM yet.'],
      ['Healthy', 'NoVM', 'There is no VM yet.'],
    ]);
    await eventually(async () => {
      const { items } = await world.user.reader.list(events, { namespace: world.namespace });
      return items.some(
        ({ involvedObject, reason }) => involvedObject.uid === metadata.uid && reason === 'InvalidClass',
      );
    });
    expect(world.cloud.driver.calls).toEqual({});
  });
});
