import { setTimeout } from 'node:timers/promises';

import { describe, expect, test } from '@jest/globals';

import type { NodeTemplateSpec } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import { mergePatch } from '../../pkg/kube/client/patch.ts';
import { events, machineClasses, machines, nodes } from '../../pkg/kube/client/resource.ts';
import { forCreation, node } from '../builders.ts';
import { eventually } from '../expect/eventually.ts';
import { connect } from '../env/environment.ts';
import { refuse } from '../env/refusal.ts';
import { MachineWorld } from './machine-world.ts';

const SENT_AT = 'machine.sapcloud.io/creation-sent-at';
const MACHINE_NAME = 'node.gardener.cloud/machine-name';
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
    await eventually(() => (driver.calls['GetMachineStatus'] ?? 0) > asked, { timeoutMs: 120_000 });
    const running = await eventually(
      async () => {
        const seen = await world.read(name);
        if (seen.status?.currentStatus?.phase !== 'Running') throw new Error('not Running yet');
        return seen;
      },
      { timeoutMs: 120_000, describe: 'the machine to run' },
    );

    expect(driver.calls['CreateMachine']).toBe(1);
    expect(cloud.all()).toHaveLength(1);
    expect(running.metadata.annotations ?? {}).not.toHaveProperty([SENT_AT]);
  });
});

test('each call about a machine waits for its turn where a rate is set', async () => {
  await using world = await MachineWorld.open({ flags: { 'driver-qps': 'sim=20' } });
  await world.settled(await world.create());
  const { calls } = world.cloud.driver;
  const called = Object.values(calls).reduce((sum, times) => sum + times, 0);

  const metrics = await (await fetch(`${world.session.url}/metrics`)).text();

  expect(calls).toMatchObject({ GetMachineStatus: 1, CreateMachine: 1, InitializeMachine: 1 });
  expect(metrics).toContain(`machinist_driver_throttle_wait_seconds_count{provider="sim"} ${called}\n`);
});

