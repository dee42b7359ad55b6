import { beforeEach, describe, expect, test } from '@jest/globals';

import { machine } from '../../../../test/builders.ts';
import { HOUR, MINUTE } from '../../../../test/durations.ts';
import { KeptMachine } from '../../../../test/kept-machine.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import {
  CANDIDATE_FOR_UPDATE_LABEL,
  FORCE_DRAIN_LABEL,
  PREPARE_DELETION_ANNOTATION,
  PRESERVE_ANNOTATION,
  SELECTED_FOR_UPDATE_LABEL,
} from '../../../apis/machine/v1alpha1/labels.ts';

const preparation = ({ machine: { status } }: KeptMachine): string | undefined =>
  status?.machineConditions?.find(({ type }) => type === 'DeletionPrepared')?.reason;
const drainOf = ({ world, machine: { metadata } }: KeptMachine) => world.activities.get(metadata.uid, 'drain')?.state;

/** All machines of its zone become Unknown. */
async function stopZone(kept: KeptMachine): Promise<void> {
  kept.setReady(false);
  await kept.pass();
  putOthers(kept, { ...kept.machine.status?.currentStatus });
}

function putOthers(
  kept: KeptMachine,
  currentStatus: NonNullable<Machine['status']>['currentStatus'],
  change: (m: Machine) => void = () => undefined,
): void {
  for (const name of ['m-2', 'm-3'])
    kept.world.machines.put(
      machine((m) => {
        m.metadata.name = name;
        m.metadata.uid = `uid-of-${name}`;
        m.metadata.resourceVersion = kept.world.writer.nextVersion();
        m.metadata.labels['node'] = name;
        m.status = { ...m.status, ...(currentStatus && { currentStatus }) };
        change(m);
      }),
    );
}

