import { setTimeout } from 'node:timers/promises';

import { describe, expect, test } from '@jest/globals';

import {
  EFFECTIVE_CREATION_TIMEOUT_ANNOTATION,
  FREEZE_LABEL,
  MACHINE_FINALIZER,
  PREPARE_DELETION_ANNOTATION,
  PRESERVE_ANNOTATION,
  PRIORITY_ANNOTATION,
} from '../../pkg/apis/machine/v1alpha1/labels.ts';
import { isBeingDeleted } from '../../pkg/apis/meta.ts';
import { ApiError } from '../../pkg/kube/client/errors.ts';
import { machines, machineSets, secrets } from '../../pkg/kube/client/resource.ts';
import { eventually } from '../expect/eventually.ts';
import { isOwnedBy, keysOf, MachineSetWorld } from './machine-set-world.ts';

const running = (world: MachineSetWorld, count: number): Promise<unknown> =>
  eventually(
    () => {
      expect(world.running()).toHaveLength(count);
      expect(world.machines.list()).toHaveLength(count);
    },
    { timeoutMs: 120_000, describe: `exactly ${count} machines, all running` },
  );

describe('a machine set', () => {
  test('creates its machines, each with its owner, finalizer, labels and annotations', async () => {
    await using world = await MachineSetWorld.start();
    const set = await world.createSet(3, ({ metadata, spec }) => {
      metadata.annotations = { [EFFECTIVE_CREATION_TIMEOUT_ANNOTATION]: '40m' };
      if (spec.template?.metadata) spec.template.metadata.annotations = { note: 'x' };
    });

    await running(world, 3);

    for (const machine of await world.list(machines)) {
      expect(machine.metadata.name).toMatch(/^s-[bcdfghjklmnpqrstvwxz2-9]{5}$/);
      expect(machine).toMatchObject({
        metadata: {
          generateName: 's-',
          labels: { set: 's' },
          annotations: { note: 'x', [EFFECTIVE_CREATION_TIMEOUT_ANNOTATION]: '40m' },
          finalizers: [MACHINE_FINALIZER],
        },
        spec: { class: { kind: 'MachineClass', name: 'c' }, creationTimeout: '40m' },
      });
      expect(isOwnedBy(machine, set)).toBe(true);
    }
    await eventually(async () => {
      expect((await world.get(machineSets, 's')).status).toMatchObject({
        replicas: 3,
        fullyLabeledReplicas: 3,
        readyReplicas: 3,
        availableReplicas: 3,
        observedGeneration: 1,
      });
    });
    expect((await world.get(machineSets, 's')).metadata.finalizers).toEqual([MACHINE_FINALIZER]);
    expect(world.events.filter(({ reason }) => reason === 'SuccessfulCreate')).toHaveLength(3);
  });

  // promise: deletions-aborted/same-against-real-api
  // promise: openstack/deletion/lower-replicas-delete-exactly
  test('scales up to exactly what is wanted, and down by rank: first goes the machine whose deletion is prepared', async () => {
    await using world = await MachineSetWorld.start();
    await world.createSet(3);
    await running(world, 3);
    await world.patch(machineSets, 's', { spec: { replicas: 5 } });
    await running(world, 5);
    const chosen = world.running()[2]?.metadata.name ?? '';
    await world.patch(machines, chosen, { metadata: { annotations: { [PRIORITY_ANNOTATION]: '1' } } });
    await world.patch(machineSets, 's', { spec: { replicas: 4 } });
    await running(world, 4);

    expect(world.running().map(({ metadata }) => metadata.name)).not.toContain(chosen);

    const [low = '', prepared = ''] = world.running().map(({ metadata }) => metadata.name);
    await world.patch(machines, low, { metadata: { annotations: { [PRIORITY_ANNOTATION]: '1' } } });
    await world.patch(machines, prepared, { metadata: { annotations: { [PREPARE_DELETION_ANNOTATION]: 'true' } } });
    await world.patch(machineSets, 's', { spec: { replicas: 3 } });
    await running(world, 3);
    expect(world.running().map(({ metadata }) => metadata.name)).not.toContain(prepared);

    await world.patch(machineSets, 's', { spec: { replicas: 1 } });
    await running(world, 1);
    expect(world.succeeded('create', 'machines')).toBe(5);
    expect(world.succeeded('delete', 'machines')).toBe(4);
    expect(world.events.filter(({ reason }) => reason === 'SuccessfulDelete')).toHaveLength(4);
  });

  test('replaces a deleted machine at once, not when it is gone', async () => {
    await using world = await MachineSetWorld.start({ goes: () => false });
    await world.createSet(2);
    await running(world, 2);
    const name = world.running()[0]?.metadata.name ?? '';
    await world.delete(machines, name);

    await eventually(() => {
      expect(world.running()).toHaveLength(2);
      expect(world.machines.list()).toHaveLength(3);
    });
    await world.patch(machines, name, { metadata: { finalizers: [] } });
    await running(world, 2);
  });

  test('replaces a failed machine, and nothing else', async () => {
    await using world = await MachineSetWorld.start();
    await world.createSet(3);
    await running(world, 3);
    const [victim, ...others] = world.running();
    await world.setPhase(victim?.metadata.name ?? '', 'Failed');

    await eventually(() => {
      expect(world.succeeded('create', 'machines')).toBe(4);
      expect(keysOf(world.machines.list())).not.toContain(`${world.namespace.name}/${victim?.metadata.name}`);
    });
    await running(world, 3);

    expect(keysOf(world.running())).toEqual(expect.arrayContaining(keysOf(others)));
  });

  test('keeps a machine that failed its health check but whose node works again', async () => {
    await using world = await MachineSetWorld.start({ withNodes: true });
    await world.createSet(1);
    await running(world, 1);
    const name = world.running()[0]?.metadata.name ?? '';
    await world.setReady(name);
    await world.setPhase(name, 'Failed');
    await eventually(async () => {
      await world.setReady(name); // its kubelet goes on
      return (await world.get(machineSets, 's')).status?.failedMachines?.length === 1;
    });
    await eventually(() => world.manager.count('get', 'nodes') > 0);

    expect(world.machines.list().map(({ metadata }) => metadata.deletionTimestamp)).toEqual([undefined]);
  });

  test('preserves as many failed machines as it may, and replaces the others', async () => {
    await using world = await MachineSetWorld.start();
    await world.createSet(3, ({ spec }) => {
      spec.autoPreserveFailedMachineMax = 1;
    });
    await running(world, 3);
    const [first, second] = world.running().map(({ metadata }) => metadata.name);
    await world.setPhase(first ?? '', 'Failed');
    await eventually(async () => {
      expect((await world.get(machines, first ?? '')).metadata.annotations?.[PRESERVE_ANNOTATION]).toBe(
        'auto-preserved',
      );
    });
    await world.setPhase(second ?? '', 'Failed');
    await eventually(() => world.succeeded('create', 'machines') === 4);
    await eventually(() => expect(world.running()).toHaveLength(2));

    await eventually(() => {
      const left = world.machines.list().map(({ metadata }) => metadata.name);
      expect(left).toContain(first);
      expect(left).toHaveLength(3);
    });
    await eventually(async () => (await world.get(machineSets, 's')).status?.autoPreserveFailedMachineCount === 1);
  });

  test('adopts what it selects, keeps foreign owners, and really releases what it no longer selects', async () => {
    await using world = await MachineSetWorld.start();
    const set = await world.createSet(1);
    await running(world, 1);
    // It has to exist: the garbage collector takes references to what does not.
    const other = { metadata: { name: 'other', namespace: world.namespace.name } };
    const { uid } = (await world.user.writer.create('create', secrets, other)).metadata;
    const foreign = { apiVersion: 'v1', kind: 'Secret', name: 'other', uid };
    const name = world.running()[0]?.metadata.name ?? '';
    await world.patch(machines, name, { metadata: { labels: { set: 'other' } } });
    await eventually(async () => {
      expect((await world.get(machines, name)).metadata.ownerReferences ?? []).toEqual([]);
    });
    await eventually(() => expect(world.running()).toHaveLength(2));
    await world.patch(machineSets, 's', { spec: { replicas: 2 } });
    await eventually(() => expect(world.running()).toHaveLength(3));

    // Frozen, so that the room for it is not filled first.
    await world.patch(machineSets, 's', { metadata: { labels: { [FREEZE_LABEL]: 'True' } }, spec: { replicas: 3 } });
    await world.patch(machines, name, { metadata: { labels: { set: 's' }, ownerReferences: [foreign] } });

    await eventually(async () => {
      const adopted = await world.get(machines, name);
      expect(isOwnedBy(adopted, set)).toBe(true);
      expect(adopted.metadata.ownerReferences).toContainEqual(foreign);
    });
    await running(world, 3);
  });

  test('pushes node template, timeouts and class kind into existing machines', async () => {
    await using world = await MachineSetWorld.start();
    await world.createSet(3);
    await running(world, 3);
    const nodeTemplate = { metadata: { labels: { a: '1' } } };
    await world.patch(machineSets, 's', {
      spec: { template: { spec: { nodeTemplate, drainTimeout: '1h', class: { kind: 'Other', name: 'other' } } } },
    });

    await eventually(async () => {
      for (const { spec } of await world.list(machines)) {
        expect(spec).toMatchObject({ nodeTemplate, drainTimeout: '1h', class: { kind: 'Other', name: 'c' } });
      }
    });
    expect(world.succeeded('create', 'machines')).toBe(3);
  });

  test('creates nothing while frozen', async () => {
    await using world = await MachineSetWorld.start();
    await world.createSet(3, ({ metadata }) => {
      metadata.labels = { [FREEZE_LABEL]: 'True' };
    });
    await eventually(async () => (await world.get(machineSets, 's')).status?.observedGeneration === 1);
    expect(world.machines.list()).toEqual([]);

    await world.patch(machineSets, 's', { metadata: { labels: { [FREEZE_LABEL]: null } } });
    await running(world, 3);
  });

  test('goes only after its last machine', async () => {
    await using world = await MachineSetWorld.start({ goes: () => false });
    await world.createSet(3);
    await running(world, 3);
    await world.delete(machineSets, 's');

    await eventually(() => expect(world.machines.list().every(isBeingDeleted)).toBe(true));
    expect(isBeingDeleted(await world.get(machineSets, 's'))).toBe(true);
    for (const { metadata } of await world.list(machines)) {
      await world.patch(machines, metadata.name, { metadata: { finalizers: [] } });
    }
    await eventually(async () => {
      await expect(world.get(machineSets, 's')).rejects.toThrow(ApiError);
    });
    expect(await world.list(machines)).toEqual([]);
    expect(world.succeeded('create', 'machines')).toBe(3);
  });
});

