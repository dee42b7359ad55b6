import { describe, expect, test } from '@jest/globals';

import { PRESERVE_ANNOTATION, PRESERVED_TAINT } from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Node } from '../../pkg/apis/wire.ts';
import { events } from '../../pkg/kube/client/resource.ts';
import { privateApiServer } from '../env/api-server.ts';
import { eventually } from '../expect/eventually.ts';
import { conditionOf, KeptOne } from './kept-machines.ts';
import { MachineWorld, type MachineWorldOptions } from './machine-world.ts';

const SCALE_DOWN_DISABLED = 'cluster-autoscaler.kubernetes.io/scale-down-disabled';
const BY_US = 'cluster-autoscaler.kubernetes.io/scale-down-disabled-by-mcm';

const isTainted = ({ spec }: Node): boolean => spec?.taints?.some(({ key }) => key === PRESERVED_TAINT) === true;

/** Preserved while it works; fails, is kept and drained over a restart; recovers; its time ends. */
async function life(options: MachineWorldOptions): Promise<void> {
  await using world = await MachineWorld.open({
    ...options,
    flags: { 'machine-health-timeout': '1s', 'machine-preserve-timeout': '1h' },
  });
  const one = new KeptOne(world, await world.create());
  await world.inPhase(one.name, 'Running');
  await one.pod('web');
  await one.pod('held', true);

  await one.onNode({ annotations: { [PRESERVE_ANNOTATION]: 'now' } });
  await one.shows((machine, node) => {
    expect(machine.status?.currentStatus?.preserveExpiryTime).toEqual(expect.any(String));
    expect(machine.metadata.annotations?.['node.machine.sapcloud.io/last-applied-node-preserve-value']).toBe('now');
    expect(node.metadata.annotations).toMatchObject({ [SCALE_DOWN_DISABLED]: 'true', [BY_US]: 'true' });
    expect(conditionOf(node, 'Preserved')).toMatchObject({ status: 'True', reason: 'Preserved by user.' });
    expect(conditionOf(machine, 'Preserved')).toMatchObject({ status: 'True' });
  });
  const expiry = (await one.machine()).status?.currentStatus?.preserveExpiryTime;

  await world.cloud.nodes?.setReadiness(one.name, 'unknown');
  await one.shows(async (machine, node) => {
    expect(machine.status?.currentStatus).toMatchObject({ phase: 'Failed', preserveExpiryTime: expiry });
    expect(isTainted(node)).toBe(true);
    expect((await one.pods()).map(({ metadata }) => metadata.name)).toEqual(['held']);
  });
  await world.restart();
  await one.letGo('held');
  await one.shows((_machine, node) => {
    expect(conditionOf(node, 'Preserved')?.message).toMatch(
      /^Preserved node drained successfully\. Machine preserved until /,
    );
  });
  expect(world.cloud.cloud.all()).toHaveLength(1);

  await world.cloud.nodes?.setReadiness(one.name, 'ready');
  await one.shows((machine, node) => {
    expect(machine.status?.currentStatus).toMatchObject({ phase: 'Running', preserveExpiryTime: expiry });
    expect(isTainted(node)).toBe(false);
    expect(conditionOf(node, 'Preserved')?.message).toMatch(/^Machine preserved until /);
  });

  await one.onNode({ annotations: { [PRESERVE_ANNOTATION]: 'false' } });
  await one.shows((machine, node) => {
    expect(machine.status?.currentStatus).not.toHaveProperty('preserveExpiryTime');
    expect(node.metadata.annotations ?? {}).not.toHaveProperty([SCALE_DOWN_DISABLED]);
    expect(conditionOf(node, 'Preserved')).toMatchObject({ status: 'False', reason: 'Preservation stopped.' });
  });
}

describe('a preserved machine', () => {
  test('is kept when it fails, drained over a restart of the manager, and works again when its Node does', () =>
    life({}));

  test('is so under the definitions of the original too', async () => {
    await using plane = await privateApiServer({ crds: 'original' });
    await life({ connection: plane.connection });
  });

  test('has its time, and is then as before', async () => {
    await using world = await MachineWorld.open();
    const one = new KeptOne(
      world,
      await world.create((m) => {
        m.metadata.annotations = { [PRESERVE_ANNOTATION]: 'now' };
        m.spec.machinePreserveTimeout = '3s';
      }),
    );
    const { uid } = await world.inPhase(one.name, 'Running').then(({ metadata }) => metadata);

    await one.shows((machine, node) => {
      expect(machine.metadata.annotations).not.toHaveProperty([PRESERVE_ANNOTATION]);
      expect(machine.status?.currentStatus).not.toHaveProperty('preserveExpiryTime');
      expect(conditionOf(node, 'Preserved')?.status).not.toBe('True');
      expect(node.metadata.annotations ?? {}).not.toHaveProperty([SCALE_DOWN_DISABLED]);
    });
    await eventually(async () => {
      const { items } = await world.user.reader.list(events, { namespace: world.namespace });
      const told = items.filter(({ involvedObject }) => involvedObject.uid === uid).map(({ reason }) => reason);
      expect(told).toEqual(expect.arrayContaining(['Preserved', 'PreservationEnded']));
    });
  });
});
