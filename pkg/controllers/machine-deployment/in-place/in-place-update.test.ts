import { describe, expect, test } from '@jest/globals';

import { machine, machineDeployment, machineSet, node, type BuiltMachine } from '../../../../test/builders.ts';
import { DeploymentWorld, passOver } from '../../../../test/fakes/replicas-world.ts';
import {
  CANDIDATE_FOR_SET_ANNOTATION,
  CANDIDATE_FOR_UPDATE_LABEL,
  FREEZE_LABEL,
  LAST_SCALER_CHANGE_ANNOTATION,
  MACHINE_NAME_LABEL,
  MARKED_FOR_DELETION_TIME_ANNOTATION,
  PREFER_NO_SCHEDULE_KEY,
  PRIORITY_ANNOTATION,
  SCALE_UP_DISABLED_LABEL,
  SELECTED_FOR_UPDATE_LABEL,
  UPDATE_RESULT_LABEL,
  UPDATED_FOR_SET_ANNOTATION,
} from '../../../apis/machine/v1alpha1/labels.ts';
import type { MachineSet } from '../../../apis/machine/v1alpha1/machine-set.ts';
import { controllerReference } from '../../../work/reconcile/ownership.ts';
import { stop } from '../../../work/reconcile/result.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { mergePatch } from '../../../kube/client/patch.ts';
import { machineDeployments, machines, machineSets as setResource, nodes } from '../../../kube/client/resource.ts';
import { AGAIN } from '../rollout/rollout.ts';
import { sizeNotes } from '../sets/new-set.ts';
import { countMoved, endBegunUpdates, inPlaceUpdate } from './in-place-update.ts';

const API_VERSION = 'machine.sapcloud.io/v1alpha1';
const FORBIDDEN = new ApiError(403, 'Forbidden', 'no');
const CONFLICT = new ApiError(409, 'Conflict', 'changed');
const WHEN = '2026-01-01T00:00:00Z';
const LATER = '2026-01-02T00:00:00Z';
const UPDATED = {
  type: 'InPlaceUpdate',
  status: 'True',
  reason: 'UpdateSuccessful',
  lastTransitionTime: WHEN,
} as const;

/** An old set with machines `o-…`, of which those in `updated` are done, and a new one with `n-…`; `moved` were handed over. */
function scene(made: Scene) {
  const {
    old,
    oldSize,
    now,
    nowSize,
    updated = [],
    moved = [],
    strangers = [],
    unavailable = 1,
    surge = 0,
    isFrozen = false,
  } = made;
  const deployment = machineDeployment((d) => {
    d.spec.replicas = old.length + now.length - surge;
    d.spec.strategy = {
      type: 'InPlaceUpdate',
      inPlaceUpdate: { maxSurge: surge, maxUnavailable: unavailable, orchestrationType: 'Auto' },
    };
    if (isFrozen) d.metadata.labels[FREEZE_LABEL] = 'True';
  });
  const setOf = (name: string, replicas: number): MachineSet =>
    machineSet((s) => {
      s.metadata.name = name;
      s.metadata.ownerReferences = [controllerReference(deployment, API_VERSION, 'MachineDeployment')];
      s.metadata.labels = name === 'old' ? { pool: 'a', [SCALE_UP_DISABLED_LABEL]: 'true' } : { pool: 'a' };
      s.spec.replicas = replicas;
      if (name === 'old') s.spec.template.spec = { class: { kind: 'MachineClass', name: 'class-0' } };
    });
  const [oldSet, newSet] = [setOf('old', oldSize ?? old.length), setOf('now', nowSize ?? now.length)];
  const machineOf = (set: MachineSet, name: string): BuiltMachine =>
    machine((m) => {
      m.metadata.name = name;
      m.metadata.labels = {
        pool: 'a',
        node: name,
        ...(moved.includes(name) && { [UPDATE_RESULT_LABEL]: 'successful' }),
      };
      m.metadata.ownerReferences = [controllerReference(set, API_VERSION, 'MachineSet')];
      if (updated.includes(name)) m.status.conditions = [UPDATED];
    });
  const candidate = { 'node.machine.sapcloud.io/candidate-for-update': 'true' };
  const deps = new DeploymentWorld(deployment, {
    sets: [oldSet, newSet],
    machines: [
      ...old.map((name) => machineOf(oldSet, name)),
      ...now.map((name) => machineOf(newSet, name)),
      machine((m) => void Object.assign(m.metadata, { name: 'stranger', labels: {} })),
    ],
    nodes: [...old, ...now].map((name) =>
      node((n) => {
        n.metadata.name = name;
        n.metadata.labels = {
          ...(old.includes(name) && candidate),
          ...(strangers.includes(name) && { [MACHINE_NAME_LABEL]: 'stranger' }),
          ...(updated.includes(name) && { [UPDATE_RESULT_LABEL]: 'successful' }),
        };
        if (updated.includes(name)) n.status.conditions = [UPDATED];
        if (old.includes(name)) n.metadata.annotations = { [CANDIDATE_FOR_SET_ANNOTATION]: 'now' };
        n.metadata.uid = `uid-of-${name}`;
        n.spec.taints = [{ key: PREFER_NO_SCHEDULE_KEY, effect: 'PreferNoSchedule' }];
      }),
    ),
  });
  // Only the moves are looked at here: the taint is there already.
  deps.machineSets.put({
    ...oldSet,
    metadata: { ...oldSet.metadata, resourceVersion: '2', annotations: { [PREFER_NO_SCHEDULE_KEY]: 'True' } },
  });
  /** One pass, with the time that its retries take. */
  const run = async (step = inPlaceUpdate) => {
    const pass = step(deps, { ...passOver(deployment), observed: deps.observed(deployment) });
    const [result] = await Promise.all([pass, deps.clock.advanceAsync(1_000)]);
    return result;
  };
  const written = (): string[] =>
    deps.client.writes.map(({ what }) => what).filter((what) => what !== 'machinesets/old');
  const writtenNodes = (): string[] => deps.targetClient.writes.map(({ what }) => what);
  return { deps, deployment, run, written, writtenNodes };
}

interface Scene {
  readonly old: readonly string[];
  readonly oldSize?: number;
  readonly now: readonly string[];
  readonly nowSize?: number;
  readonly updated?: readonly string[];
  readonly moved?: readonly string[];
  /** Nodes that their Machines name, and that are another machine's. */
  readonly strangers?: readonly string[];
  readonly unavailable?: number;
  readonly surge?: number;
  readonly isFrozen?: boolean;
}

