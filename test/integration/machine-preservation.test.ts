import { describe, expect, test } from '@jest/globals';

import {
  CORDONED_BY_MAINTENANCE_ANNOTATION,
  PRESERVE_ANNOTATION,
  PRESERVED_TAINT,
} from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Node } from '../../pkg/apis/wire.ts';
import { mergePatch } from '../../pkg/kube/client/patch.ts';
import { events, nodes } from '../../pkg/kube/client/resource.ts';
import { privateApiServer } from '../env/api-server.ts';
import { connect } from '../env/environment.ts';
import { eventually } from '../expect/eventually.ts';
import { conditionOf, KeptOne } from './kept-machines.ts';
import { KubeSession } from './kube-session.ts';
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

  // What the API server records of who has set a field decides that, which no simulated one does.
  test('that v0.62 of the original has cordoned takes pods again, and one that a user has cordoned does not', async () => {
    const connection = connect();
    await using world = await MachineWorld.open({ connection });
    const [first, second] = await Promise.all([world.create(), world.create()]);
    const [ofOriginal, ofUser] = [new KeptOne(world, first), new KeptOne(world, second)];
    for (const one of [ofOriginal, ofUser]) {
      await world.inPhase(one.name, 'Running');
      await one.onNode({ annotations: { [PRESERVE_ANNOTATION]: 'now' } });
      await one.shows((_machine, node) => expect(conditionOf(node, 'Preserved')?.status).toBe('True'));
    }
    await world.restart(async () => {
      await cordonAs('kubectl/v1.36.3 (linux/amd64) kubernetes/x', ofUser);
      for (const one of [ofOriginal, ofUser])
        await cordonAs('machine-controller/v0.0.0 (linux/amd64) kubernetes/x/machine-controller', one);
    });

    await ofOriginal.shows((_machine, { spec }) => expect(spec?.unschedulable).toBeUndefined());
    for (const value of ['false', 'now']) {
      await ofUser.onNode({ annotations: { [PRESERVE_ANNOTATION]: value } });
      const status = value === 'now' ? 'True' : 'False';
      await ofUser.shows((_machine, node) => expect(conditionOf(node, 'Preserved')?.status).toBe(status));
    }
    const { metadata, spec } = await ofUser.node();
    expect([spec?.unschedulable, metadata.annotations?.[CORDONED_BY_MAINTENANCE_ANNOTATION]]).toEqual([
      true,
      undefined,
    ]);

    /** As a client that calls itself so. */
    async function cordonAs(userAgent: string, one: KeptOne): Promise<void> {
      await using session = new KubeSession(connection, { transport: { userAgent } });
      const patch = mergePatch(await one.node(), { spec: { unschedulable: true } });
      await session.writer.patch('change', nodes, { name: one.name }, patch);
    }
  });
});
