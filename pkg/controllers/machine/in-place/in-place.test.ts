import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';

import { HOUR, MINUTE } from '../../../../test/durations.ts';
import { KeptMachine, KEPT_ACTIONS, type KeptAction } from '../../../../test/kept-machine.ts';
import {
  CANDIDATE_FOR_UPDATE_LABEL,
  MAINTENANCE_ANNOTATION,
  NOT_MANAGED_ANNOTATION,
  PRESERVE_ANNOTATION,
  SELECTED_FOR_UPDATE_LABEL,
  UPDATE_FAILED_REASON_ANNOTATION,
  UPDATE_RESULT_LABEL,
} from '../../../apis/machine/v1alpha1/labels.ts';
import type { MachinePhase } from '../../../apis/machine/v1alpha1/phases.ts';
import { toTimestamp } from '../../../base/clock/clock.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { replacementsUnderWay } from '../../machine-facts/replacement.ts';
import { explain } from '../explain/explain.ts';

const reasonOf = (kept: KeptMachine): string | undefined => kept.condition('InPlaceUpdate')?.reason;
const reasons = ({ world }: KeptMachine): string[] => world.events.map(({ reason }) => reason);
const mirrored = ({ machine }: KeptMachine): string | undefined =>
  machine.status?.conditions?.find(({ type }) => type === 'InPlaceUpdate')?.reason;

/** Its Node is selected, and the drain runs. */
async function selected(): Promise<KeptMachine> {
  const kept = new KeptMachine();
  kept.labelNode(CANDIDATE_FOR_UPDATE_LABEL, 'true');
  await kept.rest();
  kept.labelNode(SELECTED_FOR_UPDATE_LABEL, 'true');
  await kept.rest();
  return kept;
}

/** Its Node is drained and waits for its agent. */
async function ready(): Promise<KeptMachine> {
  const kept = await selected();
  await kept.endDrains();
  await kept.rest();
  return kept;
}