const endBegun: typeof inPlaceUpdate = (deps, pass) => endBegunUpdates(deps, pass, true);

test('an updated Machine is given to the new set only as it was looked at', async () => {
  const { deps, run } = scene({ old: ['o-1', 'o-2'], now: [], updated: ['o-1'] });

  await run();

  const write = { what: 'machines/o-1', intent: 'change', uid: 'uid-of-machine-o-1', resourceVersion: '1' };
  expect(deps.client.writes.filter(({ what }) => what.startsWith('machines/'))).toMatchObject([write]);
});

test.each([
  { strangers: [], chosen: ['nodes/o-1', 'nodes/o-2'] },
  { strangers: ['o-1'], chosen: ['nodes/o-2'] },
])('of the Nodes that two Machines name, those are chosen that are not of another machine: $chosen', async (row) => {
  const { run, writtenNodes } = scene({ old: ['o-1', 'o-2'], now: [], unavailable: 2, strangers: row.strangers });

  await run();

  expect(writtenNodes()).toEqual(row.chosen);
});

test('a frozen MachineDeployment moves nothing', async () => {
  const { run, written } = scene({ old: ['o-1', 'o-2'], now: [], updated: ['o-1'], isFrozen: true });

  await run();

  expect(written()).toEqual([]);
});

test('the sizes follow from where Machines are, and nothing else is done with sizes of a moment before', async () => {
  const { run, written } = scene({ old: ['o-2'], now: ['o-1'], nowSize: 0, moved: ['o-1'], updated: ['o-1'] });

  await run();

  expect(written()).toEqual(['machinesets/now']);
});

test('a moved Machine stays protected from its new set until that counts it', async () => {
  const settling = { old: ['o-2'], now: ['n-1', 'n-2'], moved: ['n-1'] };
  const early = scene({ ...settling, nowSize: 1, isFrozen: true });
  const later = scene({ ...settling, nowSize: 2 });

  await early.run();
  await later.run();

  expect(early.written()).not.toContain('machines/n-1');
  expect(later.deps.client.writes).toContainEqual(
    expect.objectContaining({
      what: 'machines/n-1',
      body: { metadata: { labels: { [UPDATE_RESULT_LABEL]: null } } },
    }),
  );
});

test.each([
  { told: '2026-01-01T00:00:05Z', moves: [] },
  { told: '2026-01-01T00:00:01Z', moves: ['machines/o-1'] },
])(
  'an updated Machine that an autoscaler has chosen does not move once its set is told to delete it: $moves',
  async ({ told, moves }) => {
    const { deps, run, written } = scene({ old: ['o-1', 'o-2'], now: [], updated: ['o-1'] });
    const its = deps.machines.get('default/o-1');
    const set = deps.machineSets.get('default/old');
    if (its === undefined || set === undefined) throw new Error('they are there');
    const marks = { [PRIORITY_ANNOTATION]: '1', [MARKED_FOR_DELETION_TIME_ANNOTATION]: '2026-01-01T00:00:03Z' };
    deps.client.wrote(machines, { ...its, metadata: { ...its.metadata, annotations: marks } });
    const annotations = { ...set.metadata.annotations, [LAST_SCALER_CHANGE_ANNOTATION]: told };
    deps.client.wrote(setResource, { ...set, metadata: { ...set.metadata, annotations } });

    await run();

    expect(written().filter((what) => what.startsWith('machines/'))).toEqual(moves);
  },
);

test('a moved Machine keeps owners that are not its controller', async () => {
  const { deps, run } = scene({ old: ['o-1', 'o-2'], now: [], updated: ['o-1'] });
  const its = deps.machines.get('default/o-1');
  if (its === undefined) throw new Error('it is there');
  const other = { apiVersion: 'example.com/v1', kind: 'Audit', name: 'a', uid: 'a' };
  const ownerReferences = [...(its.metadata.ownerReferences ?? []), other];
  deps.machines.put({ ...its, metadata: { ...its.metadata, resourceVersion: '2', ownerReferences } });

  await run();

  const owners = deps.client.writes.flatMap(({ what, body }) =>
    what === 'machines/o-1'
      ? ((body as { metadata: { ownerReferences: object[] } }).metadata.ownerReferences ?? [])
      : [],
  );
  expect(owners).toMatchObject([{ kind: 'MachineSet', name: 'now', controller: true }, other]);
});

test('a frozen MachineDeployment chooses nothing, and makes no set', async () => {
  const choosing = scene({ old: ['o-1', 'o-2'], now: [], isFrozen: true });
  const without = scene({ old: ['o-1', 'o-2'], now: [], isFrozen: true });
  without.deps.machineSets.remove('default/now');

  await choosing.run();
  await without.run();

  expect([choosing.writtenNodes(), without.writtenNodes()]).toEqual([[], []]);
  expect(without.deps.client.writes).toEqual([]);
});

test('an old set that could make up for what moves is kept from it before anything else is done', async () => {
  const { deps, run } = scene({ old: ['o-1', 'o-2'], now: [], updated: ['o-1'] });
  const old = deps.machineSets.get('default/old');
  if (old === undefined) throw new Error('it is there');
  deps.machineSets.put({ ...old, metadata: { ...old.metadata, resourceVersion: '3', labels: { pool: 'a' } } });

  await run();

  expect(deps.client.writes[0]).toMatchObject({
    what: 'machinesets/old',
    body: { metadata: { labels: { [SCALE_UP_DISABLED_LABEL]: 'true' } } },
  });
});

test('nothing moves before all Nodes of old sets are marked', async () => {
  const old = Array.from({ length: 101 }, (_unused, i) => `o-${i}`);
  const { deps, run, written } = scene({ old, now: [], updated: ['o-1'] });
  for (const { metadata } of deps.nodes.list()) {
    deps.nodes.put(
      node((n) => Object.assign(n.metadata, { name: metadata.name, uid: metadata.uid, resourceVersion: '2' })),
    );
  }

  expect(await run()).toEqual(AGAIN);

  expect(written()).toEqual([]);
});

test('the last of an old set goes when the new set has all, and no other is chosen', async () => {
  const { deps, run, writtenNodes } = scene({ old: ['o-1'], now: ['n-1', 'n-2', 'n-3'], surge: 1 });

  await run();

  expect(deps.client.writes).toMatchObject([{ what: 'machinesets/old', body: { spec: { replicas: 0 } } }]);
  expect(writtenNodes()).toEqual([]);
});

