import { describe, expect, test } from '@jest/globals';

import { machine, machineDeployment, machineSet, node, type BuiltMachineSet } from '../../../test/builders.ts';
import { SetWorld } from '../../../test/fakes/replicas-world.ts';
import {
  EFFECTIVE_CREATION_TIMEOUT_ANNOTATION,
  MACHINE_FINALIZER,
  PREFER_NO_SCHEDULE_KEY,
} from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { MINUTE_MS, toTimestamp } from '../../base/clock/clock.ts';
import { GateClosedError } from '../../kube/gate/gate.ts';
import { ApiError } from '../../kube/client/errors.ts';
import { nodes } from '../../kube/client/resource.ts';
import { CREATION_LIMIT_REACHED } from '../replicas/creation-brake.ts';
import { controllerReference } from '../../work/reconcile/ownership.ts';

const KEY = 'default/set-1';

function set(change?: (s: BuiltMachineSet) => void): BuiltMachineSet {
  return machineSet((s) => {
    s.metadata.finalizers = [MACHINE_FINALIZER];
    change?.(s);
  });
}

function owned(change?: (m: ReturnType<typeof machine>) => void): Machine {
  return machine((m) => {
    m.metadata.ownerReferences = [controllerReference(set(), 'machine.sapcloud.io/v1alpha1', 'MachineSet')];
    change?.(m);
  });
}

test('the finalizer comes first, and holds only for the set that was looked at', async () => {
  const deps = new SetWorld([machineSet()], [owned()]);

  await deps.reconcile();

  const { uid, resourceVersion } = machineSet().metadata;
  expect(deps.client.writes[0]).toMatchObject({
    uid,
    resourceVersion,
    body: { metadata: { finalizers: [MACHINE_FINALIZER] } },
  });
});

test('what is refused is told, with the state of everything else, as a spec that is not obeyed', async () => {
  const left = set((s) => {
    s.metadata.generation = 2;
    s.metadata.annotations = { [PREFER_NO_SCHEDULE_KEY]: 'True' };
    s.spec.replicas = 2;
  });
  const unwell = owned((m) => void (m.status.currentStatus.phase = 'Unknown'));
  const deps = new SetWorld([left], [unwell]);
  deps.client.failures.push(new ApiError(422, 'Invalid', 'the set is protected'));

  await deps.pass();

  const status = deps.machineSets.get(KEY)?.status;
  expect(status).toMatchObject({ observedGeneration: 1, replicas: 1 });
  expect(status?.availableReplicas ?? 0).toBe(0);
  expect(status?.machineSetCondition).toContainEqual(
    expect.objectContaining({
      type: 'ReplicaFailure',
      reason: 'ChangeRefused',
      message: 'A change of machinesets/set-1 is refused, and retried: the set is protected',
    }),
  );
  expect(deps.events).toEqual(['ChangeRefused']);
});

test('an API server that fails once refuses nothing, and one that fails again does', async () => {
  const left = set((s) => void (s.metadata.annotations = { [PREFER_NO_SCHEDULE_KEY]: 'True' }));
  const deps = new SetWorld([left], [owned()]);
  const fails = () => new ApiError(500, 'InternalError', 'etcdserver: leader changed');
  deps.client.failures.push(fails());

  const { result, writes } = await deps.pass();
  expect(result).toMatchObject({ code: 500 });
  expect(writes).toEqual(['patch machinesets/set-1']);
  expect(deps.events).toEqual([]);

  deps.client.failures.push(fails());
  await deps.pass();
  expect(deps.events).toEqual(['ChangeRefused']);
  expect(JSON.stringify(deps.machineSets.get(KEY)?.status)).toContain('etcdserver: leader changed');

  deps.clock.advance(1_000);
  await deps.pass();
  expect(JSON.stringify(deps.machineSets.get(KEY)?.status)).not.toContain('ChangeRefused');
  const calm = deps.machineSets.get(KEY) as MachineSet;
  deps.machineSets.put({ ...calm, metadata: { ...calm.metadata, ...left.metadata, resourceVersion: '99' } });
  deps.client.failures.push(fails());
  await deps.pass();
  expect(deps.events).toEqual(['ChangeRefused']);
});