describe('an update in place', () => {
  test('goes from candidate to success, each step told on Node and Machine', async () => {
    const kept = new KeptMachine();
    kept.labelNode(CANDIDATE_FOR_UPDATE_LABEL, 'true');
    await kept.rest();
    expect([reasonOf(kept), mirrored(kept), kept.phase]).toEqual([
      'CandidateForUpdate',
      'CandidateForUpdate',
      'Running',
    ]);
    expect(kept.node.spec?.unschedulable).toBeUndefined();

    kept.labelNode(SELECTED_FOR_UPDATE_LABEL, 'true');
    await kept.rest();
    expect([reasonOf(kept), mirrored(kept), kept.phase]).toEqual(['SelectedForUpdate', 'SelectedForUpdate', 'Running']);
    expect(kept.world.drains.requests).toHaveLength(1);
    expect(kept.world.drains.requests[0]).toMatchObject({ barrier: 'marked-cordon', force: false });
    expect(kept.world.drains.requests[0]).not.toHaveProperty('nodeCondition');

    await kept.endDrains();
    await kept.rest();
    expect([reasonOf(kept), mirrored(kept), kept.phase]).toEqual([
      'ReadyForUpdate',
      'ReadyForUpdate',
      'InPlaceUpdating',
    ]);
    expect(kept.machine.status?.lastOperation).toMatchObject({
      type: 'InPlaceUpdate',
      state: 'Processing',
      description: 'Node drain successful. Node is ready for update',
    });

    kept.setReady(false); // it boots
    await kept.rest();
    expect(kept.phase).toBe('InPlaceUpdating');

    kept.labelNode(UPDATE_RESULT_LABEL, 'successful');
    await kept.rest();
    expect([reasonOf(kept), kept.phase]).toEqual(['ReadyForUpdate', 'InPlaceUpdateSuccessful']);

    kept.setReady(true);
    await kept.rest();
    expect([reasonOf(kept), mirrored(kept), kept.phase]).toEqual(['UpdateSuccessful', 'UpdateSuccessful', 'Running']);
    expect(kept.node.spec?.unschedulable).toBe(true); // the MachineDeployment controller's to end
    expect(reasons(kept)).toEqual(['UpdateSelected', 'Drained', 'UpdateReady', 'UpdateSucceeded', 'NodeRejoined']);
    expect(kept.world.drains.requests).toHaveLength(1);
  });

  test('tells all conditions of the original, in order', async () => {
    const kept = new KeptMachine();
    const told: (string | undefined)[] = [];
    const look = async (passes: number): Promise<void> => {
      for (let i = 0; i < passes; i++) {
        await kept.pass();
        if (told.at(-1) !== reasonOf(kept)) told.push(reasonOf(kept));
      }
    };
    kept.labelNode(CANDIDATE_FOR_UPDATE_LABEL, 'true');
    kept.labelNode(SELECTED_FOR_UPDATE_LABEL, 'true');
    await look(5);
    await kept.endDrains();
    await look(5);
    kept.labelNode(UPDATE_RESULT_LABEL, 'successful');
    await look(5);

    expect(told).toEqual([
      'CandidateForUpdate',
      'SelectedForUpdate',
      'DrainSuccessful',
      'ReadyForUpdate',
      'UpdateSuccessful',
    ]);
  });

  test('begins anew when the last one was a success and its labels are gone', async () => {
    const kept = await ready();
    kept.labelNode(UPDATE_RESULT_LABEL, 'successful');
    await kept.rest();
    for (const label of [CANDIDATE_FOR_UPDATE_LABEL, SELECTED_FOR_UPDATE_LABEL, UPDATE_RESULT_LABEL]) {
      kept.labelNode(label, undefined);
    }
    await kept.rest();
    expect(reasonOf(kept)).toBe('UpdateSuccessful');

    kept.labelNode(CANDIDATE_FOR_UPDATE_LABEL, 'true');
    await kept.rest();

    expect(reasonOf(kept)).toBe('CandidateForUpdate');
  });

  test.each<{ phase: MachinePhase; isReady: boolean }>([
    { phase: 'Failed', isReady: false },
    { phase: 'Pending', isReady: false },
    { phase: 'CrashLoopBackOff', isReady: false },
  ])('does not begin on a machine that is $phase', async ({ phase, isReady }) => {
    const kept = new KeptMachine();
    kept.setReady(isReady);
    kept.setPhase(phase);
    kept.labelNode(CANDIDATE_FOR_UPDATE_LABEL, 'true');
    kept.labelNode(SELECTED_FOR_UPDATE_LABEL, 'true');

    for (let i = 0; i < 4; i++) await kept.pass();

    expect(kept.world.drains.requests).toEqual([]);
    expect(kept.phase).toBe(phase);
  });

  // MCM fault 12: preserveExpiryTime was lost in all phases of an update.
  test('keeps a preservation from beginning to end', async () => {
    const kept = new KeptMachine();
    kept.annotateMachine(PRESERVE_ANNOTATION, 'now');
    kept.labelNode(CANDIDATE_FOR_UPDATE_LABEL, 'true');
    kept.labelNode(SELECTED_FOR_UPDATE_LABEL, 'true');
    await kept.rest();
    const expiry = kept.machine.status?.currentStatus?.preserveExpiryTime;
    await kept.endDrains();
    await kept.rest();
    expect(kept.machine.status?.currentStatus).toMatchObject({ phase: 'InPlaceUpdating', preserveExpiryTime: expiry });
    kept.labelNode(UPDATE_RESULT_LABEL, 'successful');
    await kept.rest();

    expect(kept.machine.status?.currentStatus).toMatchObject({ phase: 'Running', preserveExpiryTime: expiry });
    expect(expiry).toBeDefined();
  });

  test('counts as a replacement while it lasts', async () => {
    const kept = await ready();

    expect(replacementsUnderWay([kept.machine], new Set(), kept.world.clock.now())).toBe(1);
  });
});

test('an update in place of whose Node the API server refuses the status says so, and does not hold up a maintenance', async () => {
  const kept = new KeptMachine();
  kept.labelNode(CANDIDATE_FOR_UPDATE_LABEL, 'true');
  const patchStatus = kept.world.nodes.patchStatus.bind(kept.world.nodes);
  kept.world.nodes.patchStatus = () => Promise.reject(new ApiError(403, 'Forbidden', 'nodes are sacred'));
  kept.annotateMachine(MAINTENANCE_ANNOTATION, 'true');

  for (let i = 0; i < 4; i++) expect((await kept.pass()).error).toBeUndefined();
  expect(reasons(kept).filter((reason) => reason === 'NodeChangeRefused')).toHaveLength(1);
  expect(reasons(kept)).toContain('MaintenanceStarted');

  kept.world.nodes.patchStatus = patchStatus;
  await kept.rest();
  expect(reasonOf(kept)).toBe('CandidateForUpdate');
});

