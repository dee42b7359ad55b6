import { describe, expect, test } from '@jest/globals';

import {
  machine,
  machineDeployment,
  machineSet,
  node,
  type BuiltMachineDeployment,
} from '../../../../test/builders.ts';
import { DeploymentWorld, passOver } from '../../../../test/fakes/replicas-world.ts';
import {
  CANDIDATE_FOR_SET_ANNOTATION,
  CANDIDATE_FOR_UPDATE_LABEL,
  FREEZE_LABEL,
  PREFER_NO_SCHEDULE_KEY,
  NODE_FINALIZER,
  UPDATE_RESULT_LABEL,
  UPDATED_FOR_SET_ANNOTATION,
} from '../../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { MachineSet } from '../../../apis/machine/v1alpha1/machine-set.ts';
import type { Node } from '../../../apis/wire.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { controllerReference } from '../../../work/reconcile/ownership.ts';
import { type MarkFacts, settleMarks } from './node-marks.ts';
import { AGAIN, markNodesOfRollout, recreate, rollingUpdate } from './rollout.ts';

const API_VERSION = 'machine.sapcloud.io/v1alpha1';
const owner = machineDeployment((d) => void (d.spec.replicas = 2));

/** A set of these Machines, of the present template or an older one. */
function setOf(name: string, machines: readonly string[], replicas: number): MachineSet {
  return machineSet((s) => {
    s.metadata.name = name;
    s.metadata.ownerReferences = [controllerReference(owner, API_VERSION, 'MachineDeployment')];
    s.spec.replicas = replicas;
    s.status.replicas = machines.length;
    if (name === 'old') s.spec.template.spec = { class: { kind: 'MachineClass', name: 'class-0' } };
  });
}

function machinesOf(set: MachineSet, names: readonly string[]): Machine[] {
  return names.map((name) =>
    machine((m) => {
      m.metadata.name = name;
      m.metadata.labels = { pool: 'a', node: name };
      m.metadata.ownerReferences = [controllerReference(set, API_VERSION, 'MachineSet')];
    }),
  );
}

function scene(
  deployment: BuiltMachineDeployment,
  old: readonly string[],
  now: readonly string[],
  nowSize = now.length,
) {
  const [oldSet, newSet] = [setOf('old', old, old.length), setOf('now', now, nowSize)];
  const deps = new DeploymentWorld(deployment, {
    sets: [oldSet, newSet],
    machines: [...machinesOf(oldSet, old), ...machinesOf(newSet, now)],
    nodes: [...old, ...now].map((name) => node((n) => void (n.metadata.name = name))),
  });
  const pass = () => ({ ...passOver(deployment), observed: deps.observed(deployment) });
  const sizes = (): string[] =>
    deps.client.writes.flatMap(({ what, body }) => {
      const { spec } = body as { spec?: { replicas?: number } };
      return spec?.replicas === undefined ? [] : [`${what} ${spec.replicas}`];
    });
  return { deps, pass, sizes };
}

