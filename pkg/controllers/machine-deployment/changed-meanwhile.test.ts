import { describe, expect, test } from '@jest/globals';

import { machine, machineDeployment, machineSet, node, type BuiltMachineDeployment } from '../../../test/builders.ts';
import { DeploymentWorld } from '../../../test/fakes/replicas-world.ts';
import {
  CANDIDATE_FOR_UPDATE_LABEL,
  DESIRED_REPLICAS_ANNOTATION,
  LAST_SCALER_CHANGE_ANNOTATION,
  MACHINE_FINALIZER,
  PREFER_NO_SCHEDULE_KEY,
  REVISION_ANNOTATION,
  SELECTED_FOR_UPDATE_LABEL,
  TRIGGER_DELETION_ANNOTATION,
  UPDATE_RESULT_LABEL,
} from '../../apis/machine/v1alpha1/labels.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { ApiError } from '../../kube/client/errors.ts';
import { controllerReference } from '../../work/reconcile/ownership.ts';

const API_VERSION = 'machine.sapcloud.io/v1alpha1';
const KEY = 'default/deployment-1';
const NO_SURGE = { maxSurge: 0, maxUnavailable: 1 };
const STRATEGIES = {
  RollingUpdate: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 2, maxUnavailable: 0 } },
  Recreate: { type: 'Recreate' },
  InPlaceUpdate: { type: 'InPlaceUpdate', inPlaceUpdate: { ...NO_SURGE, orchestrationType: 'Manual' } },
} as const;

interface Scene {
  readonly now?: number;
  readonly old?: number;
  readonly as: (d: BuiltMachineDeployment) => void;
}

/** A MachineDeployment of 3 replicas, scaled to that, and its sets of `now` and `old` Machines; the taint of the rollout is on the old ones. */
function world({ now, old, as }: Scene): DeploymentWorld {
  const owner = machineDeployment((d) => {
    d.metadata.finalizers = [MACHINE_FINALIZER];
    d.metadata.annotations = { [REVISION_ANNOTATION]: '2' };
    d.spec.replicas = 3;
    as(d);
  });
  const sets = Object.entries({ now, old }).flatMap(([name, replicas]) => {
    if (replicas === undefined) return [];
    const set = machineSet((s) => {
      Object.assign(s.metadata, { name, uid: name });
      s.metadata.ownerReferences = [controllerReference(owner, API_VERSION, 'MachineDeployment')];
      s.metadata.annotations = {
        [REVISION_ANNOTATION]: name === 'old' ? '1' : '2',
        [DESIRED_REPLICAS_ANNOTATION]: '3',
        ...(name === 'old' ? { [PREFER_NO_SCHEDULE_KEY]: 'True' } : {}),
      };
      s.spec.replicas = replicas;
      if (name === 'old') s.spec.template.spec = { class: { kind: 'MachineClass', name: 'class-0' } };
    });
    return [set];
  });
  const machines = sets.flatMap((set) =>
    Array.from({ length: set.spec.replicas ?? 0 }, (_, i) =>
      machine((m) => {
        const name = `${set.metadata.name}-${i}`;
        Object.assign(m.metadata, { name, uid: name, labels: { pool: 'a', node: name } });
        m.metadata.ownerReferences = [controllerReference(set, API_VERSION, 'MachineSet')];
      }),
    ),
  );
  const nodes = machines.map(({ metadata: { name } }) => node((n) => Object.assign(n.metadata, { name, uid: name })));
  const deps = new DeploymentWorld(owner, { sets, machines, nodes });
  deps.holdsScaleDownDuringRollout = true;
  return deps;
}

/** Somebody changes the MachineDeployment, and the cache has heard of it. */
function change(deps: DeploymentWorld, { annotations = {}, ...spec }: Record<string, unknown>): void {
  const object = deps.machineDeployments.get(KEY);
  if (object === undefined) throw new Error('it is there');
  const metadata = { ...object.metadata, resourceVersion: '900' };
  metadata.annotations = { ...metadata.annotations, ...(annotations as Record<string, string>) };
  deps.machineDeployments.put({ ...object, metadata, spec: { ...object.spec, ...spec } });
}