describe('the drain of an update in place', () => {
  test('has its deadline from when the Node was selected, and is forced after it', async () => {
    const kept = new KeptMachine();
    kept.labelNode(CANDIDATE_FOR_UPDATE_LABEL, 'true');
    kept.labelNode(SELECTED_FOR_UPDATE_LABEL, 'true');
    const selectedMs = kept.world.clock.now() - HOUR;
    kept.changeNode((n) => {
      const condition = { type: 'InPlaceUpdate', status: 'True', reason: 'SelectedForUpdate' };
      n.status?.conditions?.push({ ...condition, lastTransitionTime: toTimestamp(selectedMs) });
    });
    await kept.rest();
    expect(kept.world.drains.requests[0]).toMatchObject({ force: false, deadlineMs: selectedMs + 2 * HOUR });

    kept.world.clock.advance(HOUR);
    await kept.endDrains({ kind: 'incomplete', progress: { remainingPods: 1, blocked: [] } });
    await kept.rest();

    expect(kept.world.drains.requests[1]).toMatchObject({ force: true, maxEvictRetries: 1 });
    expect(kept.phase).toBe('Running');
  });

  test('gives way to a forced one while it runs', async () => {
    const kept = await selected();

    kept.changeMachine((m) => ((m.metadata.labels ??= {})['force-drain'] = 'True'));
    await kept.rest();
    await kept.rest();

    expect(kept.world.drains.requests.map(({ force }) => force)).toEqual([false, true]);
    await kept.endDrains();
    await kept.rest();
    expect(kept.phase).toBe('InPlaceUpdating');
  });

  test('ends with the machine that fails meanwhile, and its end is not taken for that of a later one', async () => {
    const kept = await selected();
    kept.setReady(false);
    await kept.rest();
    kept.world.clock.advance(HOUR);
    await kept.rest();
    expect(kept.phase).toBe('Failed');
    await kept.rest();

    kept.setReady(true);
    await kept.rest();

    expect(kept.phase).toBe('Running');
    expect(kept.world.drains.requests).toHaveLength(2);
  });

  test('that fails, forced or not, never counts as done', async () => {
    const kept = await selected();
    kept.world.clock.advance(3 * HOUR);

    for (let i = 0; i < 3; i++) {
      await kept.endDrains({ kind: 'incomplete', progress: { remainingPods: 2, blocked: [] } });
      await kept.rest();
      kept.world.clock.advance(30_000);
      await kept.rest();
    }

    expect(kept.phase).toBe('Running');
    expect(reasonOf(kept)).toBe('SelectedForUpdate');
    expect(kept.machine.status?.lastOperation).toMatchObject({ type: 'DrainNode', state: 'Processing' });
    expect(kept.machine.status?.lastOperation?.description).toMatch(/^Drain failed\. .*Initiate node drain$/);
  });

  test('is tried again by itself, also when nothing new is to be told', async () => {
    const kept = await selected();

    for (const afterMs of [5_000, 10_000, 20_000, 30_000, 30_000]) {
      await kept.endDrains({ kind: 'incomplete', progress: { remainingPods: 2, blocked: [] } });
      expect((await kept.pass()).result).toMatchObject({ kind: 'requeue', afterMs });
      kept.world.clock.advance(afterMs);
      await kept.rest();
    }

    expect(kept.world.drains.requests).toHaveLength(6);
  });

  test('tells on the Machine what it waits for', async () => {
    const kept = await selected();
    kept.world.drains.report({
      remainingPods: 2,
      blocked: [{ pod: 'default/web-0', reason: 'disruption-budget', detail: 'web' }],
    });
    kept.world.clock.advance(3_000);

    await kept.rest();

    expect(kept.machine.status?.lastOperation?.description).toContain('default/web-0');
    expect(reasons(kept)).toContain('DrainBlocked');
    expect(explain(kept.machine, kept.world.clock.now())).toMatchObject({
      reason: 'DrainBlocked',
      waitingFor: 'the pods to leave',
    });
  });

  test.each([
    { what: 'its labels are removed', restarts: false, result: undefined },
    { what: 'they are, while no manager runs', restarts: true, result: undefined },
    { what: 'its Node is said to be updated instead', restarts: false, result: 'successful' },
  ])('that no budget allows leaves no failure when $what', async ({ restarts, result }) => {
    const kept = await selected();
    const detail = 'web never allows an eviction';
    kept.world.drains.report({
      remainingPods: 1,
      blocked: [{ pod: 'default/web-0', reason: 'misconfigured-disruption-budget', detail }],
    });
    kept.world.clock.advance(3_000);
    await kept.rest();
    expect(kept.machine.status?.lastOperation).toMatchObject({ type: 'DrainNode', state: 'Failed' });

    if (restarts) kept.world.restart();
    kept.labelNode(SELECTED_FOR_UPDATE_LABEL, undefined);
    if (result !== undefined) kept.labelNode(UPDATE_RESULT_LABEL, result);
    else kept.labelNode(CANDIDATE_FOR_UPDATE_LABEL, undefined);
    await kept.rest();

    expect(kept.machine.status?.lastOperation).toMatchObject({ type: 'DrainNode', state: 'Processing' });
    expect(kept.machine.status?.lastOperation).not.toHaveProperty('errorCode');
    expect(kept.machine.status?.lastOperation?.description).not.toContain('default/web-0');
    expect((await kept.pass()).writes).toEqual([]);
  });

  test.each([
    { what: 'both labels are', both: true, restarts: false, says: 'Nothing: the machine is healthy' },
    { what: 'both labels are, while no manager runs,', both: true, restarts: true, says: 'Nothing' },
    { what: 'one of them is', both: false, restarts: false, says: 'The Node is drained, then updated' },
  ])('is canceled, and the Node uncordoned, when $what taken back', async ({ both, restarts, says }) => {
    const kept = await selected();
    expect(kept.node.spec?.unschedulable).toBe(true);

    if (restarts) kept.world.restart();
    kept.labelNode(SELECTED_FOR_UPDATE_LABEL, undefined);
    if (both) kept.labelNode(CANDIDATE_FOR_UPDATE_LABEL, undefined);
    await kept.rest();
    await kept.endDrains();
    await kept.rest();

    expect([reasonOf(kept), kept.phase, kept.node.spec?.unschedulable ?? false]).toEqual([
      'CandidateForUpdate',
      'Running',
      false,
    ]);
    expect(kept.node.metadata.annotations).toEqual({});
    expect(kept.world.drains.requests).toHaveLength(1);
    expect(explain(kept.machine, kept.world.clock.now()).nextStep).toContain(says);
  });

  test('that is canceled leaves the cordon of somebody else', async () => {
    const kept = new KeptMachine();
    kept.changeNode((n) => void (n.spec = { ...n.spec, unschedulable: true }));
    kept.labelNode(CANDIDATE_FOR_UPDATE_LABEL, 'true');
    kept.labelNode(SELECTED_FOR_UPDATE_LABEL, 'true');
    await kept.rest();

    kept.labelNode(SELECTED_FOR_UPDATE_LABEL, undefined);
    await kept.rest();

    expect([reasonOf(kept), kept.node.spec?.unschedulable]).toEqual(['CandidateForUpdate', true]);
  });

  test('keeps its cordon until the Node is given back, whatever its labels say once it is empty', async () => {
    const kept = await ready();
    kept.labelNode(SELECTED_FOR_UPDATE_LABEL, undefined);
    kept.labelNode(CANDIDATE_FOR_UPDATE_LABEL, undefined);

    await kept.rest();

    expect([reasonOf(kept), kept.phase, kept.node.spec?.unschedulable]).toEqual([
      'ReadyForUpdate',
      'InPlaceUpdating',
      true,
    ]);
  });

  test.each([
    { what: 'both labels, then the result', others: [CANDIDATE_FOR_UPDATE_LABEL, SELECTED_FOR_UPDATE_LABEL] },
    { what: 'the selection alone, then all', others: [SELECTED_FOR_UPDATE_LABEL] },
  ])('that is canceled too late leaves a success in peace: $what', async ({ others }) => {
    const kept = await ready();
    for (const label of others) kept.labelNode(label, undefined);
    await kept.rest();
    kept.labelNode(UPDATE_RESULT_LABEL, 'successful');
    await kept.rest();
    expect([reasonOf(kept), kept.phase]).toEqual(['UpdateSuccessful', 'Running']);

    kept.changeNode((n) => void delete n.spec?.unschedulable);
    for (const label of [CANDIDATE_FOR_UPDATE_LABEL, UPDATE_RESULT_LABEL]) kept.labelNode(label, undefined);
    for (let i = 0; i < 4; i++) {
      await kept.rest();
      kept.world.clock.advance(10 * MINUTE);
    }

    expect([reasonOf(kept), kept.phase, kept.node.spec?.unschedulable]).toEqual([
      'UpdateSuccessful',
      'Running',
      undefined,
    ]);
  });

  test.each([{ left: [] }, { left: [CANDIDATE_FOR_UPDATE_LABEL] }])(
    'is not taken for one whose phase was lost, when its labels went at once after the result: left $left',
    async ({ left }) => {
      const kept = await ready();
      kept.labelNode(UPDATE_RESULT_LABEL, 'successful');
      while (kept.phase !== 'Running') await kept.pass();
      expect(reasonOf(kept)).toBe('ReadyForUpdate');

      for (const label of [CANDIDATE_FOR_UPDATE_LABEL, SELECTED_FOR_UPDATE_LABEL, UPDATE_RESULT_LABEL]) {
        kept.labelNode(label, left.some((one) => one === label) ? 'true' : undefined);
      }
      await kept.rest();

      expect([reasonOf(kept), kept.phase, kept.node.spec?.unschedulable ?? false]).toEqual([
        'CandidateForUpdate',
        'Running',
        false,
      ]);
    },
  );

  test('keeps its cordon after a success until the Node is given back, also without the selection', async () => {
    const kept = await ready();
    kept.labelNode(SELECTED_FOR_UPDATE_LABEL, undefined);
    kept.labelNode(UPDATE_RESULT_LABEL, 'successful');

    await kept.rest();

    expect([reasonOf(kept), kept.phase, kept.node.spec?.unschedulable]).toEqual(['UpdateSuccessful', 'Running', true]);
  });

  // MCM fault 10: the condition advanced although the phase could not be written.
  test('is over for the Node only when the phase was recorded', async () => {
    const kept = await selected();
    await kept.endDrains();
    kept.world.losesWrites = true;
    for (let i = 0; i < 3; i++) await kept.pass();
    expect(reasonOf(kept)).toBe('SelectedForUpdate');

    kept.world.losesWrites = false;
    await kept.rest();

    expect([reasonOf(kept), kept.phase]).toEqual(['ReadyForUpdate', 'InPlaceUpdating']);
    expect(kept.world.drains.requests).toHaveLength(1);
  });

  test.each(['DrainSuccessful', 'ReadyForUpdate'])(
    'whose phase was lost by the original (%s) is made up for',
    async (reason) => {
      const kept = new KeptMachine();
      kept.labelNode(CANDIDATE_FOR_UPDATE_LABEL, 'true');
      kept.labelNode(SELECTED_FOR_UPDATE_LABEL, 'true');
      kept.changeNode((n) => n.status?.conditions?.push({ type: 'InPlaceUpdate', status: 'True', reason }));

      await kept.rest();

      expect([reasonOf(kept), kept.phase]).toEqual(['ReadyForUpdate', 'InPlaceUpdating']);
    },
  );

  test('begins anew after a restart, with the same deadline', async () => {
    const kept = await selected();
    kept.world.clock.advance(10 * MINUTE);
    kept.world.restart();

    await kept.rest();
    await kept.endDrains();
    await kept.rest();

    const [first, second] = kept.world.drains.requests;
    expect(second?.deadlineMs).toBe(first?.deadlineMs);
    expect(kept.phase).toBe('InPlaceUpdating');
  });

  test('is broken off when the machine is deleted, before the drain of the deletion begins', async () => {
    const kept = await selected();
    kept.changeMachine((m) => {
      m.metadata.deletionTimestamp = toTimestamp(kept.world.clock.now());
    });

    for (let i = 0; i < 6; i++) {
      await kept.world.reconcile();
      await kept.world.settle();
    }

    expect(kept.world.drains.requests).toHaveLength(2);
    expect(kept.world.drains.requests[1]?.nodeCondition?.type).toBe('Terminating');
    expect(kept.world.activities.get(kept.machine.metadata.uid, 'drain')?.state).toBe('running');
    expect(reasons(kept)).not.toContain('DrainFailed'); // it was broken off
  });
});