describe('a rolling update', () => {
  test('grows the new set first, and shrinks nothing by sizes of a moment before', async () => {
    const { deps, pass, sizes } = scene(owner, ['o-1', 'o-2'], [], 0);

    await rollingUpdate(deps, pass());

    expect(sizes()).toEqual(['machinesets/now 1']);
  });

  test('that grows shrinks nothing in the same pass, also where old Machines could go', async () => {
    const eager = machineDeployment((d) => {
      d.spec.replicas = 2;
      d.spec.strategy.rollingUpdate = { maxSurge: 1, maxUnavailable: 1 };
    });
    const { deps, pass, sizes } = scene(eager, ['o-1', 'o-2'], [], 0);

    await rollingUpdate(deps, pass());

    expect(sizes()).toEqual(['machinesets/now 1']);
    expect(deps.targetClient.writes).toEqual([]);
  });

  test('marks the old Nodes before the first old Machine goes (MCM 496, MCM 754, MCM 765)', async () => {
    const { deps, pass, sizes } = scene(owner, ['o-1', 'o-2'], ['n-1']);

    expect(await rollingUpdate(deps, pass())).toEqual(AGAIN);

    expect(deps.targetClient.writes.map(({ what }) => what).toSorted()).toEqual(['nodes/o-1', 'nodes/o-2']);
    expect(deps.client.writes).toMatchObject([
      { what: 'machinesets/old', body: { metadata: { annotations: { [PREFER_NO_SCHEDULE_KEY]: 'True' } } } },
    ]);
    await rollingUpdate(deps, pass());
    expect(sizes()).toEqual(['machinesets/old 1']);
  });

  test('does not note a set as tainted of which a Node refused', async () => {
    const { deps, pass } = scene(owner, ['o-1', 'o-2'], ['n-1']);
    deps.targetClient.failures.push(new ApiError(403, 'Forbidden', 'no'));

    await rollingUpdate(deps, pass());

    expect(JSON.stringify(deps.client.writes)).not.toContain(PREFER_NO_SCHEDULE_KEY);
  });

  test('tells of the Nodes of each set that refused', async () => {
    const sets = [setOf('old', ['o-1'], 1), setOf('older', ['p-1'], 1), setOf('now', ['n-1'], 1)];
    for (const set of sets.slice(0, 2)) set.spec.template = { spec: { class: { name: set.metadata.name } } };
    const names = [['o-1'], ['p-1'], ['n-1']];
    const deps = new DeploymentWorld(owner, {
      sets,
      machines: sets.flatMap((set, i) => machinesOf(set, names[i] ?? [])),
      nodes: names.flat().map((name) => node((n) => void (n.metadata.name = name))),
    });
    deps.holdsScaleDownDuringRollout = true;
    deps.targetClient.failures.push(...names.map(() => new ApiError(403, 'Forbidden', 'no')));
    const pass = { ...passOver(owner), observed: deps.observed(owner) };

    await markNodesOfRollout(deps, pass, { taint: false });

    expect(deps.events).toEqual(['NodeUpdateFailed', 'NodeUpdateFailed', 'NodeUpdateFailed']);
  });

  test.each([
    { what: 'about to be held with its first marks', finalizers: [], isHere: true, isHeld: false },
    {
      what: 'marked already, before the rollout or in parts',
      finalizers: [NODE_FINALIZER],
      isHere: true,
      isHeld: true,
    },
    { what: 'marked by another process', finalizers: [], isHere: false, isHeld: true },
  ])('holds the new Nodes of machines that run; one that joins and is $what: $isHeld', async (row) => {
    const rolled = machineDeployment();
    const sets = [setOf('old', ['o-1'], 1), setOf('now', ['n-1', 'n-2'], 2)];
    const [old] = sets;
    if (old !== undefined) old.spec.template = { spec: { class: { name: 'old' } } };
    const names = [['o-1'], ['n-1', 'n-2']];
    const machines = sets.flatMap((set, i) => machinesOf(set, names[i] ?? []));
    const pending = machines.find(({ metadata }) => metadata.name === 'n-2');
    if (pending?.status?.currentStatus !== undefined) pending.status.currentStatus.phase = 'Pending';
    const { finalizers } = row;
    const all = names
      .flat()
      .map((name) => node((n) => void Object.assign(n.metadata, { name, uid: `uid-of-${name}`, finalizers })));
    const deps = new DeploymentWorld(rolled, { sets, machines, nodes: all });
    deps.holdsScaleDownDuringRollout = true;
    deps.holdsJoiningNodes = row.isHere;
    const pass = { ...passOver(rolled), observed: deps.observed(rolled) };

    await markNodesOfRollout(deps, pass, { taint: false });

    const written = ['nodes/o-1', 'nodes/n-1', ...(row.isHeld ? ['nodes/n-2'] : [])];
    expect(deps.targetClient.writes.map(({ what }) => what)).toEqual(written);
  });

  test('that has more Nodes than one pass can mark goes on at once, and shrinks nothing before', async () => {
    const names = Array.from({ length: 101 }, (_unused, i) => `o-${i}`);
    const large = machineDeployment((d) => void (d.spec.replicas = 101));
    const { deps, pass, sizes } = scene(large, names, ['n-1']);

    expect(await rollingUpdate(deps, pass())).toEqual(AGAIN);
    expect(sizes()).toEqual([]);
  });
});

