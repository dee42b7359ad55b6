import { describe, expect, test } from '@jest/globals';

import {
  CANDIDATE_FOR_UPDATE_LABEL,
  SELECTED_FOR_UPDATE_LABEL,
  UPDATE_FAILED_REASON_ANNOTATION,
  UPDATE_RESULT_LABEL,
} from '../../pkg/apis/machine/v1alpha1/labels.ts';
import { privateApiServer } from '../env/api-server.ts';
import { conditionOf, KeptOne } from './kept-machines.ts';
import { MachineWorld, type MachineWorldOptions } from './machine-world.ts';

async function begun(world: MachineWorld): Promise<KeptOne> {
  const one = new KeptOne(world, await world.create());
  await world.inPhase(one.name, 'Running');
  return one;
}

const isAt = (one: KeptOne, reason: string, phase: string): Promise<void> =>
  one.shows((machine, node) => {
    expect([conditionOf(node, 'InPlaceUpdate')?.reason, conditionOf(machine, 'InPlaceUpdate')?.reason]).toEqual([
      reason,
      reason,
    ]);
    expect(machine.status?.currentStatus?.phase).toBe(phase);
  });

/** From candidate to success, with restarts in the middle of the drain and of the update. */
async function life(options: MachineWorldOptions): Promise<void> {
  await using world = await MachineWorld.open(options);
  const one = await begun(world);
  await one.pod('web');
  await one.pod('held', true);
  const { uid } = (await one.machine()).metadata;

  await one.onNode({ labels: { [CANDIDATE_FOR_UPDATE_LABEL]: 'true' } });
  await isAt(one, 'CandidateForUpdate', 'Running');
  expect((await one.node()).spec?.unschedulable).toBeUndefined();

  await one.onNode({ labels: { [SELECTED_FOR_UPDATE_LABEL]: 'true' } });
  await one.shows(async (_machine, node) => {
    expect(node.spec?.unschedulable).toBe(true);
    expect((await one.pods()).map(({ metadata }) => metadata.name)).toEqual(['held']);
  });
  await world.restart();
  await isAt(one, 'SelectedForUpdate', 'Running');
  await one.letGo('held');
  await isAt(one, 'ReadyForUpdate', 'InPlaceUpdating');
  expect(await one.pods()).toEqual([]);

  await world.restart();
  await world.cloud.nodes?.setReadiness(one.name, 'unknown'); // it boots
  await one.onNode({ labels: { [UPDATE_RESULT_LABEL]: 'successful' } });
  await world.inPhase(one.name, 'InPlaceUpdateSuccessful');
  await world.cloud.nodes?.setReadiness(one.name, 'ready');
  await isAt(one, 'UpdateSuccessful', 'Running');

  const machine = await one.machine();
  expect(machine.metadata.uid).toBe(uid);
  expect(machine.status?.lastOperation?.state).toBe('Successful');
  expect((await one.node()).spec?.unschedulable).toBe(true); // anyone who selected it gives it back to its pods
  expect(world.cloud.cloud.all()).toHaveLength(1);
}

describe('an update in place', () => {
  test('drains a Node, waits for its agent and keeps the machine, over restarts of the manager', () => life({}));

  test('is so under the definitions of the original too', async () => {
    await using plane = await privateApiServer({ crds: 'original' });
    await life({ connection: plane.connection });
  });

  test('that the agent calls failed is told, replaced at the health timeout, or mended by a late success', async () => {
    await using world = await MachineWorld.open();
    const one = await begun(world);
    await one.onNode({ labels: { [CANDIDATE_FOR_UPDATE_LABEL]: 'true', [SELECTED_FOR_UPDATE_LABEL]: 'true' } });
    await isAt(one, 'ReadyForUpdate', 'InPlaceUpdating');
    await one.onNode({
      labels: { [UPDATE_RESULT_LABEL]: 'failed' },
      annotations: { [UPDATE_FAILED_REASON_ANNOTATION]: 'no space left' },
    });
    await isAt(one, 'UpdateFailed', 'InPlaceUpdateFailed');
    expect((await one.machine()).status?.lastOperation?.description).toContain('no space left');

    await one.onNode({ labels: { [UPDATE_RESULT_LABEL]: 'successful' } });
    await isAt(one, 'UpdateSuccessful', 'Running');
  });

  test('without result fails at its timeout, and the machine at its health timeout, although its Node is healthy', async () => {
    await using world = await MachineWorld.open({
      flags: { 'machine-inplace-update-timeout': '1s', 'machine-health-timeout': '1s' },
    });
    const one = await begun(world);
    await one.onNode({ labels: { [CANDIDATE_FOR_UPDATE_LABEL]: 'true', [SELECTED_FOR_UPDATE_LABEL]: 'true' } });

    await one.shows((machine) => {
      expect(machine.status?.currentStatus?.phase).toBe('Failed');
      expect(machine.status?.lastOperation).toMatchObject({ type: 'InPlaceUpdate', state: 'Failed' });
    });
  });

  test('that runs when the machine is deleted gives way to the deletion', async () => {
    await using world = await MachineWorld.open();
    const one = await begun(world);
    await one.pod('held', true);
    await one.onNode({ labels: { [CANDIDATE_FOR_UPDATE_LABEL]: 'true', [SELECTED_FOR_UPDATE_LABEL]: 'true' } });
    await one.shows((_machine, node) => expect(node.spec?.unschedulable).toBe(true));

    await world.delete(one.name);
    await one.shows((_machine, node) => expect(conditionOf(node, 'Terminating')?.status).toBe('True'));
    await one.letGo('held');
    await world.gone(one.name);

    expect(world.cloud.cloud.all()).toEqual([]);
  });
});