test('a success is told on the Node only when the machine was recorded as Running', async () => {
  const kept = await ready();
  kept.setReady(false);
  kept.labelNode(UPDATE_RESULT_LABEL, 'successful');
  await kept.rest();
  kept.setReady(true);
  kept.world.losesWrites = true;
  for (let i = 0; i < 3; i++) await kept.pass();
  expect(reasonOf(kept)).toBe('ReadyForUpdate');

  kept.world.losesWrites = false;
  await kept.rest();

  expect([reasonOf(kept), kept.phase]).toEqual(['UpdateSuccessful', 'Running']);
});

test('a Node that is being deleted, and nobody manages, is not drained for an update', async () => {
  const kept = new KeptMachine();
  kept.annotateNode(NOT_MANAGED_ANNOTATION, '1');
  kept.changeNode((n) => (n.metadata.deletionTimestamp = toTimestamp(kept.world.clock.now())));
  kept.labelNode(CANDIDATE_FOR_UPDATE_LABEL, 'true');
  kept.labelNode(SELECTED_FOR_UPDATE_LABEL, 'true');

  for (let i = 0; i < 4; i++) await kept.pass();

  expect(kept.world.drains.requests).toEqual([]);
});

test('the drain of an update in place is broken off when its Node is deleted while the Machine is kept', async () => {
  const kept = new KeptMachine();
  kept.labelNode(CANDIDATE_FOR_UPDATE_LABEL, 'true');
  kept.labelNode(SELECTED_FOR_UPDATE_LABEL, 'true');
  for (let i = 0; i < 4; i++) await kept.pass();
  const { uid } = kept.machine.metadata;
  expect(kept.world.activities.get(uid, 'drain')?.state).toBe('running');

  kept.setReady(false);
  await kept.pass();
  kept.changeNode((n) => (n.metadata.deletionTimestamp = toTimestamp(kept.world.clock.now())));
  for (let i = 0; i < 3; i++) await kept.pass();

  expect(kept.world.deletedMachines).toEqual([]);
  expect(kept.world.activities.get(uid, 'drain')).toBeUndefined();
});