describe('a set looks again by itself', () => {
  test('soon after a Failed machine was spared because its Node works', async () => {
    const failed = owned((m) => void (m.status.currentStatus.phase = 'Failed'));
    const deps = new SetWorld([set()], [failed]);
    deps.targetClient.put(nodes, node());

    const { result, writes } = await deps.pass();

    expect(writes).not.toContain('delete machines/m-1');
    expect(result).toMatchObject({ kind: 'requeue', afterMs: 15_000 });
  });

  test('and replaces one within a minute that its controller has seen and left Failed', async () => {
    const tainted = node((n) => void n.status.conditions.push({ type: 'Tainted', status: 'True' }));
    const failed = owned((m) => {
      m.status.currentStatus.phase = 'Failed';
      m.status.conditions = tainted.status.conditions;
    });
    const deps = new SetWorld([set()], [failed]);
    deps.targetClient.put(nodes, tainted);

    for (let looks = 0; looks < 4; looks += 1) {
      expect((await deps.pass()).writes).not.toContain('delete machines/m-1');
      deps.clock.advance(15_000);
    }

    expect((await deps.pass()).writes).toContain('delete machines/m-1');
  });

  test('soon when there is no room for what is missing', async () => {
    const deployment = machineDeployment();
    const reference = controllerReference(deployment, 'machine.sapcloud.io/v1alpha1', 'MachineDeployment');
    const large = set((s) => {
      s.spec.replicas = 3;
      s.metadata.ownerReferences = [reference];
    });
    const two = [owned(), owned((m) => void (m.metadata.name = 'm-2'))];
    const deps = new SetWorld([large], two);
    deps.machineDeployments.put(deployment);

    const { result, writes } = await deps.pass();

    expect(writes.filter((text) => text.startsWith('create'))).toEqual([]);
    expect(result).toMatchObject({ kind: 'requeue', afterMs: 10_000 });
  });

  test('when the preservation of a Failed machine ends', async () => {
    const deps = new SetWorld([set()]);
    const expiry = toTimestamp(deps.clock.now() + 60_000);
    const kept = owned((m) => Object.assign(m.status.currentStatus, { phase: 'Failed', preserveExpiryTime: expiry }));
    deps.machines.put(kept);

    const { result } = await deps.pass();

    expect(result).toMatchObject({ kind: 'requeue', afterMs: 60_000 });
  });

  test('when it was too early for another status', async () => {
    const deps = new SetWorld([set()], [owned()]);
    deps.machines.put(
      owned((m) => Object.assign(m.status.currentStatus, { phase: 'Pending' }) && (m.metadata.resourceVersion = '2')),
    );
    await deps.reconcile();
    deps.machines.put(owned((m) => void (m.metadata.resourceVersion = '3')));
    deps.machineSets.put(
      set((s) => Object.assign(s.metadata, { resourceVersion: '9' }) && (s.status.readyReplicas = 0)),
    );

    expect(await deps.reconcile()).toMatchObject({ afterMs: 250 });
  });
});