test('a frozen set does not grow, also by what was moved to it', async () => {
  const { run, written } = scene({ old: ['o-2'], now: ['o-1'], nowSize: 0, moved: ['o-1'], isFrozen: true });

  await run();

  expect(written()).not.toContain('machinesets/now');
});

test('an updated Node that refuses to be given back holds up no move, and is told of once', async () => {
  const { deps, run, written } = scene({ old: ['o-2', 'o-3'], now: ['o-1'], updated: ['o-1', 'o-2'] });
  deps.targetClient.failures.push(FORBIDDEN);

  await run();
  await run();

  expect(written()).toContain('machines/o-2');
  expect(deps.events.filter((reason) => reason === 'NodeUpdateFailed')).toHaveLength(1);
});

test.each([
  { what: 'is in maintenance', annotation: 'machine.sapcloud.io/maintenance-since' },
  { what: 'is drained for its deletion', annotation: 'machine.sapcloud.io/deletion-preparation-since' },
])('an updated Node whose machine $what is given back when that is over', async ({ annotation }) => {
  const { deps, run } = scene({ old: ['o-2'], now: ['o-1'], updated: ['o-1'] });
  const updated = deps.machines.get('default/o-1');
  if (updated === undefined) throw new Error('there is no machine');
  const givenBack = (): unknown[] =>
    deps.targetClient.writes.filter(({ body }) => JSON.stringify(body).includes('unschedulable'));
  const since = { [annotation]: '2026-01-01T00:00:00Z' };
  deps.machines.put({ ...updated, metadata: { ...updated.metadata, resourceVersion: '2', annotations: since } });
  await run();
  const during = givenBack();

  deps.machines.put({ ...updated, metadata: { ...updated.metadata, resourceVersion: '3' } });
  await run();

  expect(during).toEqual([]);
  expect(givenBack()).toMatchObject([{ what: 'nodes/o-1' }]);
});

test('an updated Node that refuses to be given back does not keep the next one from being chosen where more may be unavailable', async () => {
  const { deps, run, writtenNodes } = scene({ old: ['o-2', 'o-3'], now: ['o-1'], updated: ['o-1'], unavailable: 2 });
  deps.targetClient.failures.push(FORBIDDEN);

  await run();

  expect(writtenNodes()).toEqual(['nodes/o-1', 'nodes/o-2']);
});

test('another Node is chosen in place of one that refuses, which is tried again later', async () => {
  const { deps, run, writtenNodes } = scene({ old: ['o-1', 'o-2'], now: [] });
  deps.targetClient.failures.push(FORBIDDEN);

  expect(await run()).toEqual(AGAIN);
  await run();

  expect(writtenNodes()).toEqual(['nodes/o-1', 'nodes/o-2']);
  expect(deps.events).toEqual(['NodeUpdateFailed']);
});

test('a Node that changed while it was chosen is chosen as a live read shows it', async () => {
  const { deps, run } = scene({ old: ['o-1', 'o-2'], now: [] });
  const live = node((n) => {
    Object.assign(n.metadata, { name: 'o-1', uid: 'uid-of-o-1', resourceVersion: '8' });
    n.metadata.labels = { 'node.machine.sapcloud.io/candidate-for-update': 'true' };
  });
  deps.targetClient.put(nodes, live);
  deps.targetClient.failures.push(CONFLICT);

  await run();

  expect(deps.targetClient.writes).toMatchObject([{ resourceVersion: '1' }, { resourceVersion: '8' }]);
  expect(deps.events).toEqual([]);
});

test.each([
  { to: 'another template', noted: 'before', updatedFor: `before of old at ${WHEN}` },
  { to: 'the template of its own set', noted: 'old', updatedFor: null },
])(
  'a Machine that was updated to $to is updated again, and never counted as one of this',
  async ({ noted, updatedFor }) => {
    const { deps, run, written } = scene({ old: ['o-1', 'o-2'], now: [], updated: ['o-1', 'o-2'] });
    notedFor(deps, 'o-1', noted);

    await run();
    const [first] = deps.targetClient.writes;

    expect(written()).toEqual(['machines/o-2']);
    expect(first).toMatchObject({
      what: 'nodes/o-1',
      body: {
        metadata: { annotations: { [UPDATED_FOR_SET_ANNOTATION]: updatedFor } },
        spec: { unschedulable: null },
      },
    });
    // It is still of an old template, and its next update is that of a rollout.
    expect(JSON.stringify(first?.body)).toContain(PREFER_NO_SCHEDULE_KEY);
  },
);

describe('a Machine of the new set that was updated to another template, as after a rollback', () => {
  test.each([
    { title: 'in the rollout', step: inPlaceUpdate },
    { title: 'while it is paused', step: endBegun },
  ])('is updated once more $title, and its Node stays empty until then', async ({ step }) => {
    const { deps, run, writtenNodes } = scene({ old: [], now: ['n-1', 'n-2'], updated: ['n-1', 'n-2'] });
    notedFor(deps, 'n-1', 'before');

    await run(step);
    await run(step);

    const [again] = deps.targetClient.writes;
    expect(writtenNodes()).toEqual(['nodes/n-1', 'nodes/n-2']);
    expect(again).toMatchObject({ intent: 'destroy', clusters: ['target'] });
    expect(deps.nodes.get('n-1')).toMatchObject({
      metadata: {
        labels: { [CANDIDATE_FOR_UPDATE_LABEL]: 'true', [SELECTED_FOR_UPDATE_LABEL]: 'true' },
        annotations: {
          [CANDIDATE_FOR_SET_ANNOTATION]: 'now',
          [UPDATED_FOR_SET_ANNOTATION]: `before of now at ${WHEN}`,
        },
      },
    });
    expect(deps.nodes.get('n-1')?.metadata.labels).not.toHaveProperty([UPDATE_RESULT_LABEL]);
    expect(JSON.stringify(again?.body)).not.toContain('unschedulable');
  });

  test.each([
    { title: 'has been updated to this one', noted: 'now', result: 'successful', changes: [{ unschedulable: null }] },
    { title: 'is being updated to this one', noted: 'now', result: undefined, changes: [] },
    {
      title: 'has changed otherwise',
      noted: 'before',
      result: 'successful',
      changes: [undefined],
    },
  ])('and $title meanwhile is treated as a live read shows it', async ({ noted, result, changes }) => {
    const { deps, run } = scene({ old: [], now: ['n-1'], updated: ['n-1'] });
    notedFor(deps, 'n-1', 'before');
    const live = node((n) => {
      Object.assign(n.metadata, { name: 'n-1', uid: 'uid-of-n-1', resourceVersion: '8' });
      if (result !== undefined) n.metadata.labels[UPDATE_RESULT_LABEL] = result;
      n.metadata.annotations[CANDIDATE_FOR_SET_ANNOTATION] = noted;
    });
    deps.targetClient.put(nodes, live);
    deps.targetClient.failures.push(CONFLICT);

    await run();

    const after = deps.targetClient.writes.slice(1).map(({ body }) => (body as { spec?: object }).spec);
    expect(after).toMatchObject(changes);
  });
});