function loseNew(deps: DeploymentWorld): void {
  for (const one of deps.machines.list().filter(({ metadata: { name } }) => name.startsWith('now'))) {
    const metadata = { ...one.metadata, resourceVersion: '900' };
    const currentStatus = { ...one.status?.currentStatus, phase: 'Unknown' } as const;
    deps.machines.put({ ...one, metadata, status: { ...one.status, currentStatus } });
  }
}

/** Does this at the first write of the next pass to that client, before its answer. */
function meanwhile(client: DeploymentWorld['client'], verb: 'patch' | 'create', happens: () => void): void {
  const write = client[verb].bind(client) as (...args: readonly unknown[]) => Promise<unknown>;
  let isFirst = true;
  Object.assign(client, {
    [verb]: async (...args: readonly unknown[]): Promise<unknown> => {
      if (isFirst) happens();
      isFirst = false;
      return await write(...args);
    },
  });
}

const sizes = ({ machineSets }: DeploymentWorld): Record<string, number | undefined> =>
  Object.fromEntries(machineSets.list().map(({ metadata, spec }: MachineSet) => [metadata.name, spec.replicas]));

describe('while the Nodes of a rollout are marked,', () => {
  test.each([
    { type: 'RollingUpdate', what: 'no change', happens: () => undefined, old: 0 },
    { type: 'RollingUpdate', what: 'a pause', happens: (deps) => change(deps, { paused: true }), old: 2 },
    { type: 'RollingUpdate', what: 'more replicas', happens: (deps) => change(deps, { replicas: 5 }), old: 2 },
    { type: 'RollingUpdate', what: 'the loss of its new machines', happens: loseNew, old: 2 },
    { type: 'Recreate', what: 'no change', happens: () => undefined, old: 0 },
    { type: 'Recreate', what: 'a pause', happens: (deps) => change(deps, { paused: true }), old: 2 },
    { type: 'InPlaceUpdate', what: 'no change', happens: () => undefined, old: 0 },
    { type: 'InPlaceUpdate', what: 'a pause', happens: (deps) => change(deps, { paused: true }), old: 2 },
    { type: 'InPlaceUpdate', what: 'the loss of its new machines', happens: loseNew, old: 2 },
  ] satisfies {
    type: keyof typeof STRATEGIES;
    what: string;
    happens: (deps: DeploymentWorld) => void;
    old: number;
  }[])('$what leaves the old set of a $type with $old', async ({ type, happens, old }) => {
    const deps = world({ now: 3, old: 2, as: (d) => void (d.spec.strategy = STRATEGIES[type]) });
    meanwhile(deps.targetClient, 'patch', () => happens(deps));

    await deps.reconcile();

    expect(deps.targetClient.writes).not.toEqual([]);
    expect(sizes(deps)).toEqual({ now: 3, old });
  });
});

test('a rollout whose machines change with every write to a Node goes on all the same', async () => {
  const deps = world({ now: 3, old: 2, as: (d) => void (d.spec.strategy = STRATEGIES.RollingUpdate) });
  const write = deps.targetClient.patch.bind(deps.targetClient);
  let version = 900;
  deps.targetClient.patch = async (...args) => {
    for (const one of deps.machines.list()) {
      deps.machines.put({ ...one, metadata: { ...one.metadata, resourceVersion: String(++version) } });
    }
    return await write(...args);
  };

  await deps.reconcile();

  expect(sizes(deps)).toEqual({ now: 3, old: 0 });
});

test('what an autoscaler has chosen, and takes back while the first is marked, is not given up', async () => {
  const time = '2026-01-01T00:00:00Z';
  const chosen = ['now-0', 'now-1'].map((name) => `${name}~${time}`).join(',');
  const deps = world({
    now: 3,
    as: (d) => {
      d.spec.replicas = 1;
      Object.assign(d.metadata.annotations, { [TRIGGER_DELETION_ANNOTATION]: chosen });
      Object.assign(d.metadata.annotations, { [LAST_SCALER_CHANGE_ANNOTATION]: time });
    },
  });
  meanwhile(deps.client, 'patch', () =>
    change(deps, { replicas: 3, annotations: { [TRIGGER_DELETION_ANNOTATION]: '' } }),
  );

  expect(await deps.reconcile()).toMatchObject({ kind: 'requeue', afterMs: 0 });

  expect(deps.client.writes.map(({ what }) => what)).toContain('machines/now-0');
  expect(sizes(deps)).toEqual({ now: 3 });
});