describe('a Recreate', () => {
  const recreating = (isFrozen = false): BuiltMachineDeployment =>
    machineDeployment((d) => {
      d.spec.replicas = 2;
      d.spec.strategy = { type: 'Recreate' };
      if (isFrozen) d.metadata.labels[FREEZE_LABEL] = 'True';
    });

  test.each([
    { title: 'takes the old Machines first', old: 2, existing: 2, now: 0, want: ['machinesets/old 0'] },
    { title: 'waits for the last of them', old: 0, existing: 1, now: 0, want: [] },
    { title: 'then makes the new ones', old: 0, existing: 0, now: 0, want: ['machinesets/now 2'] },
    { title: 'takes none while it is frozen', old: 2, existing: 2, now: 0, isFrozen: true, want: [] },
    {
      title: 'takes the old ones before new ones that are too many, also while it is frozen',
      old: 2,
      existing: 2,
      now: 4,
      isFrozen: true,
      want: ['machinesets/old 0'],
    },
    { title: 'makes none while it is frozen', old: 0, existing: 0, now: 0, isFrozen: true, want: [] },
    {
      title: 'gives up what is too many, also while it is frozen',
      old: 0,
      existing: 0,
      now: 3,
      isFrozen: true,
      want: ['machinesets/now 2'],
    },
  ])('$title', async ({ old, existing, now, isFrozen, want }) => {
    const names = (prefix: string, count: number): string[] =>
      Array.from({ length: count }, (_u, i) => `${prefix}-${i}`);
    const { deps, pass, sizes } = scene(recreating(isFrozen), names('o', existing), names('n', now), now);
    const set = deps.machineSets.get('default/old');
    if (set === undefined) throw new Error('it is there');
    deps.machineSets.put({
      ...set,
      metadata: { ...set.metadata, resourceVersion: '2' },
      spec: { ...set.spec, replicas: old },
    });

    await recreate(deps, pass());

    expect(sizes()).toEqual(want);
  });

  test.each([
    { isFrozen: false, made: 1 },
    { isFrozen: true, made: 0 },
  ])('without its set, frozen: $isFrozen, makes $made', async ({ isFrozen, made }) => {
    const { deps, pass } = scene(recreating(isFrozen), [], [], 0);
    deps.machineSets.remove('default/now');

    await recreate(deps, pass());

    expect(deps.client.writes.filter(({ verb }) => verb === 'create')).toHaveLength(made);
  });
});

describe('departure: Nodes are free for the autoscaler once the last old machines are going (the original: with the complete rollout)', () => {
  const HELD = 'cluster-autoscaler.kubernetes.io/scale-down-disabled';
  const held = (name: string) =>
    node((n) => {
      const annotations = { [HELD]: 'true', [`${HELD}-by-mcm`]: 'true' };
      Object.assign(n.metadata, { name, resourceVersion: '2', annotations });
    });
  const going = (m: Machine): Machine => ({
    ...m,
    metadata: { ...m.metadata, resourceVersion: '2', deletionTimestamp: '2026-01-01T00:09:00Z' },
  });

  test.each<{ title: string; stage: MarkFacts['stage']; isGoing?: true; free: readonly string[] }>([
    { title: 'none while the rollout is choosing', stage: 'choosing', free: [] },
    {
      title: 'all but one for the pods of the last one that goes',
      stage: 'emptying',
      isGoing: true,
      free: ['nodes/n-2'],
    },
    { title: 'all of a rollout that is paused', stage: 'none', free: ['nodes/n-1', 'nodes/n-2', 'nodes/o-1'] },
  ])('$title', async ({ stage, isGoing, free }) => {
    // One of three new machines is still to come, so that the rollout is not complete.
    const three = machineDeployment((d) => void (d.spec.replicas = 3));
    const { deps, pass } = scene(three, ['o-1'], ['n-1', 'n-2'], 3);
    deps.holdsScaleDownDuringRollout = true;
    for (const name of ['o-1', 'n-1', 'n-2']) deps.nodes.put(held(name));
    const old = deps.machines.get('default/o-1');
    if (isGoing === true && old !== undefined) deps.machines.put(going(old));

    await settleMarks(deps, pass(), { stage, replacements: new Set() });

    expect(deps.targetClient.writes.map(({ what }) => what).toSorted()).toEqual(free);
  });
});

