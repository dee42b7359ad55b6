import { describe, expect, test } from '@jest/globals';

import {
  LAST_APPLIED_NODE_PRESERVE_ANNOTATION,
  MACHINE_FINALIZER,
  NODE_LABEL,
  PRESERVE_ANNOTATION,
} from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import type { Event } from '../../pkg/apis/wire.ts';
import { mergePatch, strategicPatch } from '../../pkg/kube/client/patch.ts';
import { events, machines, nodes } from '../../pkg/kube/client/resource.ts';
import { connect } from '../env/environment.ts';
import { refuse, type RefusalOptions } from '../env/refusal.ts';
import { eventually } from '../expect/eventually.ts';
import { MachineWorld } from './machine-world.ts';

const PATIENCE = { timeoutMs: 120_000 };
const NO = 'refused by a test';

/** Refuses changes of one Machine unless `unless` holds; `probe` is a change that it refuses. */
function refuseMachine(
  world: MachineWorld,
  name: string,
  { unless, probe, subresource = '' }: { unless: string; probe: unknown; subresource?: string },
): Promise<AsyncDisposable> {
  const path = `/apis/machine.sapcloud.io/v1alpha1/namespaces/${world.namespace}/machines/${name}${subresource}`;
  const options: RefusalOptions = {
    resource: `machines${subresource}`,
    group: 'machine.sapcloud.io',
    version: 'v1alpha1',
    operations: ['UPDATE'],
    concerns: `object.metadata.namespace == '${world.namespace}' && object.metadata.name == '${name}'`,
    unless,
    message: NO,
    probe: { method: 'PATCH', path, body: probe },
  };
  return refuse(options);
}

/** Refuses our finalizer to a Machine that has none. */
async function refuseFinalizers(world: MachineWorld, name: string): Promise<AsyncDisposable> {
  const root = `/apis/machine.sapcloud.io/v1alpha1/namespaces/${world.namespace}/machines`;
  return await refuse({
    resource: 'machines',
    group: 'machine.sapcloud.io',
    version: 'v1alpha1',
    operations: ['UPDATE', 'CREATE'],
    concerns: `object.metadata.namespace == '${world.namespace}' && object.metadata.name in ['${name}', '${name}-probe']`,
    unless: '!has(object.metadata.finalizers) || size(object.metadata.finalizers) == 0',
    message: NO,
    probe: {
      method: 'POST',
      path: root,
      body: {
        apiVersion: 'machine.sapcloud.io/v1alpha1',
        kind: 'Machine',
        metadata: { name: `${name}-probe`, finalizers: [MACHINE_FINALIZER] },
        spec: { class: { kind: 'MachineClass', name: 'class-1' } },
      },
    },
  });
}

function turnedAt({ status }: Machine): string | undefined {
  return status?.machineConditions?.find(({ type }) => type === 'RecordRefused')?.lastTransitionTime ?? undefined;
}

async function told(world: MachineWorld, name: string): Promise<readonly Event[]> {
  const { items } = await world.user.reader.list(events, { namespace: world.namespace });
  return items.filter(({ involvedObject, reason }) => involvedObject.name === name && reason === 'RecordRefused');
}

function shown({ status }: Machine): string | undefined {
  return status?.machineConditions?.find(({ type }) => type === 'RecordRefused')?.message;
}