describe('a Node of the new set that was chosen for another template, as before a rollback', () => {
  const CHOSEN = { [CANDIDATE_FOR_UPDATE_LABEL]: 'true', [SELECTED_FOR_UPDATE_LABEL]: 'true' };
  const chosenNode = (reason: string, noted: string | undefined) =>
    node((n) => {
      Object.assign(n.metadata, { name: 'n-1', uid: 'uid-of-n-1', resourceVersion: '8', labels: CHOSEN });
      if (noted !== undefined) n.metadata.annotations[CANDIDATE_FOR_SET_ANNOTATION] = noted;
      n.status.conditions = [{ type: 'InPlaceUpdate', status: 'True', reason }];
    });

  test.each([
    { reason: 'CandidateForUpdate', noted: 'before', isWithdrawn: true },
    { reason: 'SelectedForUpdate', noted: 'before', isWithdrawn: true },
    { reason: 'SelectedForUpdate', noted: 'before', step: endBegun, isWithdrawn: true },
    // It has been given to this set since: what it runs is not known.
    { reason: 'SelectedForUpdate', noted: 'before', ran: 'older of old', isWithdrawn: true },
    { reason: 'SelectedForUpdate', noted: 'now', isWithdrawn: false },
    { reason: 'SelectedForUpdate', noted: undefined, isWithdrawn: false },
    { reason: 'SelectedForUpdate', noted: 'before', phase: 'InPlaceUpdating' as const, isWithdrawn: false },
    { reason: 'DrainSuccessful', noted: 'before', isWithdrawn: false },
    { reason: 'ReadyForUpdate', noted: 'before', isWithdrawn: false },
    { reason: 'UpdateFailed', noted: 'before', isWithdrawn: false },
  ])(
    'and says $reason, noted $noted, of a machine $phase, updated before for $ran, is chosen no more: $isWithdrawn',
    async ({ reason, noted, ran, phase, step, isWithdrawn }) => {
      const { deps, run } = scene({ old: [], now: ['n-1', 'n-2'] });
      const chosen = chosenNode(reason, noted);
      if (ran !== undefined) chosen.metadata.annotations[UPDATED_FOR_SET_ANNOTATION] = ran;
      deps.nodes.put(chosen);
      const its = deps.machines.get('default/n-1');
      if (its === undefined) throw new Error('it is there');
      const status = { ...its.status, ...(phase !== undefined && { currentStatus: { phase } }) };
      deps.machines.put({ ...its, metadata: { ...its.metadata, resourceVersion: '2' }, status });

      await run(step ?? inPlaceUpdate);

      const labels = { [CANDIDATE_FOR_UPDATE_LABEL]: null, [SELECTED_FOR_UPDATE_LABEL]: null };
      const metadata = { labels, annotations: { [CANDIDATE_FOR_SET_ANNOTATION]: null } };
      expect(deps.targetClient.writes.filter(({ what }) => what === 'nodes/n-1')).toMatchObject(
        isWithdrawn ? [{ resourceVersion: '8', body: { metadata } }] : [],
      );
    },
  );

  test.each([
    { reason: 'CandidateForUpdate', noted: 'before', isNoted: true },
    { reason: 'SelectedForUpdate', noted: 'before', isNoted: true },
    { reason: 'SelectedForUpdate', noted: 'before', step: endBegun, isNoted: true },
    { reason: 'SelectedForUpdate', noted: 'now', isNoted: false },
    { reason: 'SelectedForUpdate', noted: undefined, isNoted: false },
    { reason: 'DrainSuccessful', noted: 'before', isNoted: false },
  ])(
    'and says $reason, noted $noted, and was updated to a third template before, stays chosen, and waits for its own set: $isNoted',
    async ({ reason, noted, step = inPlaceUpdate, isNoted }) => {
      const { deps, run } = scene({ old: [], now: ['n-1', 'n-2'] });
      const chosen = chosenNode(reason, noted);
      chosen.metadata.annotations[UPDATED_FOR_SET_ANNOTATION] = 'older of now';
      chosen.spec.taints = [{ key: PREFER_NO_SCHEDULE_KEY, value: 'True', effect: 'PreferNoSchedule' }];
      deps.nodes.put(chosen);

      await run(step);
      await run(step);

      const metadata = {
        labels: { [CANDIDATE_FOR_UPDATE_LABEL]: 'true' },
        annotations: { [CANDIDATE_FOR_SET_ANNOTATION]: 'now' },
      };
      expect(deps.targetClient.writes).toMatchObject(isNoted ? [{ resourceVersion: '8', body: { metadata } }] : []);
      expect(JSON.stringify(deps.targetClient.writes)).not.toContain(SELECTED_FOR_UPDATE_LABEL);
    },
  );

  test.each([
    { title: 'is empty', reason: 'DrainSuccessful', noted: 'before' },
    { title: 'is chosen for this template', reason: 'SelectedForUpdate', noted: 'now' },
  ])('and $title by the time that it is written is left as it is', async ({ reason, noted }) => {
    const { deps, run } = scene({ old: [], now: ['n-1'] });
    deps.nodes.put(chosenNode('SelectedForUpdate', 'before'));
    const live = chosenNode(reason, noted);
    deps.targetClient.put(nodes, { ...live, metadata: { ...live.metadata, resourceVersion: '9' } });
    deps.targetClient.failures.push(CONFLICT);

    await run();

    expect(deps.targetClient.writes).toMatchObject([{ resourceVersion: '8' }]);
    expect(deps.events).toEqual([]);
  });
});

