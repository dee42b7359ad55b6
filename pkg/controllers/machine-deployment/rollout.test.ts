import { describe, expect, test } from '@jest/globals';

import { machine, machineDeployment, machineSet, node, type BuiltMachineDeployment } from '../../../test/builders.ts';
import { MemoryDeploymentDeps } from '../../../test/machine-deployment-deps.ts';
import { PREFER_NO_SCHEDULE_KEY } from '../../apis/machine/v1alpha1/labels.ts';
import { NODE_FINALIZER } from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { ApiError } from '../../kube/errors.ts';
import { controllerReference } from '../../reconcile/ownership.ts';
import { NodeMarker } from './node-marker.ts';
import { finishRollout, markNodesOfRollout, rollingUpdate } from './rollout.ts';

const never = new AbortController().signal;
const NONE: ReadonlySet<string> = new Set();
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
  const deps = new MemoryDeploymentDeps(deployment, {
    sets: [oldSet, newSet],
    machines: [...machinesOf(oldSet, old), ...machinesOf(newSet, now)],
    nodes: [...old, ...now].map((name) => node((n) => void (n.metadata.name = name))),
  });
  const pass = () => ({
    deps,
    marker: new NodeMarker(deps),
    world: deps.world(deployment),
    signal: never,
    replacements: NONE,
  });
  const sizes = (): string[] =>
    deps.client.writes.flatMap(({ what, body }) => {
      const { spec } = body as { spec?: { replicas?: number } };
      return spec?.replicas === undefined ? [] : [`${what} ${spec.replicas}`];
    });
  return { deps, pass, sizes };
}

describe('a rolling update', () => {
  test('grows the new set first, and shrinks nothing by sizes of a moment before', async () => {
    const { pass, sizes } = scene(owner, ['o-1', 'o-2'], [], 0);

    await rollingUpdate(pass());

    expect(sizes()).toEqual(['machinesets/now 1']);
  });

  test('marks the old Nodes before the first old Machine goes (MCM 496, MCM 754, MCM 765)', async () => {
    const { deps, pass, sizes } = scene(owner, ['o-1', 'o-2'], ['n-1']);

    await rollingUpdate(pass());

    expect(deps.targetClient.writes.map(({ what }) => what).toSorted()).toEqual(['nodes/o-1', 'nodes/o-2']);
    expect(deps.client.writes[0]).toMatchObject({
      what: 'machinesets/old',
      body: { metadata: { annotations: { [PREFER_NO_SCHEDULE_KEY]: 'True' } } },
    });
    expect(sizes()).toEqual(['machinesets/old 1']);
  });

  test('does not note a set as tainted of which a Node refused', async () => {
    const { deps, pass } = scene(owner, ['o-1', 'o-2'], ['n-1']);
    deps.targetClient.failures.push(new ApiError(403, 'Forbidden', 'no'));

    await rollingUpdate(pass());

    expect(JSON.stringify(deps.client.writes)).not.toContain(PREFER_NO_SCHEDULE_KEY);
  });

  test('tells of the Nodes of each set that refused', async () => {
    const sets = [setOf('old', ['o-1'], 1), setOf('older', ['p-1'], 1), setOf('now', ['n-1'], 1)];
    for (const set of sets.slice(0, 2)) set.spec.template = { spec: { class: { name: set.metadata.name } } };
    const names = [['o-1'], ['p-1'], ['n-1']];
    const deps = new MemoryDeploymentDeps(owner, {
      sets,
      machines: sets.flatMap((set, i) => machinesOf(set, names[i] ?? [])),
      nodes: names.flat().map((name) => node((n) => void (n.metadata.name = name))),
    });
    deps.holdsScaleDownDuringRollout = true;
    deps.targetClient.failures.push(...names.map(() => new ApiError(403, 'Forbidden', 'no')));
    const pass = { deps, marker: new NodeMarker(deps), world: deps.world(owner), signal: never, replacements: NONE };

    await markNodesOfRollout(pass, { taint: false });

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
    const deps = new MemoryDeploymentDeps(rolled, { sets, machines, nodes: all });
    deps.holdsScaleDownDuringRollout = true;
    deps.holdsJoiningNodes = row.isHere;
    const pass = { deps, marker: new NodeMarker(deps), world: deps.world(rolled), signal: never, replacements: NONE };

    await markNodesOfRollout(pass, { taint: false });

    const written = ['nodes/o-1', 'nodes/n-1', ...(row.isHeld ? ['nodes/n-2'] : [])];
    expect(deps.targetClient.writes.map(({ what }) => what)).toEqual(written);
  });

  test('that has more Nodes than one pass can mark goes on at once, and shrinks nothing before', async () => {
    const names = Array.from({ length: 101 }, (_unused, i) => `o-${i}`);
    const large = machineDeployment((d) => void (d.spec.replicas = 101));
    const { pass, sizes } = scene(large, names, ['n-1']);

    expect(await rollingUpdate(pass())).toEqual({ again: true });
    expect(sizes()).toEqual([]);
  });
});

test('the end of a rollout comes back for Nodes that still carry its marks', async () => {
  const names = Array.from({ length: 101 }, (_unused, i) => `n-${i}`);
  const done = machineDeployment((d) => {
    d.spec.replicas = 101;
    d.status = { replicas: 101, updatedReplicas: 101, availableReplicas: 101, observedGeneration: 1 };
  });
  const { deps, pass } = scene(done, [], names);
  for (const name of names) {
    const taint = { key: PREFER_NO_SCHEDULE_KEY, value: 'True', effect: 'PreferNoSchedule' };
    const tainted = node((n) => Object.assign(n.metadata, { name, resourceVersion: '2' }) && (n.spec.taints = [taint]));
    deps.nodes.put(tainted);
  }

  expect(await finishRollout(pass())).toEqual({ again: true });
});