describe('a Failed machine of a set that has no room for what it lacks', () => {
  const worldOf = (change?: (d: ReturnType<typeof machineDeployment>) => void): SetWorld => {
    const deployment = machineDeployment((d) => {
      d.spec.replicas = 3;
      d.spec.strategy = { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } };
      change?.(d);
    });
    const owners = [controllerReference(deployment, 'machine.sapcloud.io/v1alpha1', 'MachineDeployment')];
    const current = set((s) => Object.assign(s.metadata, { ownerReferences: owners }) && (s.spec.replicas = 3));
    const old = set((s) => Object.assign(s.metadata, { name: 'old', uid: 'old-uid', ownerReferences: owners }));
    const machines = [
      owned((m) => void (m.metadata.creationTimestamp = '2025-12-31T23:00:00Z')),
      owned((m) => {
        Object.assign(m.metadata, { name: 'm-2', uid: 'm-2', finalizers: [MACHINE_FINALIZER] });
        m.status.currentStatus.phase = 'Failed';
      }),
      owned((m) =>
        Object.assign(m.metadata, {
          name: 'old-1',
          uid: 'old-1',
          ownerReferences: [controllerReference(old, 'machine.sapcloud.io/v1alpha1', 'MachineSet')],
        }),
      ),
    ];
    const deps = new SetWorld([current, old], machines);
    deps.machineDeployments.put(deployment);
    return deps;
  };

  test('is replaced, by one, as long as others have what room there is', async () => {
    const deps = worldOf();

    for (let i = 0; i < 3; i++) await deps.pass();

    expect(deps.acts.map(({ verb, what }) => `${verb} ${what}`)).toEqual([
      'delete machines/m-2',
      'create machines/set-1-new-1',
    ]);
  });

  test('waits for what is going with what is missing: it would be replaced by more than one, beyond replicas and surge', async () => {
    const deps = worldOf();
    const old = deps.machines.get('default/old-1');
    if (old === undefined) throw new Error('it is there');
    const metadata = { ...old.metadata, deletionTimestamp: '2026-01-01T00:00:00Z', resourceVersion: '2' };
    deps.machines.put({ ...old, metadata });

    const { result } = await deps.pass();

    expect([deps.acts, result]).toMatchObject([[], { waitingFor: 'room for its machines' }]);
  });

  test('stays while its MachineDeployment was stopped, because it created too much: nothing would replace it', async () => {
    const stopped = { type: 'Frozen', status: 'True', reason: CREATION_LIMIT_REACHED } as const;
    const deps = worldOf((d) => void (d.status.conditions = [stopped]));

    const { result } = await deps.pass();

    expect([deps.acts, result]).toMatchObject([[], { waitingFor: 'changes of its machines' }]);
  });
});

test('a Failed machine is replaced in the pass that deletes it: in a rollout there is room for that only while it is seen going', async () => {
  const deployment = machineDeployment();
  const owners = [controllerReference(deployment, 'machine.sapcloud.io/v1alpha1', 'MachineDeployment')];
  const current = set((s) => void (s.metadata.ownerReferences = owners));
  const old = set((s) => Object.assign(s.metadata, { name: 'old', uid: 'old-uid', ownerReferences: owners }));
  const others = Array.from({ length: 3 }, (_, n) =>
    owned((m) =>
      Object.assign(m.metadata, {
        name: `old-${n}`,
        uid: `old-${n}`,
        deletionTimestamp: '2026-01-01T00:00:00Z',
        ownerReferences: [controllerReference(old, 'machine.sapcloud.io/v1alpha1', 'MachineSet')],
      }),
    ),
  );
  const failed = owned((m) => {
    m.metadata.finalizers = [MACHINE_FINALIZER];
    m.status.currentStatus.phase = 'Failed';
  });
  const deps = new SetWorld([current, old], [failed, ...others]);
  deps.machineDeployments.put(deployment);

  const { writes } = await deps.pass();

  expect(writes.filter((text) => /^(create|delete) /.test(text))).toEqual([
    'delete machines/m-1',
    'create machines/set-1-new-1',
  ]);
});

test.each([
  { what: 'creates all that is missing waits', replicas: 2, afterMs: 600_000 },
  { what: 'creates a part of what is missing comes back at once', replicas: 202, afterMs: 0 },
  { what: 'deletes what is too much comes back at once', replicas: 0, afterMs: 0 },
  { what: 'finds nothing to do waits', replicas: 1, afterMs: 600_000 },
])('a pass that $what', async ({ replicas, afterMs }) => {
  const deps = new SetWorld([set((s) => void (s.spec.replicas = replicas))], [owned()]);

  expect(await deps.reconcile()).toMatchObject({ afterMs });
});