describe('a Node of the new set that was updated to another template, and given back, before a rollback', () => {
  const given = (name: string, labels: object, noted?: string) =>
    node((n) => {
      const annotations = {
        [UPDATED_FOR_SET_ANNOTATION]: `before of now at ${WHEN}`,
        ...(noted !== undefined && { [CANDIDATE_FOR_SET_ANNOTATION]: noted }),
      };
      Object.assign(n.metadata, { name, uid: `uid-of-${name}`, resourceVersion: '8', labels, annotations });
      n.status.conditions = [UPDATED];
    });
  const isNow = (deps: DeploymentWorld, label: string, value: string) =>
    ['n-1', 'n-2', 'n-3'].filter((name) => {
      const { labels, annotations } = deps.nodes.get(name)?.metadata ?? {};
      return labels?.[label] === value || annotations?.[label] === value;
    });

  test.each([
    { title: 'waited for a third', labels: { [CANDIDATE_FOR_UPDATE_LABEL]: 'true' }, noted: 'after' },
    { title: 'waited for none, as while its rollout was paused', labels: {} },
  ])('and $title, is updated back, with no more unavailable than may be', async ({ labels, noted }) => {
    const { deps, run } = scene({ old: [], now: ['n-1', 'n-2', 'n-3'] });
    for (const name of ['n-1', 'n-2']) deps.nodes.put(given(name, labels, noted));

    await run(endBegun);
    expect(isNow(deps, CANDIDATE_FOR_SET_ANNOTATION, 'now')).toEqual(['n-1', 'n-2']);
    // It says whose the update is, should nobody own the Machine when it is over.
    expect(deps.nodes.get('n-1')?.spec?.taints).toMatchObject([{ key: PREFER_NO_SCHEDULE_KEY }]);
    expect(isNow(deps, SELECTED_FOR_UPDATE_LABEL, 'true')).toEqual([]);

    await run();
    await run();
    expect(isNow(deps, CANDIDATE_FOR_UPDATE_LABEL, 'true')).toEqual(['n-1', 'n-2']);
    expect(isNow(deps, SELECTED_FOR_UPDATE_LABEL, 'true')).toEqual(['n-1']);
  });

  test.each([
    { title: 'its Machine was given to the set since', updatedFor: 'before of old' },
    { title: 'it was updated and given back once more since', updatedFor: `before of now at ${LATER}` },
  ])('is one that needs no update when $title', async ({ updatedFor }) => {
    const { deps, run } = scene({ old: [], now: ['n-1', 'n-2'] });
    const its = given('n-1', { [CANDIDATE_FOR_UPDATE_LABEL]: 'true' }, 'after');
    its.metadata.annotations[UPDATED_FOR_SET_ANNOTATION] = updatedFor;
    deps.nodes.put(its);

    await run();
    await run();

    expect(deps.targetClient.writes).toMatchObject([
      { body: { metadata: { labels: { [CANDIDATE_FOR_UPDATE_LABEL]: null } } } },
    ]);
  });
});

test.each([
  { reason: 'UpdateSuccessful', at: WHEN, result: undefined, isKept: true },
  { reason: 'UpdateSuccessful', at: LATER, result: undefined, isKept: false },
  // Whoever gives the Node back writes the note anew.
  { reason: 'UpdateSuccessful', at: LATER, result: 'successful', isKept: true },
  { reason: 'CandidateForUpdate', at: LATER, result: undefined, isKept: true },
])(
  'a Node that becomes a candidate, and says $reason since $at and has the result $result, keeps the note of another update: $isKept',
  async ({ reason, at, result, isKept }) => {
    const { deps, run } = scene({ old: ['o-1'], now: [] });
    const its = node((n) => {
      const labels = { ...(result !== undefined && { [UPDATE_RESULT_LABEL]: result }) };
      const annotations = { [UPDATED_FOR_SET_ANNOTATION]: `before of old at ${WHEN}` };
      Object.assign(n.metadata, { name: 'o-1', uid: 'uid-of-o-1', resourceVersion: '8', labels, annotations });
      n.spec.taints = [{ key: PREFER_NO_SCHEDULE_KEY, value: 'True', effect: 'PreferNoSchedule' }];
      n.status.conditions = [{ type: 'InPlaceUpdate', status: 'True', reason, lastTransitionTime: at }];
    });
    deps.nodes.put(its);

    await run();

    const { labels, annotations } = deps.nodes.get('o-1')?.metadata ?? {};
    expect(labels?.[CANDIDATE_FOR_UPDATE_LABEL]).toBe('true');
    expect(annotations?.[UPDATED_FOR_SET_ANNOTATION]).toBe(isKept ? `before of old at ${WHEN}` : undefined);
  },
);

test('whose update a Node waits for is not written over one that has become empty meanwhile', async () => {
  const { deps, run } = scene({ old: ['o-1'], now: [] });
  const chosen = (reason: string, resourceVersion: string) =>
    node((n) => {
      Object.assign(n.metadata, { name: 'o-1', uid: 'uid-of-o-1', resourceVersion });
      n.metadata.labels = { [CANDIDATE_FOR_UPDATE_LABEL]: 'true', [SELECTED_FOR_UPDATE_LABEL]: 'true' };
      n.metadata.annotations[CANDIDATE_FOR_SET_ANNOTATION] = 'before';
      n.spec.taints = [{ key: PREFER_NO_SCHEDULE_KEY, value: 'True', effect: 'PreferNoSchedule' }];
      n.status.conditions = [{ type: 'InPlaceUpdate', status: 'True', reason }];
    });
  deps.nodes.put(chosen('SelectedForUpdate', '8'));
  deps.targetClient.put(nodes, chosen('DrainSuccessful', '9'));
  deps.targetClient.failures.push(CONFLICT);

  await run();

  expect(deps.targetClient.writes).toMatchObject([
    { resourceVersion: '8', body: { metadata: { annotations: { [CANDIDATE_FOR_SET_ANNOTATION]: 'now' } } } },
  ]);
});