describe('marks without a reason', () => {
  const taint = { key: PREFER_NO_SCHEDULE_KEY, value: 'True', effect: 'PreferNoSchedule' };
  const HELD = 'cluster-autoscaler.kubernetes.io/scale-down-disabled';
  const hold = { [HELD]: 'true', [`${HELD}-by-mcm`]: 'true' };
  const over = { stage: 'none', replacements: new Set<string>() } as const;
  const marked = (name: string) =>
    node((n) => {
      Object.assign(n.metadata, { name, resourceVersion: '2', annotations: hold });
      n.spec.taints = [taint];
    });

  test('are taken from more Nodes than one pass can write', async () => {
    const names = Array.from({ length: 101 }, (_unused, i) => `n-${i}`);
    const { deps, pass } = scene(
      machineDeployment((d) => void (d.spec.replicas = 101)),
      [],
      names,
    );
    for (const name of names) deps.nodes.put(marked(name));

    expect(await settleMarks(deps, pass(), over)).toMatchObject({ hasMore: true });
  });

  test('go from the Nodes of the new set, and then its note, although it is not complete', async () => {
    const { deps, pass } = scene(owner, [], ['n-1'], 2);
    deps.holdsScaleDownDuringRollout = true;
    deps.nodes.put(marked('n-1'));
    note(deps, 'now');

    await settleMarks(deps, pass(), over);

    expect(deps.targetClient.writes).toMatchObject([
      { what: 'nodes/n-1', body: { metadata: { annotations: { [HELD]: null } }, spec: { taints: [] } } },
    ]);
    expect(deps.client.writes).toMatchObject([
      { what: 'machinesets/now', body: { metadata: { annotations: { [PREFER_NO_SCHEDULE_KEY]: null } } } },
    ]);
  });

  test('are still noted of the new set while a Node refuses', async () => {
    const { deps, pass } = scene(owner, [], ['n-1'], 2);
    deps.nodes.put(marked('n-1'));
    note(deps, 'now');
    deps.targetClient.failures.push(new ApiError(403, 'Forbidden', 'no'));

    await settleMarks(deps, pass(), over);

    expect(deps.events).toEqual(['NodeUpdateFailed']);
    expect(deps.client.writes).toEqual([]);
  });

  test('of an old set are its taint never, and what keeps the autoscaler away where nothing does that any more', async () => {
    const { deps, pass } = scene(owner, ['o-1'], ['n-1']);
    deps.holdsScaleDownDuringRollout = false;
    deps.nodes.put(marked('o-1'));
    note(deps, 'old');

    await settleMarks(deps, pass(), { ...over, stage: 'choosing' });

    const none = Object.fromEntries(Object.keys(hold).map((key) => [key, null]));
    expect(deps.targetClient.writes.map(({ what, body }) => [what, body])).toMatchObject([
      ['nodes/o-1', { metadata: { annotations: none } }],
    ]);
    expect(JSON.stringify(deps.targetClient.writes)).not.toContain('taints');
    expect(deps.client.writes).toEqual([]);
  });
});

test.each([
  { strategy: 'InPlaceUpdate' as const, updatedFor: 'before of now', loses: false },
  { strategy: 'InPlaceUpdate' as const, updatedFor: 'before of old', loses: true },
  { strategy: 'RollingUpdate' as const, updatedFor: 'before of now', loses: true },
])(
  'a Node of the new set, a candidate, noted to be updated for $updatedFor, loses its marks with $strategy: $loses',
  async ({ strategy, updatedFor, loses }) => {
    const deployment = machineDeployment((d) => Object.assign(d.spec.strategy, { type: strategy }));
    const { deps, pass } = scene(deployment, [], ['n-1']);
    const waiting = node((n) => {
      Object.assign(n.metadata, {
        name: 'n-1',
        resourceVersion: '2',
        labels: { [CANDIDATE_FOR_UPDATE_LABEL]: 'true' },
      });
      n.metadata.annotations = { [CANDIDATE_FOR_SET_ANNOTATION]: 'now', [UPDATED_FOR_SET_ANNOTATION]: updatedFor };
      n.spec.taints = [{ key: PREFER_NO_SCHEDULE_KEY, value: 'True', effect: 'PreferNoSchedule' }];
    });
    deps.nodes.put(waiting);

    await settleMarks(deps, pass(), { stage: 'none', replacements: new Set() });

    const body = { metadata: { labels: { [CANDIDATE_FOR_UPDATE_LABEL]: null } }, spec: { taints: [] } };
    expect(deps.targetClient.writes).toMatchObject(loses ? [{ what: 'nodes/n-1', body }] : []);
  },
);