describe('a change of a Machine that the API server refuses', () => {
  test('is told by condition and Event while the machine works, and holds neither its health up nor comes to be forgotten', async () => {
    await using world = await MachineWorld.open({ connection: connect() });
    const name = await world.create();
    const { metadata } = await world.settled(name);
    {
      await using _refusal = await refuseMachine(world, name, {
        unless: `object.metadata.labels['${NODE_LABEL}'] == 'elsewhere'`,
        probe: { metadata: { labels: { [NODE_LABEL]: 'another' } } },
      });
      const wrong = mergePatch({ metadata }, { metadata: { labels: { [NODE_LABEL]: 'elsewhere' } } });
      await world.user.writer.patch('change', machines, { namespace: world.namespace, name }, wrong);

      await eventually(async () => expect(shown(await world.read(name))).toContain(NO), PATIENCE);
      expect(shown(await world.read(name))).toMatch(/^The API server refuses to record label node: /);
      await world.cloud.nodes?.setReadiness(name, 'unknown');
      await world.inPhase(name, 'Unknown');
      await world.cloud.nodes?.setReadiness(name, 'ready');
      await world.inPhase(name, 'Running');

      await eventually(
        async () => expect(await told(world, name)).toMatchObject([{ message: shown(await world.read(name)) }]),
        PATIENCE,
      );
      expect((await world.read(name)).metadata.labels?.[NODE_LABEL]).toBe('elsewhere');
    }
    await eventually(async () => {
      // Whatever happens to it makes a pass.
      await world.touch(name);
      const machine = await world.read(name);
      expect([machine.metadata.labels?.[NODE_LABEL], shown(machine)]).toEqual([name, undefined]);
    }, PATIENCE);
  });

  test('is told by the last operation and an Event when only its finalizer is left, and gone for when it is let', async () => {
    await using world = await MachineWorld.open({ connection: connect() });
    const name = await world.create();
    await world.inPhase(name, 'Running');
    {
      await using _refusal = await refuseMachine(world, name, {
        unless: `object.metadata.?finalizers.orValue([]).exists(one, one == '${MACHINE_FINALIZER}')`,
        probe: { metadata: { finalizers: null } },
      });
      await world.delete(name);

      await eventually(async () => {
        const { lastOperation } = (await world.read(name)).status ?? {};
        expect(lastOperation).toMatchObject({ type: 'Delete', state: 'Failed', errorCode: 'RecordRefused' });
        expect(lastOperation?.description).toMatch(
          /^The API server refuses to remove finalizer .*refused by a test.* Initiate machine object finalizer removal$/,
        );
      }, PATIENCE);
      await eventually(async () => expect(await told(world, name)).toHaveLength(1), PATIENCE);
      expect(world.cloud.cloud.all()).toEqual([]);
      const { status } = await world.read(name);
      expect(status?.machineConditions?.map(({ type, status: is }) => `${type}=${is}`)).toEqual([
        'VMCreated=False',
        'NodeJoined=False',
        'Healthy=False',
        'Drained=True',
        'RecordRefused=True',
      ]);
      expect(status?.conditions ?? []).toEqual([]);
    }
    await world.gone(name);
  });

  test('keeps a new Machine without our finalizer from a VM, and fails it at its creation timeout', async () => {
    await using world = await MachineWorld.open({ connection: connect(), flags: { 'machine-creation-timeout': '3s' } });
    const name = `${world.prefix}bare`;
    await using _refusal = await refuseFinalizers(world, name);
    await world.create((m) => Object.assign(m.metadata, { name, finalizers: [] }));

    const { status } = await world.inPhase(name, 'Failed');

    expect(status?.lastOperation).toMatchObject({ type: 'Create', state: 'Failed', errorCode: 'FinalizerRefused' });
    await eventually(async () => expect(shown(await world.read(name))).toContain(NO), PATIENCE);
    expect(world.cloud.cloud.all()).toEqual([]);
  });

  test('is told of once, and since when it is refused, whatever becomes of the machine meanwhile', async () => {
    await using world = await MachineWorld.open({ connection: connect(), flags: { 'machine-health-timeout': '1s' } });
    const name = await world.create();
    await world.settled(name);
    await using _refusal = await refuseMachine(world, name, {
      unless: `!(has(object.metadata.annotations) && '${LAST_APPLIED_NODE_PRESERVE_ANNOTATION}' in object.metadata.annotations)`,
      probe: { metadata: { annotations: { [LAST_APPLIED_NODE_PRESERVE_ANNOTATION]: 'x' } } },
    });
    const node = await world.user.reader.get(nodes, { name });
    const asked = strategicPatch(node, { metadata: { annotations: { [PRESERVE_ANNOTATION]: 'when-failed' } } });
    await world.user.writer.patch('change', nodes, { name }, asked);
    await eventually(async () => expect(shown(await world.read(name))).toContain(NO), PATIENCE);
    const since = turnedAt(await world.read(name));
    // What counts from anew counts from another second.
    await eventually(() => Date.now() - Date.parse(since ?? '') > 1_000, PATIENCE);

    await world.cloud.nodes?.setReadiness(name, 'unknown');
    const failed = await world.inPhase(name, 'Failed');

    expect(turnedAt(failed)).toBe(since);
    // Its Node is drained, which the mirror of its conditions shows.
    await eventually(async () => {
      const { status } = await world.read(name);
      expect(status?.conditions?.find(({ type }) => type === 'Preserved')?.message).toContain('drained');
    }, PATIENCE);
    expect(turnedAt(await world.read(name))).toBe(since);
    expect((await told(world, name)).map(({ count }) => count ?? 1)).toEqual([1]);
  });

  test('is told by an Event when it is one of the status', async () => {
    await using world = await MachineWorld.open({ connection: connect() });
    const name = await world.create();
    await world.inPhase(name, 'Running');
    await using _refusal = await refuseMachine(world, name, {
      subresource: '/status',
      unless: `object.status.currentStatus.phase != 'Unknown'`,
      probe: { status: { currentStatus: { phase: 'Unknown' } } },
    });

    await world.cloud.nodes?.setReadiness(name, 'unknown');

    await eventually(async () => {
      const [event] = await told(world, name);
      expect(event?.message).toMatch(
        /^The API server refuses to record the status of the machine: .*refused by a test$/,
      );
    }, PATIENCE);
    await world.cloud.nodes?.setReadiness(name, 'ready');
  });
});