describe('sixty machines', () => {
  test('are made by exactly sixty requests, and few status writes', async () => {
    await using world = await MachineSetWorld.start({ startMs: 50 });
    await world.createSet(60);
    await running(world, 60);

    expect(world.succeeded('create', 'machines')).toBe(60);
    expect(world.succeeded('delete', 'machines')).toBe(0);
    expect(world.manager.count('get', 'machinesets')).toBe(0);
    expect(world.manager.count('patch', 'machinesets')).toBeLessThan(20);
    expect(Math.max(...world.moments.map(({ existing }) => existing))).toBe(60);
  });

  test('scaled 60, 20, 50 cost no needless creation', async () => {
    await using world = await MachineSetWorld.start({ startMs: 100, stopMs: 100 });
    await world.createSet(60);
    await running(world, 60);
    await world.patch(machineSets, 's', { spec: { replicas: 20 } });
    await running(world, 20);
    await world.patch(machineSets, 's', { spec: { replicas: 50 } });
    await running(world, 50);

    expect(world.succeeded('create', 'machines')).toBe(90);
    expect(world.succeeded('delete', 'machines')).toBe(40);
  });

  test('changed quickly never cost more than obeying each step', async () => {
    await using world = await MachineSetWorld.start({ startMs: 100, stopMs: 100 });
    await world.createSet(60);
    await eventually(() => world.machines.list().length > 5, { intervalMs: 1 });
    await world.patch(machineSets, 's', { spec: { replicas: 20 } });
    await world.patch(machineSets, 's', { spec: { replicas: 50 } });
    await running(world, 50);

    expect(world.succeeded('create', 'machines')).toBeLessThanOrEqual(90);
    expect(world.succeeded('create', 'machines') - world.succeeded('delete', 'machines')).toBe(50);
  });
});