describe('a Machine that was moved to a set which is no longer that of an update in place', () => {
  const unlabelled = { labels: { [UPDATE_RESULT_LABEL]: null } };
  const counted = async ({ deps, deployment }: ReturnType<typeof scene>, type: 'InPlaceUpdate' | 'RollingUpdate') => {
    const { strategy } = deployment.spec;
    const observed = deps.observed({ ...deployment, spec: { ...deployment.spec, strategy: { ...strategy, type } } });
    const hasCounted = await countMoved(deps, observed, passOver(deployment).signal);
    const changes = deps.client.writes.map(({ what, body }) => {
      const { spec, metadata } = body as { spec?: object; metadata: object };
      return [what, spec ?? metadata];
    });
    return { hasCounted, changes };
  };

  test.each([
    {
      title: 'because the strategy has changed',
      moved: { old: ['o-1', 'o-2'], now: ['n-1', 'n-2'], nowSize: 1, moved: ['n-1'] },
      type: 'RollingUpdate' as const,
      changes: [
        ['machinesets/now', { replicas: 2 }],
        ['machines/n-1', unlabelled],
      ],
    },
    {
      title: 'because the template has changed',
      moved: { old: ['o-1', 'o-2'], oldSize: 1, now: ['n-1'], nowSize: 0, moved: ['o-1', 'n-1'] },
      type: 'InPlaceUpdate' as const,
      changes: [
        ['machinesets/now', { replicas: 1 }],
        ['machinesets/old', { replicas: 2 }],
        ['machines/o-1', unlabelled],
      ],
      next: [['machines/n-1', unlabelled]],
    },
    {
      title: 'and is counted by it already',
      moved: { old: ['o-1', 'o-2'], now: [], moved: ['o-1'] },
      type: 'InPlaceUpdate' as const,
      changes: [['machines/o-1', unlabelled]],
    },
    {
      title: 'because the template was set back, so that the new set would make others in its place',
      moved: { old: ['o-1'], oldSize: 0, now: ['n-1', 'n-2'], nowSize: 3, moved: ['o-1'] },
      type: 'InPlaceUpdate' as const,
      changes: [
        ['machinesets/now', { replicas: 2 }],
        ['machinesets/old', { replicas: 1 }],
        ['machines/o-1', unlabelled],
      ],
    },
    {
      title: 'while the new set lacks more than was moved',
      moved: { old: ['o-1'], oldSize: 0, now: ['n-1'], nowSize: 4, moved: ['o-1'] },
      type: 'InPlaceUpdate' as const,
      changes: [
        ['machinesets/now', { replicas: 3 }],
        ['machinesets/old', { replicas: 1 }],
        ['machines/o-1', unlabelled],
      ],
    },
    {
      title: 'because the strategy has changed, so that its old set, which may refill again, would make another',
      moved: { old: ['o-1'], oldSize: 2, now: ['n-1'], nowSize: 0, moved: ['n-1'] },
      type: 'RollingUpdate' as const,
      changes: [
        ['machinesets/old', { replicas: 1 }],
        ['machinesets/now', { replicas: 1 }],
        ['machines/n-1', unlabelled],
      ],
    },
    {
      title: 'which is too large besides',
      moved: { old: ['o-1', 'o-2', 'o-3'], oldSize: 1, now: [], moved: ['o-1'] },
      type: 'InPlaceUpdate' as const,
      changes: [
        ['machinesets/old', { replicas: 2 }],
        ['machines/o-1', unlabelled],
      ],
    },
  ])('$title, is counted by it, and then is as any other', async ({ moved, type, changes, next = [] }) => {
    const late = scene(moved);

    expect(await counted(late, type)).toEqual({ hasCounted: true, changes });
    for (const _ of next) await counted(late, type);
    expect(await counted(late, type)).toEqual({ hasCounted: false, changes: [...changes, ...next] });
  });

  test('and is gone, although a watch that stalls still shows it, lets the pass go on', async () => {
    const late = scene({ old: ['o-1', 'o-2'], now: [], moved: ['o-1'] });
    late.deps.client.failures.push(new ApiError(404, 'NotFound', 'gone'));

    expect(await counted(late, 'InPlaceUpdate')).toMatchObject({ hasCounted: false });
  });

  test('is as any other once its new set counts it, so that replicas which are lowered while the rollout is paused are obeyed', async () => {
    const names = ['n-1', 'n-2', 'n-3', 'n-4'];
    const { deps, deployment } = scene({ old: [], now: names, moved: names });
    for (const set of deps.machineSets.list()) {
      const metadata = { ...set.metadata, annotations: sizeNotes(deployment), resourceVersion: '9' };
      deps.machineSets.put({ ...set, metadata });
    }
    const spec = { ...deployment.spec, replicas: 2, paused: true };
    deps.machineDeployments.put({ ...deployment, metadata: { ...deployment.metadata, resourceVersion: '9' }, spec });

    for (let i = 0; i < 9; i++) await deps.reconcile();

    expect(sizesOf(deps)).toEqual({ old: 0, now: 2 });
    expect(deps.machines.list().filter(({ metadata: { labels } }) => labels?.[UPDATE_RESULT_LABEL])).toEqual([]);
  });

  test('is given up by its old set before its new one counts it, so that nothing is lost if only that is written', async () => {
    const { deps, run } = scene({ old: ['o-1'], oldSize: 2, now: ['n-1'], nowSize: 0, moved: ['n-1'] });
    const sizesWritten = () =>
      deps.client.writes.flatMap(({ what, body }) => {
        const { replicas } = (body as { spec?: { replicas?: number } }).spec ?? {};
        return replicas === undefined ? [] : [`${what} ${replicas}`];
      });

    for (let i = 0; i < 5 && sizesWritten().length === 0; i++) await run();

    expect(sizesWritten()).toEqual(['machinesets/old 1', 'machinesets/now 1']);
  });

  test('stays when the template is set back before it is counted', async () => {
    const { deps } = scene({
      old: ['o-1'],
      oldSize: 0,
      now: ['n-1', 'n-2'],
      nowSize: 3,
      moved: ['o-1'],
      unavailable: 0,
    });

    for (let i = 0; i < 9; i++) await deps.reconcile();

    expect(sizesOf(deps)).toEqual({ old: 1, now: 2 });
  });

  test('is among the replicas that are lowered before its new set counts it', async () => {
    const { deps, deployment } = scene({
      old: ['o-1', 'o-2', 'o-3'],
      oldSize: 4,
      now: ['n-1'],
      nowSize: 0,
      moved: ['n-1'],
    });
    for (const set of deps.machineSets.list()) {
      const annotations = sizeNotes(deployment);
      deps.machineSets.put({ ...set, metadata: { ...set.metadata, annotations, resourceVersion: '9' } });
    }
    const spec = { ...deployment.spec, replicas: 2 };
    deps.machineDeployments.put({ ...deployment, metadata: { ...deployment.metadata, resourceVersion: '9' }, spec });

    for (let i = 0; i < 9; i++) await deps.reconcile();

    const { old = 0, now = 0 } = sizesOf(deps);
    expect(old + now).toBe(2);
  });

  test('goes with its MachineDeployment to another size', async () => {
    const { deps, deployment } = scene({ old: ['o-1'], oldSize: 0, now: [], moved: ['o-1'] });
    const spec = { ...deployment.spec, replicas: 0 };
    deps.machineDeployments.put({ ...deployment, metadata: { ...deployment.metadata, resourceVersion: '9' }, spec });

    for (let i = 0; i < 9; i++) await deps.reconcile();

    expect(deps.machineSets.get('default/old')?.spec.replicas).toBe(0);
    expect(deps.machines.get('default/o-1')?.metadata.labels).not.toHaveProperty([UPDATE_RESULT_LABEL]);
  });
});