test.each([
  { reason: 'UpdateSuccessful', at: '2026-01-01T01:00:00Z', loses: true },
  { reason: 'UpdateSuccessful', at: '2026-01-01T00:00:00Z', loses: false },
  { reason: 'UpdateSuccessful', at: '2026-01-01T01:00:00Z', result: 'successful', loses: false },
  { reason: 'CandidateForUpdate', at: '2026-01-01T01:00:00Z', loses: false },
])(
  'a Node that says $reason since $at, with the result $result, loses the note of an update at 2026-01-01T00:00:00Z, whichever set it is of: $loses',
  async ({ reason, at, result, loses }) => {
    const deployment = machineDeployment((d) => Object.assign(d.spec.strategy, { type: 'InPlaceUpdate' }));
    const { deps, pass } = scene(deployment, ['o-1'], ['n-1']);
    for (const [name, of] of [
      ['o-1', 'old'],
      ['n-1', 'now'],
    ] as const) {
      const noted = node((n) => {
        Object.assign(n.metadata, { name, resourceVersion: '2' });
        if (result !== undefined) n.metadata.labels[UPDATE_RESULT_LABEL] = result;
        n.metadata.annotations = { [UPDATED_FOR_SET_ANNOTATION]: `before of ${of} at 2026-01-01T00:00:00Z` };
        n.status.conditions = [{ type: 'InPlaceUpdate', status: 'True', reason, lastTransitionTime: at }];
      });
      deps.nodes.put(noted);
    }

    await settleMarks(deps, pass(), { stage: 'none', replacements: new Set() });

    const body = { metadata: { annotations: { [UPDATED_FOR_SET_ANNOTATION]: null } } };
    const lost = ['nodes/o-1', 'nodes/n-1'].map((what) => ({ what, resourceVersion: '2', body }));
    expect(deps.targetClient.writes).toMatchObject(loses ? lost : []);
  },
);

describe('a Node that was updated in place', () => {
  const over = { stage: 'none', replacements: new Set<string>() } as const;
  const taint = { key: PREFER_NO_SCHEDULE_KEY, value: 'True', effect: 'PreferNoSchedule' };
  const back = { metadata: { labels: { [UPDATE_RESULT_LABEL]: null } }, spec: { unschedulable: null } };

  test.each([
    { what: 'and chosen for that by a rollout, is given back after a change of the strategy', kept: false },
    {
      what: 'and is of the new set, but chosen for another, is given back with a note of that',
      noted: 'before',
      kept: false,
    },
    { what: 'by a person, stays as it is', chosen: false },
    { what: 'and whose machine is not well again, stays as it is', reason: 'ReadyForUpdate' },
    { what: 'and whose machine is in maintenance, stays as it is', maintained: true },
    { what: 'is given back as it was moved while the strategy is still that', type: 'InPlaceUpdate' as const },
  ])(
    '$what',
    async ({
      kept = true,
      chosen = true,
      noted = 'now',
      reason = 'UpdateSuccessful',
      maintained = false,
      type = 'RollingUpdate',
    }) => {
      const deployment = machineDeployment((d) => Object.assign(d.spec.strategy, { type }));
      const { deps, pass } = scene(deployment, ['o-1'], ['n-1']);
      for (const name of ['o-1', 'n-1']) {
        const updated = node((n) => {
          Object.assign(n.metadata, { name, resourceVersion: '2', labels: { [UPDATE_RESULT_LABEL]: 'successful' } });
          if (chosen) n.metadata.annotations[CANDIDATE_FOR_SET_ANNOTATION] = noted;
          n.spec = { unschedulable: true, taints: [taint] };
          n.status.conditions = [{ type: 'InPlaceUpdate', status: 'True', reason }];
        });
        deps.nodes.put(updated);
        const its = deps.machines.get(`default/${name}`);
        const annotations = { 'machine.sapcloud.io/maintenance-since': '2026-01-01T00:00:00Z' };
        if (its !== undefined && maintained)
          deps.machines.put({ ...its, metadata: { ...its.metadata, resourceVersion: '2', annotations } });
      }

      await settleMarks(deps, pass(), over);

      // Those after them take the taint from one that is of the new set.
      const writes = deps.targetClient.writes.slice(0, 2);
      expect(writes).toMatchObject(
        kept
          ? []
          : [
              { what: 'nodes/n-1', body: back },
              { what: 'nodes/o-1', body: back },
            ],
      );
      // One of an old template is still to be avoided, as one of the new set that runs another.
      const isAnother = noted !== 'now';
      const isTainted = writes.map(({ body }) => JSON.stringify(body).includes(PREFER_NO_SCHEDULE_KEY));
      expect(isTainted).toEqual(kept ? [] : [isAnother, true]);
      const runs = writes.map(
        ({ body }) => (body as { metadata: Node['metadata'] }).metadata.annotations?.[UPDATED_FOR_SET_ANNOTATION],
      );
      expect(runs).toEqual(kept ? [] : [isAnother ? 'before of now' : null, `${noted} of old`]);
    },
  );
});

/** The set is noted as tainted. */
function note(deps: DeploymentWorld, name: string): void {
  const set = deps.machineSets.get(`default/${name}`);
  if (set === undefined) throw new Error('no such set');
  const annotations = { ...set.metadata.annotations, [PREFER_NO_SCHEDULE_KEY]: 'True' };
  deps.machineSets.put({ ...set, metadata: { ...set.metadata, resourceVersion: '2', annotations } });
}
