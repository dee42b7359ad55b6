import { describe, expect, test } from '@jest/globals';

import { MACHINE_FINALIZER, NODE_LABEL } from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import type { Event } from '../../pkg/apis/wire.ts';
import { mergePatch } from '../../pkg/kube/patch.ts';
import { events, machines } from '../../pkg/kube/resource.ts';
import { refuse, type RefusalOptions } from '../env/refusal.ts';
import { eventually } from '../expect/eventually.ts';
import { MachineWorld } from './machine-world.ts';

const PATIENCE = { timeoutMs: 30_000 };
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

async function told(world: MachineWorld, name: string): Promise<readonly Event[]> {
  const { items } = await world.user.reader.list(events, { namespace: world.namespace });
  return items.filter(({ involvedObject, reason }) => involvedObject.name === name && reason === 'RecordRefused');
}

function shown({ status }: Machine): string | undefined {
  return status?.machineConditions?.find(({ type }) => type === 'RecordRefused')?.message;
}

describe('a change of a Machine that the API server refuses', () => {
  test('is told by condition and Event while the machine works, and holds neither its health up nor comes to be forgotten', async () => {
    await using world = await MachineWorld.open();
    const name = await world.create();
    const { metadata } = await world.inPhase(name, 'Running');
    await eventually(async () => expect(world.nodes.get(name)?.metadata.finalizers).toHaveLength(1), PATIENCE);
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
    await using world = await MachineWorld.open();
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
        expect(lastOperation).toMatchObject({ type: 'Delete', state: 'Failed' });
        expect(lastOperation?.description).toMatch(
          /^The API server refuses to remove finalizer .*refused by a test.* Initiate machine object finalizer removal$/,
        );
      }, PATIENCE);
      await eventually(async () => expect(await told(world, name)).toHaveLength(1), PATIENCE);
      expect(world.cloud.cloud.all()).toEqual([]);
    }
    await world.gone(name);
  });

  test('is told by an Event when it is one of the status', async () => {
    await using world = await MachineWorld.open();
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