describe('a Machine that could not be created', () => {
  test('is told in the status, and tried again', async () => {
    const deps = new SetWorld([set()]);
    const refused = new ApiError(403, 'Forbidden', 'exceeded quota');
    deps.client.failures.push(refused);

    const { result } = await deps.pass();

    expect(result).toBe(refused);
    expect(deps.client.writes.at(-1)).toMatchObject({
      what: 'machinesets/set-1/status',
      body: { status: { machineSetCondition: [{ type: 'ReplicaFailure', message: 'exceeded quota' }] } },
    });
  });

  test('because of a closed gate is no failure of the set', async () => {
    const deps = new SetWorld([set()]);
    const closed = new GateClosedError('outage', 'control', 'closed');
    deps.client.failures.push(closed);

    const { result } = await deps.pass();

    expect(result).toBe(closed);
    expect(JSON.stringify(deps.client.writes.at(-1)?.body)).not.toContain('ReplicaFailure');
  });
});

test.each([
  { what: 'is surplus', replicas: 0, phase: 'Running', code: 403, reason: 'Forbidden' },
  { what: 'is surplus', replicas: 0, phase: 'Running', code: 500, reason: 'InternalError' },
  { what: 'has failed', replicas: 1, phase: 'Failed', code: 403, reason: 'Forbidden' },
] as const)('a Machine that $what and may not be deleted is told in the status, until it is deleted', async (row) => {
  const unwanted = owned((m) => void (m.status.currentStatus.phase = row.phase));
  const deps = new SetWorld([set((s) => void (s.spec.replicas = row.replicas))], [unwanted]);
  deps.client.failures.push(new ApiError(row.code, row.reason, 'protected'));
  const told = () => deps.machineSets.get(KEY)?.status?.machineSetCondition;

  const { result } = await deps.pass();
  expect(result).toMatchObject({ code: row.code });
  expect(told()).toContainEqual(
    expect.objectContaining({ type: 'ReplicaFailure', reason: 'FailedDelete', message: 'protected' }),
  );
  deps.clock.advance(MINUTE_MS);
  await deps.pass();

  expect(deps.machines.list()).not.toContainEqual(unwanted);
  expect(told() ?? []).toEqual([]);
});

test('a failed creation and a refused change that alternate are one condition for a minute', async () => {
  const unwilling = owned((m) => void (m.metadata.labels = { pool: 'b' }));
  const deps = new SetWorld([set()]);
  deps.client.failures.push(new ApiError(403, 'Forbidden', 'exceeded quota'));
  await deps.pass();
  const failed = deps.machineSets.get(KEY)?.status?.machineSetCondition;

  deps.machines.put(unwilling);
  deps.client.failures.push(new ApiError(403, 'Forbidden', 'protected'));
  deps.clock.advance(1_000);
  await deps.pass();

  expect(failed).toMatchObject([{ type: 'ReplicaFailure', reason: 'FailedCreate', message: 'exceeded quota' }]);
  expect(deps.events).toContain('ChangeRefused');
  expect(JSON.stringify(deps.machineSets.get(KEY)?.status?.machineSetCondition)).not.toContain('ChangeRefused');
});

test('a frozen set creates nothing', async () => {
  const deps = new SetWorld([set((s) => void (s.metadata.labels['freeze'] = 'True'))], []);

  const { writes } = await deps.pass();

  expect(writes.filter((text) => text.startsWith('create'))).toEqual([]);
});

test('a set that is deleted in the middle of a burst stops creating', async () => {
  const large = set((s) => void (s.spec.replicas = 20));
  const deps = new SetWorld([large]);
  const create = deps.client.create.bind(deps.client);
  deps.client.create = (...args) => {
    deps.machineSets.put(set((s) => Object.assign(s.metadata, { deletionTimestamp: 'now', resourceVersion: '2' })));
    return create(...args);
  };

  const { writes } = await deps.pass();

  expect(writes.filter((text) => text.startsWith('create'))).toHaveLength(1);
});