test('replicas that are raised back while the mark of a moved machine may not be taken off are not given up', async () => {
  const deps = world({
    now: 3,
    as: (d) => {
      d.spec.strategy = STRATEGIES.InPlaceUpdate;
      d.spec.replicas = 1;
    },
  });
  const moved = deps.machines.get('default/now-0');
  if (moved === undefined) throw new Error('it is there');
  const labels = { ...moved.metadata.labels, [UPDATE_RESULT_LABEL]: 'successful' };
  deps.machines.put({ ...moved, metadata: { ...moved.metadata, labels, resourceVersion: '800' } });
  const patch = deps.client.patch.bind(deps.client);
  let refusals = 0;
  deps.client.patch = async (intent, resource, ...args) => {
    if (resource.plural !== 'machines') return await patch(intent, resource, ...args);
    refusals += 1;
    change(deps, { replicas: 3 });
    throw new ApiError(422, 'Invalid', 'by a webhook');
  };

  expect(await deps.reconcile()).toMatchObject({ kind: 'requeue', afterMs: 0 });

  expect(refusals).toBe(1);
  expect(sizes(deps)).toEqual({ now: 3 });
});

test.each([
  { what: 'nothing is changed', happens: () => undefined, chosen: ['nodes/old-1'] },
  { what: 'it is paused', happens: (deps: DeploymentWorld) => change(deps, { paused: true }), chosen: [] },
  { what: 'its new machines are lost', happens: loseNew, chosen: [] },
])(
  'when $what while a move in place is refused, Nodes are chosen for an update: $chosen',
  async ({ happens, chosen }) => {
    const inPlaceUpdate = { maxSurge: 0, maxUnavailable: 2, orchestrationType: 'Auto' } as const;
    const deps = world({
      now: 1,
      old: 2,
      as: (d) => void (d.spec.strategy = { type: 'InPlaceUpdate', inPlaceUpdate }),
    });
    const UPDATED = { type: 'InPlaceUpdate', status: 'True', reason: 'UpdateSuccessful' } as const;
    const its = deps.machines.get('default/old-0');
    if (its === undefined) throw new Error('it is there');
    const metadata = { ...its.metadata, resourceVersion: '800' };
    deps.machines.put({ ...its, metadata, status: { ...its.status, conditions: [UPDATED] } });
    for (const name of ['old-0', 'old-1']) {
      const isUpdated = name === 'old-0';
      const updated = { [SELECTED_FOR_UPDATE_LABEL]: 'true', [UPDATE_RESULT_LABEL]: 'successful' };
      deps.nodes.put(
        node((n) => {
          Object.assign(n.metadata, { name, uid: name, resourceVersion: '800' });
          n.metadata.labels = { [CANDIDATE_FOR_UPDATE_LABEL]: 'true', ...(isUpdated ? updated : {}) };
          if (isUpdated) n.status.conditions = [UPDATED];
        }),
      );
    }
    const patch = deps.client.patch.bind(deps.client);
    deps.client.patch = async (intent, resource, ...args) => {
      if (resource.plural !== 'machines') return await patch(intent, resource, ...args);
      happens(deps);
      throw new ApiError(422, 'Invalid', 'by a webhook');
    };

    await deps.reconcile();

    const selected = deps.targetClient.writes.filter(({ body }) =>
      JSON.stringify(body).includes(SELECTED_FOR_UPDATE_LABEL),
    );
    expect(selected.map(({ what }) => what)).toEqual(chosen);
  },
);

test('what is wanted no more when the creation of the new set fails again is not given to the old one', async () => {
  const deps = world({ old: 1, as: (d) => void (d.spec.strategy = STRATEGIES.RollingUpdate) });
  deps.client.create = async () => await Promise.reject(new ApiError(500, 'InternalError', 'no leader'));
  await deps.pass();
  deps.clock.advance(10_000);
  meanwhile(deps.client, 'create', () => change(deps, { replicas: 1 }));

  await deps.pass();

  expect(sizes(deps)).toEqual({ old: 1 });
});
