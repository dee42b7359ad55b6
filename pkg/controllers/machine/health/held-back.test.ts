import { beforeEach, describe, expect, test } from '@jest/globals';

import { machine } from '../../../../test/builders.ts';
import { HOUR, MINUTE } from '../../../../test/durations.ts';
import { KeptMachine } from '../../../../test/kept-machine.ts';
import {
  CANDIDATE_FOR_UPDATE_LABEL,
  PREPARE_DELETION_ANNOTATION,
  PRESERVE_ANNOTATION,
  SELECTED_FOR_UPDATE_LABEL,
} from '../../../apis/machine/v1alpha1/labels.ts';

const preparation = ({ machine: { status } }: KeptMachine): string | undefined =>
  status?.machineConditions?.find(({ type }) => type === 'DeletionPrepared')?.reason;
const drainOf = ({ world, machine: { metadata } }: KeptMachine) => world.activities.get(metadata.uid, 'drain')?.state;

/** All machines of its zone are Unknown for longer than the health timeout: none of them is replaced. */
async function failZone(kept: KeptMachine): Promise<void> {
  const { world } = kept;
  kept.setReady(false);
  await kept.pass();
  for (const name of ['m-2', 'm-3'])
    world.machines.put(
      machine((m) => {
        m.metadata.name = name;
        m.metadata.uid = `uid-of-${name}`;
        m.metadata.labels['node'] = name;
        m.status = { ...m.status, currentStatus: { ...kept.machine.status?.currentStatus } };
      }),
    );
  world.clock.advance(20 * MINUTE);
  for (let i = 0; i < 3; i++) await kept.pass();
  expect([kept.phase, kept.machine.status?.lastOperation?.errorCode]).toEqual(['Unknown', 'ZoneUnhealthy']);
}

describe('a machine that is held back at its health timeout', () => {
  let kept: KeptMachine;
  beforeEach(() => {
    kept = new KeptMachine();
    kept.world.clock.advance(HOUR);
  });

  test('is prepared for its deletion', async () => {
    await failZone(kept);
    kept.annotateMachine(PREPARE_DELETION_ANNOTATION, 'true');

    for (let i = 0; i < 4; i++) await kept.pass();

    expect([preparation(kept), drainOf(kept)]).toEqual(['started', 'running']);
  });

  test('is kept, and its Node given back, when a deletion that was being prepared is aborted', async () => {
    kept.annotateMachine(PREPARE_DELETION_ANNOTATION, 'true');
    for (let i = 0; i < 4; i++) await kept.pass();
    await failZone(kept);
    expect(drainOf(kept)).toBe('running');

    kept.annotateMachine(PREPARE_DELETION_ANNOTATION, undefined);
    await kept.rest();

    expect([preparation(kept), drainOf(kept), kept.node.spec?.unschedulable]).toEqual([undefined, undefined, null]);
  });

  test('is preserved at once where that is asked for', async () => {
    await failZone(kept);
    kept.annotateMachine(PRESERVE_ANNOTATION, 'now');

    await kept.rest();

    expect(kept.machine.status?.currentStatus?.preserveExpiryTime).toBeDefined();
    expect(kept.world.events.map(({ reason }) => reason)).toContain('Preserved');
  });

  test('tells of its zone since when it is unhealthy, also when it is preserved and when that ends: else the others of the zone were taken for broken', async () => {
    await failZone(kept);
    const sinceOf = (): unknown => kept.machine.status?.currentStatus?.lastUpdateTime;
    const since = sinceOf();

    kept.annotateMachine(PRESERVE_ANNOTATION, 'now');
    await kept.rest();
    const preserved = [kept.machine.status?.currentStatus?.preserveExpiryTime !== undefined, sinceOf()];
    kept.annotateMachine(PRESERVE_ANNOTATION, undefined);
    await kept.rest();

    expect([preserved, [kept.machine.status?.currentStatus?.preserveExpiryTime, sinceOf()]]).toEqual([
      [true, since],
      [undefined, since],
    ]);
  });

  test('is not drained for an update in place that it is selected for meanwhile', async () => {
    kept.labelNode(CANDIDATE_FOR_UPDATE_LABEL, 'true');
    await kept.pass();
    await failZone(kept);

    kept.labelNode(SELECTED_FOR_UPDATE_LABEL, 'true');
    await kept.rest();
    await kept.endDrains({ kind: 'drained' });
    await kept.rest();

    expect([drainOf(kept), kept.phase, kept.machine.status?.lastOperation?.errorCode]).toEqual([
      undefined,
      'Unknown',
      'ZoneUnhealthy',
    ]);
  });

  test('is no more drained for an update whose selection is taken back, and goes on saying why it is held back, once', async () => {
    kept.labelNode(CANDIDATE_FOR_UPDATE_LABEL, 'true');
    kept.labelNode(SELECTED_FOR_UPDATE_LABEL, 'true');
    for (let i = 0; i < 4; i++) await kept.pass();
    kept.setReady(false);
    await kept.pass();
    await kept.endDrains({ kind: 'incomplete', progress: { remainingPods: 1, blocked: [] } });
    await kept.pass();
    expect(kept.machine.status?.lastOperation?.type).toBe('DrainNode');
    await failZone(kept);

    kept.labelNode(SELECTED_FOR_UPDATE_LABEL, undefined);
    await kept.rest();
    const told = kept.machine.status?.lastOperation;
    kept.world.clock.advance(MINUTE);
    await kept.rest();

    expect(drainOf(kept)).toBeUndefined();
    expect(told?.errorCode).toBe('ZoneUnhealthy');
    expect(kept.machine.status?.lastOperation).toEqual(told);
  });
});