/** The same, for longer than the health timeout: none of them is replaced. */
async function failZone(kept: KeptMachine): Promise<void> {
  const { world } = kept;
  await stopZone(kept);
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

  test('is not drained for an update before its health timeout either, which it says each hour, until the others of its zone are well', async () => {
    const { world } = kept;
    const delayed = (): number => world.events.filter(({ reason }) => reason === 'UpdateDelayed').length;
    kept.changeMachine((m) => void (m.spec = { ...m.spec, disableHealthTimeout: true }));
    await stopZone(kept);
    kept.labelNode(CANDIDATE_FOR_UPDATE_LABEL, 'true');
    kept.labelNode(SELECTED_FOR_UPDATE_LABEL, 'true');
    await kept.rest();
    world.clock.advance(6 * MINUTE);
    const { result } = await kept.rest();
    const before = [kept.phase, drainOf(kept), kept.condition('InPlaceUpdate')?.reason, delayed()];
    for (let i = 0; i < 2 * 60; i++) {
      world.clock.advance(MINUTE);
      await kept.pass();
    }
    expect(delayed()).toBe(3);

    putOthers(kept, { phase: 'Running' });
    await kept.rest();

    expect(before).toEqual(['Unknown', undefined, 'CandidateForUpdate', 1]);
    expect(result).toMatchObject({ kind: 'requeue', waitingFor: 'more machines of its zone to be healthy' });
    expect([drainOf(kept), kept.condition('InPlaceUpdate')?.reason]).toEqual(['running', 'SelectedForUpdate']);
  });

  test('is updated in place, its pods deleted, when somebody labels it so: the update may be what repairs it', async () => {
    kept.changeMachine((m) => void (m.spec = { ...m.spec, disableHealthTimeout: true }));
    await stopZone(kept);
    kept.labelNode(CANDIDATE_FOR_UPDATE_LABEL, 'true');
    kept.labelNode(SELECTED_FOR_UPDATE_LABEL, 'true');
    await kept.rest();
    expect(drainOf(kept)).toBeUndefined();

    kept.changeMachine(({ metadata }) => void (metadata.labels = { ...metadata.labels, [FORCE_DRAIN_LABEL]: 'True' }));
    await kept.rest();
    await kept.endDrains();
    await kept.rest();

    expect(kept.world.drains.requests.map(({ force }) => force)).toEqual([true]);
    expect([kept.phase, kept.condition('InPlaceUpdate')?.reason]).toEqual(['InPlaceUpdating', 'ReadyForUpdate']);
  });

  test('is still not replaced while others of its zone are updated so, until their Nodes are healthy', async () => {
    await failZone(kept);
    const updated = (ready: string) => (m: Machine) => {
      m.metadata.labels = { ...m.metadata.labels, [FORCE_DRAIN_LABEL]: 'True' };
      m.status = { ...m.status, conditions: [{ type: 'Ready', status: ready }] };
    };
    putOthers(kept, { phase: 'InPlaceUpdating' }, updated('Unknown'));
    await kept.rest();
    const before = [kept.phase, kept.machine.status?.lastOperation?.errorCode];

    putOthers(kept, { phase: 'InPlaceUpdating' }, updated('True'));
    for (let i = 0; i < 3; i++) await kept.pass();

    expect([before, kept.phase]).toEqual([['Unknown', 'ZoneUnhealthy'], 'Failed']);
  });

  test.each<{ what: string; meanwhile: (one: KeptMachine) => void | Promise<unknown> }>([
    { what: 'runs', meanwhile: () => undefined },
    {
      what: 'is to be tried again',
      meanwhile: (one) => one.endDrains({ kind: 'incomplete', progress: { remainingPods: 1, blocked: [] } }),
    },
    { what: 'a restart has lost', meanwhile: (one) => one.world.restart() },
  ])(
    'whose drain for an update $what as its zone fails is drained anew when it is well, in its whole time',
    async ({ meanwhile }) => {
      kept.labelNode(CANDIDATE_FOR_UPDATE_LABEL, 'true');
      kept.labelNode(SELECTED_FOR_UPDATE_LABEL, 'true');
      await kept.rest();
      await stopZone(kept);
      await meanwhile(kept);
      await kept.rest();
      const before = [drainOf(kept), kept.condition('InPlaceUpdate')?.reason, kept.node.spec?.unschedulable];

      kept.world.clock.advance(3 * HOUR);
      kept.setReady(true);
      putOthers(kept, { phase: 'Running' });
      await kept.rest();

      expect(before).toEqual([undefined, 'CandidateForUpdate', true]);
      expect([drainOf(kept), kept.condition('InPlaceUpdate')?.reason]).toEqual(['running', 'SelectedForUpdate']);
      expect(kept.world.drains.requests.map(({ force }) => force)).toEqual([false, false]);
    },
  );

  test('whose drain for an update has ended is not updated before its zone is well', async () => {
    kept.labelNode(CANDIDATE_FOR_UPDATE_LABEL, 'true');
    kept.labelNode(SELECTED_FOR_UPDATE_LABEL, 'true');
    await kept.rest();
    await stopZone(kept);
    await kept.endDrains({ kind: 'drained' });
    await kept.rest();
    const before = kept.phase;

    putOthers(kept, { phase: 'Running' });
    await kept.rest();

    expect([before, kept.phase]).toEqual(['Unknown', 'InPlaceUpdating']);
  });

  test('whose Node is ready for its update says so too when its phase was lost, and it waits for the zone', async () => {
    kept.labelNode(CANDIDATE_FOR_UPDATE_LABEL, 'true');
    kept.labelNode(SELECTED_FOR_UPDATE_LABEL, 'true');
    await kept.rest();
    await kept.endDrains({ kind: 'drained' });
    await kept.rest();
    expect(kept.condition('InPlaceUpdate')?.reason).toBe('ReadyForUpdate');

    kept.setPhase('Running');
    await stopZone(kept);
    await kept.rest();

    expect([kept.phase, kept.world.events.filter(({ reason }) => reason === 'UpdateDelayed').length]).toEqual([
      'Unknown',
      1,
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
