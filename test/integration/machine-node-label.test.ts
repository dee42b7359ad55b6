import { describe, expect, test } from '@jest/globals';

import { NODE_LABEL } from '../../pkg/apis/machine/v1alpha1/labels.ts';
import { mergePatch } from '../../pkg/kube/client/patch.ts';
import { events, machines } from '../../pkg/kube/client/resource.ts';
import { eventually } from '../expect/eventually.ts';
import { MachineWorld } from './machine-world.ts';

const PATIENCE = { timeoutMs: 120_000 };

async function label(world: MachineWorld, name: string, value: string | null): Promise<void> {
  const patch = mergePatch(await world.read(name), { metadata: { labels: { [NODE_LABEL]: value } } });
  await world.user.writer.patch('change', machines, { namespace: world.namespace, name }, patch);
}

async function runningIn(world: MachineWorld): Promise<string> {
  const name = await world.create();
  await world.settled(name);
  return name;
}

async function told(world: MachineWorld, name: string): Promise<string[]> {
  const { items } = await world.user.reader.list(events, { namespace: world.namespace });
  return items.filter(({ involvedObject }) => involvedObject.name === name).map(({ reason = '' }) => reason);
}

describe('a Machine whose label `node` somebody has changed', () => {
  test('names its Node again, and is as healthy as that one', async () => {
    await using world = await MachineWorld.open();
    const [name, other] = [await runningIn(world), await runningIn(world)];

    for (const value of [null, other]) {
      await label(world, name, value);
      await eventually(async () => expect((await world.read(name)).metadata.labels?.[NODE_LABEL]).toBe(name), PATIENCE);
    }
    await eventually(async () => expect(await told(world, name)).toContain('NodeLabelCorrected'), PATIENCE);

    await world.cloud.nodes?.setReadiness(name, 'unknown');
    await world.inPhase(name, 'Unknown');
    expect((await world.read(other)).status?.currentStatus?.phase).toBe('Running');
  });
});