test.each([
  { what: 'raised', change: (s: BuiltMachineSet) => void (s.spec.replicas = 3) },
  { what: 'made smaller', change: (s: BuiltMachineSet) => void (s.spec.replicas = 0) },
  { what: 'such that it cannot be obeyed', change: (s: BuiltMachineSet) => void (s.spec.replicas = -1) },
  { what: 'deleted', change: (s: BuiltMachineSet) => void (s.metadata.deletionTimestamp = 'now') },
])('a set that is $what while its Machines are changed deletes none of what it had too much', async ({ change }) => {
  const smaller = (then?: (s: BuiltMachineSet) => void): BuiltMachineSet =>
    set((s) => {
      s.spec.replicas = 1;
      s.spec.template.spec = { ...s.spec.template.spec, drainTimeout: '7h' };
      then?.(s);
    });
  const names = ['m-1', 'm-2', 'm-3'];
  const deps = new SetWorld(
    [smaller()],
    names.map((name) => owned((m) => Object.assign(m.metadata, { name, uid: name }))),
  );
  const patch = deps.client.patch.bind(deps.client);
  deps.client.patch = (...args) => {
    const changed = smaller(change);
    deps.machineSets.put({ ...changed, metadata: { ...changed.metadata, resourceVersion: '9', generation: 2 } });
    return patch(...args);
  };

  const { writes } = await deps.pass();

  expect(writes).toContain('patch machines/m-3');
  expect(writes.filter((text) => text.startsWith('delete'))).toEqual([]);
});

test('a set that is made smaller while its Machines are changed deletes those that it has too much when they have the template that came with it', async () => {
  const sized = (replicas: number, drainTimeout: string, generation: number): BuiltMachineSet =>
    set((s) => {
      s.spec.replicas = replicas;
      s.spec.template.spec = { ...s.spec.template.spec, drainTimeout };
      Object.assign(s.metadata, { resourceVersion: String(generation), generation });
    });
  const names = ['m-1', 'm-2'];
  const deps = new SetWorld(
    [sized(2, '10s', 1)],
    names.map((name) => owned((m) => Object.assign(m.metadata, { name, uid: name }))),
  );
  const patch = deps.client.patch.bind(deps.client);
  deps.client.patch = (...args) => {
    deps.machineSets.put(sized(1, '7h', 2));
    return patch(...args);
  };
  const timeouts: unknown[] = [];
  const remove = deps.client.delete.bind(deps.client);
  deps.client.delete = (...args) => {
    const { name, namespace } = args[2];
    timeouts.push(deps.machines.get(`${namespace}/${name}`)?.spec.drainTimeout);
    return remove(...args);
  };

  await deps.pass();
  await deps.pass();

  expect(timeouts).toEqual(['7h']);
});

test('a set of the same name that comes in the middle of a burst gets no Machines of the first, and no status of it', async () => {
  const large = set((s) => void (s.spec.replicas = 20));
  const deps = new SetWorld([large]);
  const other = set((s) => {
    s.spec.replicas = 20;
    Object.assign(s.metadata, { uid: 'of another', resourceVersion: '2' });
  });
  const create = deps.client.create.bind(deps.client);
  deps.client.create = (...args) => {
    deps.machineSets.remove(KEY);
    deps.machineSets.put(other);
    return create(...args);
  };

  const { writes } = await deps.pass();

  expect(writes).toEqual(['create machines/set-1-new-1']);
});

test('of a set that is gone nothing is remembered', async () => {
  const deps = new SetWorld([set()]);
  deps.client.failures.push(new ApiError(0, 'Unreachable', 'no answer'));
  await deps.pass();
  const { uid } = set().metadata;
  const before = deps.expectations.names(uid);
  deps.machineSets.remove(KEY);

  await deps.reconcile();

  expect(before).toEqual(['set-1-new-1']);
  expect(deps.expectations.names(uid)).toEqual([]);
});