describe('a Machine that may not be changed', () => {
  test('stops neither a rollout nor scaling of another strategy by its label, is counted once, and is told of once', async () => {
    const { deps, deployment } = scene({ old: [], oldSize: 0, now: ['n-1', 'n-2', 'n-3'], nowSize: 2, moved: ['n-1'] });
    const isRefusing = refuse(deps, 'machines/n-1');
    const strategy = { type: 'RollingUpdate' as const, rollingUpdate: { maxSurge: 1, maxUnavailable: 1 } };
    const run = async (replicas: number) => {
      const given = deps.machineDeployments.list()[0] ?? deployment;
      deps.client.wrote(machineDeployments, { ...given, spec: { ...given.spec, strategy, replicas } });
      for (let i = 0; i < 9; i++) await deps.reconcile();
      return sizesOf(deps);
    };

    expect(await run(6)).toEqual({ old: 0, now: 6 });
    expect(await run(2)).toEqual({ old: 0, now: 2 });

    expect(deps.events.filter((reason) => reason === 'MachineUpdateFailed')).toHaveLength(1);
    expect(JSON.stringify(deps.client.writes).split(UPDATE_RESULT_LABEL)).toHaveLength(2);

    isRefusing.now = false;
    await deps.clock.advanceAsync(1_000);
    await deps.reconcile();
    const { afterMs } = (await deps.reconcile()) as { afterMs: number };
    expect(afterMs).toBeLessThan(10_000);
    await deps.clock.advanceAsync(afterMs);
    expect(await run(2)).toEqual({ old: 0, now: 2 });
    expect(deps.machines.get('default/n-1')?.metadata.labels).not.toHaveProperty([UPDATE_RESULT_LABEL]);
  });

  test('is counted once by the new set of an update in place, which shrinks all the same', async () => {
    const now = ['n-1', 'n-2', 'n-3'];
    const { deps, run } = scene({ old: [], oldSize: 0, now, nowSize: 2, updated: ['n-1'], moved: ['n-1'], surge: 1 });
    const isRefusing = refuse(deps, 'machines/n-1');

    for (let i = 0; i < 9; i++) await run();

    expect(sizesOf(deps)).toEqual({ old: 0, now: 2 });
    expect(deps.targetClient.writes.map(({ what }) => what)).toEqual(['nodes/n-1']);

    isRefusing.now = false;
    await deps.clock.advanceAsync(10_000);
    await run();
    expect(deps.machines.get('default/n-1')?.metadata.labels).not.toHaveProperty([UPDATE_RESULT_LABEL]);
  });

  test('stays where it is, and another one that is updated takes its place in the new set', async () => {
    const { deps, run } = scene({ old: ['o-1', 'o-2'], now: ['n-1'], updated: ['o-1', 'o-2'], surge: 1 });
    refuse(deps, 'machines/o-1');

    expect(await run()).toEqual(stop);
    await run();

    const moves = deps.client.writes.filter(({ what }) => what.startsWith('machines/'));
    expect(moves.map(({ what }) => what)).toEqual(['machines/o-1', 'machines/o-2']);
    expect(deps.events).toEqual(['MachineUpdateFailed']);
  });

  test('is not told of when the API server fails once, as in a change of etcd, and is when it fails again, once', async () => {
    const { deps, deployment } = scene({ old: [], now: ['o-1'], moved: ['o-1'] });
    const told: number[] = [];

    for (let times = 0; times < 3; times += 1) {
      deps.client.failures.push(new ApiError(500, 'InternalError', 'etcdserver: leader changed'));
      await deps.moves.end(deployment, deps.machines.list(), passOver(deployment).signal);
      told.push(deps.events.length);
      await deps.clock.advanceAsync(60_000);
    }

    expect(told).toEqual([0, 1, 1]);
  });

  test('is not taken for one that is counted when it moves again', async () => {
    const { deps, deployment } = scene({ old: ['o-1'], now: [], moved: ['o-1'] });
    const { signal } = passOver(deployment);
    const its = deps.machines.list();
    deps.client.failures.push(FORBIDDEN);
    await deps.moves.end(deployment, its, signal);
    expect(its.map((one) => deps.moves.isCounted(one))).toEqual([true, false]);

    await deps.moves.move(deployment, its, (one) => mergePatch(one, {}), signal);

    expect(its.map((one) => deps.moves.isCounted(one))).toEqual([false, false]);
  });

  test('is told of also if another one has changed meanwhile, for which the pass is repeated', async () => {
    const { deps, run } = scene({ old: ['o-1', 'o-2'], now: [], updated: ['o-1', 'o-2'] });
    deps.client.failures.push(FORBIDDEN, CONFLICT);

    await expect(run()).rejects.toBe(CONFLICT);

    expect(deps.events).toEqual(['MachineUpdateFailed']);
  });

  /** Refuses changes of the label of a Machine while `now`. */
  function refuse({ client }: DeploymentWorld, what: string): { now: boolean } {
    const isRefusing = { now: true };
    const patch = client.patch.bind(client);
    client.patch = (intent, resource, ref, change, options) => {
      const isRefused =
        what === `${resource.plural}/${ref.name}` && JSON.stringify(change.body).includes(UPDATE_RESULT_LABEL);
      if (isRefused && isRefusing.now) client.failures.unshift(FORBIDDEN);
      return patch(intent, resource, ref, change, options);
    };
    return isRefusing;
  }
});