describe('a class that is deleted with its machines before it was protected', () => {
  test('keeps none of them: no VM was asked for', async () => {
    await using world = await MachineWorld.open();
    const ref = { namespace: world.namespace, name: 'class-1' };
    const young = forCreation({ ...(await world.user.reader.get(machineClasses, ref)) });
    Object.assign(young, { metadata: { ...ref, name: 'young' } });
    const { metadata } = await world.user.writer.create('create', machineClasses, young);
    const name = await world.create((m) => {
      m.spec.class = { kind: 'MachineClass', name: 'young' };
    });

    await world.user.writer.delete('destroy', machineClasses, metadata, { uid: metadata.uid });
    await world.delete(name);
    await world.gone(name);

    expect(world.cloud.driver.calls).not.toHaveProperty(['CreateMachine']);
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
      timeoutMs: 120_000,
      describe: 'two virtual GPUs',
    });
    await setCapacity(null);
    await eventually(async () => (await shown()).every((one) => one === undefined), {
      timeoutMs: 120_000,
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
        const built = node((n) => {
          n.metadata.name = name;
          n.spec = { providerID: spec.providerID ?? '' };
        });
        // Ready: one that is not may have been deleted by somebody who does not see its VM.
        const registered = { ...forCreation(built), status: built.status };
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

describe('a VM that the API server refuses to record', () => {
  /** Its creation timeout is over from now on: what it shows before that stays until then, however late it is looked at. */
  async function endCreation(world: MachineWorld, name: string): Promise<void> {
    const patch = mergePatch(await world.read(name), { spec: { creationTimeout: '1s' } });
    await world.user.writer.patch('change', machines, { namespace: world.namespace, name }, patch);
  }

  test('is told of, fails by creation timeout, and goes with its machine', async () => {
    await using world = await MachineWorld.open({ connection: connect() });
    const probe = await world.create((m) => {
      m.spec.class = { kind: 'MachineClass', name: 'missing' };
    });
    await using _refusal = await refuse({
      resource: 'machines',
      group: 'machine.sapcloud.io',
      version: 'v1alpha1',
      operations: ['UPDATE'],
      concerns: `object.metadata.namespace == '${world.namespace}'`,
      unless: "!('node' in object.metadata.?labels.orValue({}))",
      message: 'no VMs today',
      probe: {
        method: 'PATCH',
        path: `/apis/machine.sapcloud.io/v1alpha1/namespaces/${world.namespace}/machines/${probe}`,
        body: { metadata: { labels: { node: 'a' } } },
      },
    });
    await world.delete(probe);
    await world.gone(probe);
    const name = await world.create();

    const told = await world.inPhase(name, 'CrashLoopBackOff');
    const text = /^The API server refuses to record VM sim:.* with Node name .*no VMs today$/;
    expect(told.status?.lastOperation?.description).toMatch(text);
    expect(told.status?.machineConditions?.[0]).toMatchObject({ type: 'VMCreated', reason: 'RecordRefused' });
    await eventually(async () => {
      const { items } = await world.user.reader.list(events, { namespace: world.namespace });
      return items.some(({ involvedObject, reason }) => involvedObject.name === name && reason === 'RecordRefused');
    });
    await endCreation(world, name);
    const failed = await world.inPhase(name, 'Failed');
    expect(failed.status?.lastOperation?.description).toMatch(text);

    await world.delete(name);
    await world.gone(name);
    expect(world.cloud.cloud.all()).toEqual([]);
    expect(world.cloud.driver.calls['CreateMachine']).toBe(1);
  });

  test('because of its name is told of in the same way', async () => {
    await using world = await MachineWorld.open();
    const name = await world.create((m) => {
      m.metadata.name = `${m.metadata.name}-${'x'.repeat(60)}`;
    });

    const told = await world.inPhase(name, 'CrashLoopBackOff');
    expect(told.status?.lastOperation?.description).toMatch(/^The API server refuses to record .*no more than 63/);
    await endCreation(world, name);
    await world.inPhase(name, 'Failed');

    await world.delete(name);
    await world.gone(name);
    expect(world.cloud.cloud.all()).toEqual([]);
  });
});

describe('a Node of which the API server refuses a part', () => {
  const REFUSED = 'machine.sapcloud.io/node-sync-refused';
  const template = (labels: Readonly<Record<string, string>>): NodeTemplateSpec => ({
    metadata: { labels, annotations: { good: 'yes' } },
    spec: { taints: [{ key: 'good', value: 'yes', effect: 'NoSchedule' }] },
  });

  test('gets the rest, our finalizer first; its machine runs and says what is refused, until that is corrected', async () => {
    await using world = await MachineWorld.open();
    const name = await world.create((m) => {
      m.spec.nodeTemplate = template({ good: 'yes', bad: 'not possible', 'also/good': 'yes' });
    });

    await world.inPhase(name, 'Running');
    const told = await eventually(
      async () => {
        const machine = await world.read(name);
        expect(machine.metadata.annotations?.[REFUSED]).toMatch(/^label bad \(metadata.labels: .*\)$/);
        expect(machine.status?.machineConditions?.map(({ type }) => type)).toContain('NodeSyncRefused');
        return machine;
      },
      { timeoutMs: 120_000 },
    );
    const { metadata, spec } = await world.user.reader.get(nodes, { name });
    expect(metadata.finalizers).toContain('node.machine.sapcloud.io/machine-controller');
    expect(metadata.labels).toMatchObject({ good: 'yes', 'also/good': 'yes', [MACHINE_NAME]: name });
    expect(metadata.labels).not.toHaveProperty('bad');
    expect(metadata.annotations).toMatchObject({ good: 'yes' });
    expect(spec?.taints?.map(({ key }) => key)).toContain('good');
    const patches = world.session.count('patch', 'nodes');

    const ref = { namespace: world.namespace, name };
    const corrected = { spec: { nodeTemplate: template({ good: 'yes', bad: 'possible', 'also/good': 'yes' }) } };
    await world.user.writer.patch('change', machines, ref, mergePatch(told, corrected));
    await eventually(
      async () => {
        expect((await world.user.reader.get(nodes, { name })).metadata.labels?.['bad']).toBe('possible');
        const { metadata: after, status } = await world.read(name);
        expect(after.annotations).not.toHaveProperty([REFUSED]);
        expect(status?.machineConditions?.map(({ type }) => type)).not.toContain('NodeSyncRefused');
      },
      { timeoutMs: 120_000 },
    );
    // Once whole, then found by halves, our marks first; and one for the correction.
    expect(patches).toBeLessThanOrEqual(14);
    expect(world.session.count('patch', 'nodes')).toBeLessThanOrEqual(patches + 1);
  });

  test('does not keep its machine out of Pending, whatever is refused', async () => {
    await using world = await MachineWorld.open({ connection: connect() });
    const probe = `${world.prefix}probe`;
    const registered = await world.user.writer.create(
      'create',
      nodes,
      forCreation(node((n) => void (n.metadata.name = probe))),
    );
    await using _refusal = await refuse({
      resource: 'nodes',
      operations: ['UPDATE'],
      concerns: `object.metadata.name.startsWith('${world.prefix}')`,
      unless: '!has(object.metadata.finalizers)',
      message: 'no finalizers on Nodes',
      probe: { method: 'PATCH', path: `/api/v1/nodes/${probe}`, body: { metadata: { finalizers: ['example.com/a'] } } },
    });
    await world.user.writer.delete('destroy', nodes, { name: probe }, { uid: registered.metadata.uid });
    const name = await world.create((m) => {
      m.spec.nodeTemplate = template({ good: 'yes' });
    });

    const running = await world.inPhase(name, 'Running');
    await eventually(
      async () => {
        const { metadata } = await world.read(name);
        expect(metadata.annotations?.[REFUSED]).toMatch(/^finalizer \(.*no finalizers on Nodes/);
        expect((await world.user.reader.get(nodes, { name })).metadata.labels).toMatchObject({ good: 'yes' });
      },
      { timeoutMs: 120_000 },
    );
    expect(running.metadata.name).toBe(name);
  });
});

describe('a machine without its class', () => {
  test("of a kind that the original's old manifests name is told how to name it, whether there is such a MachineClass or not", async () => {
    await using world = await MachineWorld.open();
    const ref = { namespace: world.namespace, name: 'class-1' };
    const made = await world.user.reader.get(machineClasses, ref);
    await world.user.writer.patch('change', machineClasses, ref, mergePatch(made, { metadata: { finalizers: [] } }));
    for (const name of ['class-1', 'missing']) {
      const machine = await world.create((m) => {
        m.spec = { class: { kind: 'AWSMachineClass', name } };
      });

      const { status } = await world.inPhase(machine, 'CrashLoopBackOff');

      expect(status?.lastOperation?.description).toMatch(
        /^No VM was asked for: .* kind "AWSMachineClass", .*: set spec.template.spec.class.kind .* to MachineClass/,
      );
    }
    expect(world.cloud.driver.calls).toEqual({});
  });

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
