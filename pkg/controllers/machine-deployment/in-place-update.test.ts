import { expect, test } from '@jest/globals';

import { machine, machineDeployment, machineSet, node, type BuiltMachine } from '../../../test/builders.ts';
import { MemoryDeploymentDeps } from '../../../test/machine-deployment-deps.ts';
import {
  FREEZE_LABEL,
  PREFER_NO_SCHEDULE_KEY,
  SCALE_UP_DISABLED_LABEL,
  UPDATE_RESULT_LABEL,
} from '../../apis/machine/v1alpha1/labels.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { controllerReference } from '../../reconcile/ownership.ts';
import { ApiError } from '../../kube/errors.ts';
import { nodes } from '../../kube/resource.ts';
import { inPlaceUpdate } from './in-place-update.ts';
import { NodeMarker } from './node-marker.ts';

const API_VERSION = 'machine.sapcloud.io/v1alpha1';
const FORBIDDEN = new ApiError(403, 'Forbidden', 'no');
const CONFLICT = new ApiError(409, 'Conflict', 'changed');
const UPDATED = { type: 'InPlaceUpdate', status: 'True', reason: 'UpdateSuccessful' } as const;

/** An old set with machines `o-…`, of which those in `updated` are done, and a new one with `n-…`; `moved` were handed over. */
function scene({ old, now, nowSize, updated = [], moved = [], unavailable = 1, isFrozen = false }: Scene) {
  const deployment = machineDeployment((d) => {
    d.spec.replicas = old.length + now.length;
    d.spec.strategy = {
      type: 'InPlaceUpdate',
      inPlaceUpdate: { maxSurge: 0, maxUnavailable: unavailable, orchestrationType: 'Auto' },
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
  const [oldSet, newSet] = [setOf('old', old.length), setOf('now', nowSize ?? now.length)];
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
  const deps = new MemoryDeploymentDeps(deployment, {
    sets: [oldSet, newSet],
    machines: [...old.map((name) => machineOf(oldSet, name)), ...now.map((name) => machineOf(newSet, name))],
    nodes: [...old, ...now].map((name) =>
      node((n) => {
        n.metadata.name = name;
        n.metadata.labels = {
          ...(old.includes(name) && candidate),
          ...(updated.includes(name) && { [UPDATE_RESULT_LABEL]: 'successful' }),
        };
        if (updated.includes(name)) n.status.conditions = [UPDATED];
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
  const marker = new NodeMarker(deps);
  /** One pass, with the time that its retries take. */
  const run = async () => {
    const { signal } = new AbortController();
    const pass = inPlaceUpdate({ deps, marker, world: deps.world(deployment), signal, replacements: new Set() });
    const [result] = await Promise.all([pass, deps.clock.advanceAsync(1_000)]);
    return result;
  };
  const written = (): string[] =>
    deps.client.writes.map(({ what }) => what).filter((what) => what !== 'machinesets/old');
  const writtenNodes = (): string[] => deps.targetClient.writes.map(({ what }) => what);
  return { deps, run, written, writtenNodes };
}

interface Scene {
  readonly old: readonly string[];
  readonly now: readonly string[];
  readonly nowSize?: number;
  readonly updated?: readonly string[];
  readonly moved?: readonly string[];
  readonly unavailable?: number;
  readonly isFrozen?: boolean;
}

test('an updated Machine is given to the new set only as it was looked at', async () => {
  const { deps, run } = scene({ old: ['o-1', 'o-2'], now: [], updated: ['o-1'] });

  await run();

  const write = { what: 'machines/o-1', intent: 'change', uid: 'uid-of-machine-o-1', resourceVersion: '1' };
  expect(deps.client.writes.filter(({ what }) => what.startsWith('machines/'))).toMatchObject([write]);
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
  expect(deps.events).toEqual(['NodeUpdateFailed']);
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

  expect(await run()).toEqual({ again: true });
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