describe('while it is paused', () => {
  test('an updated Machine moves on, and no other is chosen', async () => {
    const { run, written, writtenNodes } = scene({ old: ['o-1', 'o-2'], now: [], updated: ['o-1'] });

    expect(await run(endBegun)).toEqual(AGAIN);

    expect(written()).toEqual(['machines/o-1']);
    expect(writtenNodes()).toEqual([]);
  });

  test('the sizes follow from what has moved', async () => {
    const moved = ['n-1'];
    const { deps, run } = scene({ old: ['o-1'], now: ['n-1'], nowSize: 0, updated: moved, moved });

    expect(await run(endBegun)).toEqual(AGAIN);

    const sizes = deps.client.writes.map(({ what, body }) => [what, (body as { spec?: object }).spec]);
    expect(sizes).toEqual([['machinesets/now', { replicas: 1 }]]);
  });

  test('what an old set has lost is made anew by the new one', async () => {
    const { deps, run } = scene({ old: ['o-1', 'o-2'], now: ['n-1'] });
    deps.machines.remove('default/o-2');

    await run(endBegun);
    expect(await run(endBegun)).toEqual(AGAIN);
    expect(await run(endBegun)).toEqual(stop);

    expect(sizesOf(deps)).toEqual({ old: 1, now: 2 });
  });

  test.each([
    { title: 'more replicas are machines of the new set', isFrozen: false, sizes: { old: 4, now: 4 } },
    { title: 'a frozen MachineDeployment makes nothing', isFrozen: true, sizes: { old: 4, now: 1 } },
  ])('$title', async ({ isFrozen, sizes }) => {
    const { deps, deployment } = scene({ old: ['o-1', 'o-2', 'o-3', 'o-4'], now: ['n-1'], isFrozen });
    const spec = { ...deployment.spec, replicas: 8, paused: true };
    deps.machineDeployments.put({ ...deployment, metadata: { ...deployment.metadata, resourceVersion: '9' }, spec });

    for (let i = 0; i < 9; i++) await deps.reconcile();

    expect(sizesOf(deps)).toEqual(sizes);
  });

  test('more replicas are machines of the new set also when it has none yet', async () => {
    const { deps, deployment } = scene({ old: ['o-1', 'o-2'], now: [] });
    const spec = { ...deployment.spec, replicas: 4, paused: true };
    deps.machineDeployments.put({ ...deployment, metadata: { ...deployment.metadata, resourceVersion: '9' }, spec });

    for (let i = 0; i < 9; i++) await deps.reconcile();

    expect(sizesOf(deps)).toEqual({ old: 2, now: 2 });
  });

  test('the newest old set makes what is missing while there is none of the present template', async () => {
    const { deps, deployment } = scene({ old: ['o-1', 'o-2'], now: ['n-1', 'n-2'] });
    deps.machines.remove('default/o-1');
    const its = deps.machineSets.get('default/now');
    if (its === undefined) throw new Error('it is there');
    const labels = { ...its.metadata.labels, [SCALE_UP_DISABLED_LABEL]: 'true' };
    const creationTimestamp = '2027-01-01T00:00:00Z';
    deps.machineSets.put({ ...its, metadata: { ...its.metadata, resourceVersion: '9', labels, creationTimestamp } });
    const template = { ...deployment.spec.template, spec: { class: { kind: 'MachineClass', name: 'class-9' } } };
    const spec = { ...deployment.spec, replicas: 6, template, paused: true };
    deps.machineDeployments.put({ ...deployment, metadata: { ...deployment.metadata, resourceVersion: '9' }, spec });

    for (let i = 0; i < 9; i++) await deps.reconcile();

    expect(sizesOf(deps)).toEqual({ old: 1, now: 5 });
    const isClosed = (name: string) =>
      deps.machineSets.get(`default/${name}`)?.metadata.labels?.[SCALE_UP_DISABLED_LABEL] !== undefined;
    expect([isClosed('old'), isClosed('now')]).toEqual([true, false]);
  });

  test('a Machine that has moved has its Node given back', async () => {
    const { run, writtenNodes } = scene({ old: ['o-1'], now: ['n-1'], updated: ['n-1'] });

    await run(endBegun);

    expect(writtenNodes()).toEqual(['nodes/n-1']);
  });

  test('a Machine whose template has changed again stays, and its Node is given back', async () => {
    const { deps, run, written, writtenNodes } = scene({ old: ['o-1', 'o-2'], now: [], updated: ['o-1'] });
    deps.machineSets.remove('default/now');

    await run(endBegun);
    expect(await run(endBegun)).toEqual(stop);

    expect(written()).toEqual([]);
    expect(writtenNodes()).toEqual(['nodes/o-1']);
  });

  test.each([
    { title: 'the rollout to its template has not begun', hasBegun: false, noted: 'now', moved: false },
    { title: 'it was updated to a template of before', hasBegun: true, noted: 'before', moved: false },
    { title: 'it was updated to the present template', hasBegun: true, noted: 'now', moved: true },
  ])('$title: an updated Machine moves on: $moved', async ({ hasBegun, noted, moved }) => {
    const { deps, run, written, writtenNodes } = scene({ old: ['o-1', 'o-2'], now: [], updated: ['o-1'] });
    notedFor(deps, 'o-1', noted);

    await run((given, pass) => endBegunUpdates(given, pass, hasBegun));

    expect(written()).toEqual(moved ? ['machines/o-1'] : []);
    expect(writtenNodes()).toEqual(moved ? [] : ['nodes/o-1']);
  });

  test('a Node that is kept empty for another reason is not given back', async () => {
    const { deps, run, writtenNodes } = scene({ old: ['o-1', 'o-2'], now: [], updated: ['o-1'] });
    deps.machineSets.remove('default/now');
    const its = deps.machines.get('default/o-1');
    if (its === undefined) throw new Error('it is there');
    const annotations = { 'machine.sapcloud.io/maintenance-since': '2026-01-01T00:00:00Z' };
    deps.machines.put({ ...its, metadata: { ...its.metadata, resourceVersion: '2', annotations } });

    await run(endBegun);

    expect(writtenNodes()).toEqual([]);
  });
});

function sizesOf({ machineSets }: DeploymentWorld): Record<string, number | undefined> {
  return Object.fromEntries(machineSets.list().map(({ metadata, spec }) => [metadata.name, spec.replicas]));
}

/** Notes on a Node for which set it was chosen. */
function notedFor(deps: DeploymentWorld, name: string, set: string): void {
  const its = deps.nodes.get(name);
  if (its === undefined) throw new Error(`there is no Node ${name}`);
  const annotations = { [CANDIDATE_FOR_SET_ANNOTATION]: set };
  deps.nodes.put({ ...its, metadata: { ...its.metadata, resourceVersion: '2', annotations } });
}