test.each([
  { where: 'alone', others: 0, deleted: [] },
  { where: 'in a rollout', others: 1, deleted: ['delete machines/m-1'] },
])('a set whose size swings $where deletes $deleted: what a rollout gives up is not wanted again', async (row) => {
  const deployment = machineDeployment();
  const owners = [controllerReference(deployment, 'machine.sapcloud.io/v1alpha1', 'MachineDeployment')];
  const sized = (replicas: number, resourceVersion: string): BuiltMachineSet =>
    set((s) => {
      s.spec.replicas = replicas;
      Object.assign(s.metadata, { resourceVersion, ownerReferences: owners });
    });
  const other = set((s) => Object.assign(s.metadata, { name: 'other', uid: 'other', ownerReferences: owners }));
  const others = [
    owned((m) =>
      Object.assign(m.metadata, {
        name: 'other-1',
        uid: 'other-1',
        ownerReferences: [controllerReference(other, 'machine.sapcloud.io/v1alpha1', 'MachineSet')],
      }),
    ),
  ].slice(0, row.others);
  const two = [owned(), owned((m) => Object.assign(m.metadata, { name: 'm-2', uid: 'm-2' }))];
  const deps = new SetWorld([sized(1, '1'), other], [...two.slice(0, 1), ...others]);
  deps.machineDeployments.put(deployment);
  for (const [version, replicas] of [1, 2, 1].entries()) {
    deps.machineSets.put(sized(replicas, String(version + 2)));
    if (replicas === 2) deps.machines.put(two[1] as Machine);
    await deps.reconcile();
  }

  const deleted = deps.client.writes
    .map(({ verb, what }) => `${verb} ${what}`)
    .filter((text) => text.startsWith('delete '));
  expect(deleted).toEqual(row.deleted);
});

test('a spec that cannot be obeyed changes nothing but the status', async () => {
  const invalid = set((s) => void (s.spec.replicas = -1));
  const deps = new SetWorld([invalid], [owned()]);

  const { result, writes } = await deps.pass();

  expect(result).toMatchObject({ kind: 'stop' });
  expect(writes).toEqual(['patch machinesets/set-1/status']);
  expect(deps.events).toEqual(['InvalidSpec']);
});

test('a set that others hold back deletes nothing any more', async () => {
  const held = set((s) => {
    s.metadata.finalizers = ['example.com/other'];
    s.metadata.deletionTimestamp = 'now';
  });
  const deps = new SetWorld([held], [owned()]);

  expect((await deps.pass()).writes).toEqual([]);
});

test('annotations that mean nothing are told by condition and one Event, until they are corrected', async () => {
  const annotated = (
    value: string,
    told: BuiltMachineSet['status']['machineSetCondition'] = [],
    generation = 1,
  ): SetWorld => {
    const one = set((s) => {
      s.spec.replicas = 0;
      s.metadata.generation = generation;
      s.metadata.annotations = { [EFFECTIVE_CREATION_TIMEOUT_ANNOTATION]: value };
      s.status = { observedGeneration: 1, machineSetCondition: told };
    });
    return new SetWorld([one]);
  };
  const statusAfter = async (deps: SetWorld): Promise<BuiltMachineSet['status'] | undefined> => {
    await deps.reconcile();
    return (deps.client.writes.at(-1)?.body as BuiltMachineSet | undefined)?.status;
  };

  const wrong = annotated('soon');
  const conditions = (await statusAfter(wrong))?.machineSetCondition ?? [];
  expect(conditions).toMatchObject([{ type: 'InvalidAnnotation', message: expect.stringContaining('"soon"') }]);
  expect(wrong.events).toEqual(['InvalidAnnotation']);

  const still = annotated('soon', conditions);
  expect(await statusAfter(still)).toBeUndefined();
  expect(still.events).toEqual([]);

  const changed = annotated('soon', conditions, 2);
  expect(await statusAfter(changed)).toMatchObject({ observedGeneration: 2 });
  expect(changed.events).toEqual([]);

  const right = annotated('20m', conditions);
  expect((await statusAfter(right))?.machineSetCondition).toBeNull();
  expect(right.events).toEqual([]);
});