describe('when answers are lost', () => {
  test('a machine whose creation was not answered is not made twice', async () => {
    await using world = await MachineSetWorld.start();
    await world.killManager();
    let lost = 0;
    await world.startManager({
      intercept: async ({ text }, send) => {
        const answer = await send();
        if (text.startsWith('POST machines ') && ++lost % 2 === 0) {
          throw new ApiError(0, 'DeadlineExceeded', 'no response within the deadline');
        }
        return answer;
      },
    });
    await world.createSet(10);

    await running(world, 10);

    expect(Math.max(...world.moments.map(({ existing }) => existing))).toBe(10);
  });

  test('a creation that arrives after it was given up makes no second machine', async () => {
    await using world = await MachineSetWorld.start();
    await world.killManager();
    const late: Promise<unknown>[] = [];
    let posts = 0;
    await world.startManager({
      intercept: async ({ text }, send) => {
        if (!text.startsWith('POST machines ') || ++posts % 2 === 1) return send();
        late.push(setTimeout(500).then(send));
        throw new ApiError(0, 'DeadlineExceeded', 'no response within the deadline');
      },
    });
    await world.createSet(6);

    await running(world, 6);
    const arrived = await Promise.allSettled(late);

    expect(arrived.length).toBeGreaterThan(0);
    expect(Math.max(...world.moments.map(({ existing }) => existing))).toBe(6);
  });

  test('a creation that never reached the server is made under another try', async () => {
    await using world = await MachineSetWorld.start();
    await world.killManager();
    // Until that was told, however late it is looked at.
    let isAway = true;
    await world.startManager({
      intercept: async ({ text }, send) => {
        if (isAway && text.startsWith('POST machines ')) throw new ApiError(0, 'Unreachable', 'connection refused');
        return send();
      },
    });
    await world.createSet(3);

    await eventually(async () => {
      expect((await world.get(machineSets, 's')).status?.machineSetCondition).toMatchObject([
        { type: 'ReplicaFailure', status: 'True', reason: 'FailedCreate', message: 'connection refused' },
      ]);
    });
    isAway = false;
    await running(world, 3);
    await eventually(async () => {
      expect((await world.get(machineSets, 's')).status?.machineSetCondition ?? []).toEqual([]);
    });
    expect(Math.max(...world.moments.map(({ existing }) => existing))).toBe(3);
  });

  test('a manager that dies after any write is continued by the next one', async () => {
    await using world = await MachineSetWorld.start();
    await world.createSet(4);
    for (const replicas of [6, 2, 5]) {
      for (let n = 1; n <= 4; n++) {
        await world.killManager();
        const dying = await world.startMortalManager(n);
        await world.patch(machineSets, 's', { spec: { replicas } });
        await eventually(() => dying.writes > n || world.living().length === replicas);
      }
      await world.killManager();
      await world.startManager();
      await running(world, replicas);
    }
    expect(Math.max(...world.moments.map(({ existing }) => existing))).toBeLessThanOrEqual(6 + 4);
  });
});