/** What was told of its end. */
const updateEvents = ({ world }: KeptMachine): string[] =>
  world.events
    .filter(({ reason }) => reason === 'UpdateFailed' || reason === 'UpdateSucceeded')
    .map(({ reason, message }) => `${reason}: ${message}`);

test('an update in place that succeeds after its timeout has passed is a success, and nothing else', async () => {
  const kept = await ready();
  kept.world.clock.advance(30 * MINUTE);
  kept.labelNode(UPDATE_RESULT_LABEL, 'successful');

  await kept.pass();

  expect([kept.phase, updateEvents(kept)]).toEqual([
    'InPlaceUpdateSuccessful',
    ['UpdateSucceeded: The machine was updated in place.'],
  ]);
  expect(kept.machine.status?.lastOperation).toMatchObject({
    type: 'InPlaceUpdate',
    state: 'Successful',
    description: 'Machine m-1 was updated in place successfully',
  });
  expect(kept.world.infos).toContain('updated a machine in place');
});

describe('an update in place that fails', () => {
  test('by its label: says why', async () => {
    const kept = await ready();
    kept.annotateNode(UPDATE_FAILED_REASON_ANNOTATION, 'no space left');
    kept.labelNode(UPDATE_RESULT_LABEL, 'failed');

    await kept.rest();

    expect([reasonOf(kept), kept.phase]).toEqual(['UpdateFailed', 'InPlaceUpdateFailed']);
    expect(kept.machine.status?.lastOperation).toMatchObject({ type: 'InPlaceUpdate', state: 'Failed' });
    expect(kept.machine.status?.lastOperation?.description).toContain('no space left');
    expect(explain(kept.machine, kept.world.clock.now()).waitingFor).toContain('update-result=successful');
    expect(updateEvents(kept)).toEqual(['UpdateFailed: no space left']);
  });

  test('by its label after its timeout has passed: once, and for the reason of the Node, or for none', async () => {
    const kept = await ready();
    kept.world.clock.advance(30 * MINUTE);
    kept.labelNode(UPDATE_RESULT_LABEL, 'failed');

    await kept.rest();

    expect(updateEvents(kept)).toEqual(['UpdateFailed: The Node reported that the update failed.']);
    expect(kept.world.warnings).toContainEqual(expect.objectContaining({ message: 'in-place update failed' }));
  });

  test('by its timeout, counted from when the Node was drained', async () => {
    const kept = await ready();
    kept.world.clock.advance(20 * MINUTE - 1_000);
    const { result } = await kept.rest();
    expect(kept.phase).toBe('InPlaceUpdating');
    expect(result).toMatchObject({ kind: 'requeue', afterMs: 1_000 });

    kept.world.clock.advance(1_000);
    await kept.rest();

    expect([reasonOf(kept), kept.phase]).toEqual(['ReadyForUpdate', 'InPlaceUpdateFailed']);
    expect(kept.machine.status?.lastOperation?.description).toContain('reported no result within 20m0s');
    // What to do where the agent had nothing to do, as after a rollback.
    expect(updateEvents(kept).at(-1)).toContain('node.machine.sapcloud.io/update-result=successful');
  });

  test('by its timeout, in which outages do not count, nor before the grace after one', async () => {
    const kept = await ready();
    const { world } = kept;
    world.clock.advance(30 * MINUTE);
    world.blindMs = 15 * MINUTE;
    await kept.rest();
    expect(kept.phase).toBe('InPlaceUpdating');

    world.clock.advance(5 * MINUTE);
    world.graceLeftMs = 1_000;
    await kept.rest();
    expect(kept.phase).toBe('InPlaceUpdating');
    world.graceLeftMs = 0;
    await kept.rest();

    expect(kept.phase).toBe('InPlaceUpdateFailed');
  });

  test.each(['InPlaceUpdateFailed', 'Failed'] as const)(
    'is mended by a late success, also when it is %s',
    async (phase) => {
      const kept = await ready();
      kept.labelNode(UPDATE_RESULT_LABEL, 'failed');
      await kept.rest();
      kept.setPhase(phase);

      kept.labelNode(UPDATE_RESULT_LABEL, 'successful');
      await kept.rest();

      expect([reasonOf(kept), kept.phase]).toEqual(['UpdateSuccessful', 'Running']);
    },
  );

  test('is replaced at the health timeout, although its Node is healthy, and stays Failed', async () => {
    const kept = await ready();
    kept.labelNode(UPDATE_RESULT_LABEL, 'failed');
    await kept.rest();

    kept.world.clock.advance(10 * MINUTE);
    await kept.rest();
    await kept.rest();

    expect(kept.phase).toBe('Failed');
    expect(kept.machine.status?.lastOperation).toMatchObject({ type: 'InPlaceUpdate', state: 'Failed' });
    expect(reasons(kept)).toContain('HealthTimeout');
  });

  test('is never replaced when disableHealthTimeout says so', async () => {
    const kept = await ready();
    kept.changeMachine((m) => (m.spec.disableHealthTimeout = true));
    kept.labelNode(UPDATE_RESULT_LABEL, 'failed');
    await kept.rest();

    kept.world.clock.advance(100 * HOUR);
    await kept.rest();

    expect(kept.phase).toBe('InPlaceUpdateFailed');
  });

  test.each([
    { what: 'its late success', result: 'successful', change: {} },
    {
      what: 'a Node that has changed since the cache has shown it',
      result: 'failed',
      change: { resourceVersion: '999' },
    },
  ])('is not, when a live look finds $what', async ({ result, change }) => {
    const kept = await ready();
    kept.labelNode(UPDATE_RESULT_LABEL, 'failed');
    await kept.rest();
    const updated = structuredClone(kept.node);
    (updated.metadata.labels ??= {})[UPDATE_RESULT_LABEL] = result;
    Object.assign(updated.metadata, change);
    kept.world.nodes.live.set('m-1', updated);

    kept.world.clock.advance(10 * MINUTE);
    await kept.pass();

    expect(kept.phase).toBe('InPlaceUpdateFailed');
  });

  test('although the agent says it succeeded, when the Node does not become healthy', async () => {
    const kept = await ready();
    kept.setReady(false);
    kept.labelNode(UPDATE_RESULT_LABEL, 'successful');
    await kept.rest();
    expect(kept.phase).toBe('InPlaceUpdateSuccessful');

    kept.world.clock.advance(10 * MINUTE);
    await kept.rest();

    expect(kept.phase).toBe('Failed');
    expect(kept.machine.status?.lastOperation?.type).toBe('HealthCheck');
    expect(reasonOf(kept)).toBe('ReadyForUpdate'); // nobody gives such a Node back to its pods
  });
});

describe('a Node that is selected without being a candidate', () => {
  const told = ({ world }: KeptMachine): string[] =>
    world.events.filter(({ reason }) => reason === 'NotACandidate').map(({ message }) => message);

  test('is left alone, and its machine says once which label is missing', async () => {
    const kept = new KeptMachine();
    kept.labelNode(SELECTED_FOR_UPDATE_LABEL, 'true');
    await kept.rest();
    await kept.pass();

    expect([reasonOf(kept), kept.phase, kept.world.drains.requests]).toEqual([undefined, 'Running', []]);
    expect(told(kept)).toEqual([expect.stringContaining(`without ${CANDIDATE_FOR_UPDATE_LABEL}`)]);
  });

  test('is told of again when the label comes again', async () => {
    const kept = new KeptMachine();
    for (const value of ['true', undefined, 'true']) {
      kept.labelNode(SELECTED_FOR_UPDATE_LABEL, value);
      await kept.rest();
    }

    expect(told(kept)).toHaveLength(2);
  });

  test('is updated once it is a candidate', async () => {
    const kept = new KeptMachine();
    kept.labelNode(SELECTED_FOR_UPDATE_LABEL, 'true');
    await kept.rest();
    kept.labelNode(CANDIDATE_FOR_UPDATE_LABEL, 'true');
    await kept.rest();

    expect(reasonOf(kept)).toBe('SelectedForUpdate');
    expect(told(kept)).toHaveLength(1);
  });
});

/** What may happen around an update, in any order. */
const ACTIONS: readonly KeptAction[] = [
  (kept) => kept.labelNode(CANDIDATE_FOR_UPDATE_LABEL, 'true'),
  (kept) => kept.labelNode(SELECTED_FOR_UPDATE_LABEL, 'true'),
  (kept) => kept.labelNode(UPDATE_RESULT_LABEL, 'successful'),
  (kept) => kept.labelNode(UPDATE_RESULT_LABEL, 'failed'),
  (kept) => kept.annotateMachine(PRESERVE_ANNOTATION, 'when-failed'),
  (kept) => kept.setReady(true),
  (kept) => kept.setReady(false),
  (kept) => kept.world.clock.advance(5 * MINUTE),
  (kept) => kept.world.clock.advance(3 * HOUR),
  ...KEPT_ACTIONS,
];
const ORDER = ['', 'CandidateForUpdate', 'SelectedForUpdate', 'DrainSuccessful', 'ReadyForUpdate'];

test('whatever happens, the condition goes forward only, and a Node is ready only after it was drained', async () => {
  const histories = fc.array(fc.nat(ACTIONS.length - 1), { maxLength: 40, size: 'max' });
  const property = fc.asyncProperty(histories, async (history) => {
    const kept = new KeptMachine();
    let before = '';
    for (const action of history) {
      const drains = kept.world.drains.requests.length;
      await ACTIONS[action]?.(kept);
      const now = reasonOf(kept) ?? '';
      const goesBack = ORDER.includes(now) && ORDER.indexOf(now) < ORDER.indexOf(before);
      expect({ goesBack, isUndrained: now === 'ReadyForUpdate' && drains === 0 }).toEqual({
        goesBack: false,
        isUndrained: false,
      });
      before = now;
    }
    for (let i = 0; i < 4; i++) {
      await kept.rest();
      await kept.endDrains();
      kept.world.clock.advance(31_000);
    }
    await kept.rest();

    // Who may be updating the Node is always under a timeout, or has told of an end.
    expect([reasonOf(kept), kept.phase]).not.toEqual(['ReadyForUpdate', 'Running']);
    expect(kept.world.activities.get(kept.machine.metadata.uid, 'drain')).toBeUndefined();
  });
  await fc.assert(property, { numRuns: 150 });
});
