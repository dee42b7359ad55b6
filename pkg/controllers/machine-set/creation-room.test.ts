import { describe, expect, test } from '@jest/globals';

import * as fc from 'fast-check';

import { machine, machineDeployment, machineSet, type BuiltMachineDeployment } from '../../../test/builders.ts';
import { SetWorld } from '../../../test/fakes/replicas-world.ts';
import { API_VERSION } from '../../apis/machine/v1alpha1/group.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { controllerReference } from '../../work/reconcile/ownership.ts';
import { CREATION_LIMIT_REACHED } from '../replicas/creation-brake.ts';
import { brakedOwner, creationRoom, hasOutdatedTemplate, isRolling, replacedAmong, roomFor } from './creation-room.ts';

test.each([
  { title: 'fills up', living: 3, existing: 3, isRollout: false, room: 3 },
  { title: 'does not wait for machines that go', living: 3, existing: 9, isRollout: false, room: 3 },
  { title: 'is full', living: 6, existing: 6, isRollout: false, room: 0 },
  { title: 'has too many', living: 8, existing: 8, isRollout: false, room: 0 },
  { title: 'waits in a rollout for machines that go', living: 5, existing: 6, isRollout: true, room: 0 },
  { title: 'goes on in a rollout when they are gone', living: 5, existing: 5, isRollout: true, room: 1 },
  {
    title: 'replaces in a rollout without waiting for machines that go',
    living: 4,
    existing: 9,
    replaced: 1,
    isRollout: true,
    room: 1,
  },
  { title: 'replaces none beyond its number', living: 6, existing: 9, replaced: 2, isRollout: true, room: 0 },
  { title: 'counts what another set is creating', living: 3, existing: 3, underway: 2, isRollout: true, room: 1 },
  {
    title: 'replaces beside another set that creates',
    living: 4,
    existing: 9,
    replaced: 2,
    underway: 1,
    isRollout: true,
    room: 1,
  },
])('a deployment that may have six $title', ({ living, existing, underway = 0, replaced = 0, isRollout, room }) => {
  expect(creationRoom({ allowed: 6, living, existing, underway, replaced, isRollout })).toBe(room);
});

test('sets that create at once, each as far as it may, never make more live than may', () => {
  const set = fc.record({ living: fc.nat(20), going: fc.nat(20), size: fc.nat(40) });
  fc.assert(
    fc.property(fc.nat(60), fc.array(set, { minLength: 1, maxLength: 4 }), (allowed, sets) => {
      const living = sets.reduce((sum, one) => sum + one.living, 0);
      const existing = sets.reduce((sum, one) => sum + one.living + one.going, 0);
      let underway = 0;
      for (const one of sets) {
        const replaced = Math.max(0, Math.min(one.size, one.living + one.going) - one.living);
        const room = creationRoom({ allowed, living, existing, underway, replaced, isRollout: sets.length > 1 });
        const count = Math.min(room, Math.max(0, one.size - one.living));
        expect(living + underway + count).toBeLessThanOrEqual(Math.max(allowed, living + underway));
        expect(existing + underway + count).toBeLessThanOrEqual(
          sets.length > 1 ? Math.max(allowed, existing + underway + replaced) : Infinity,
        );
        underway += count;
      }
    }),
  );
});

/** Machines of `set`, of which so many live and so many are going. */
function machinesOf(set: MachineSet, living: number, going: number): Machine[] {
  return Array.from({ length: living + going }, (_, i) =>
    machine((m) => {
      Object.assign(m.metadata, { name: `${set.metadata.name}-${i}`, uid: `uid-of-${set.metadata.name}-${i}` });
      m.metadata.ownerReferences = [controllerReference(set, API_VERSION, 'MachineSet')];
      if (i >= living) m.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
    }),
  );
}

describe('Machines of a set are replaced', () => {
  test.each([
    { what: 'that never had as many as it should', size: 5, living: 1, going: 0, replaced: 0 },
    { what: 'of which some go, and others never were', size: 5, living: 1, going: 2, replaced: 2 },
    { what: 'that is full', size: 3, living: 3, going: 2, replaced: 0 },
    { what: 'that shrank by those that go', size: 2, living: 2, going: 3, replaced: 0 },
    { what: 'that shrank, and of which more go', size: 3, living: 2, going: 3, replaced: 1 },
    { what: 'that has too many', size: 1, living: 2, going: 1, replaced: 0 },
  ])('$what: $replaced of size $size with $living living and $going going', ({ size, living, going, replaced }) => {
    expect(replacedAmong(size, machinesOf(machineSet(), living, going))).toBe(replaced);
  });
});

describe('a set', () => {
  const deployment = (change?: (d: BuiltMachineDeployment) => void): BuiltMachineDeployment =>
    machineDeployment((d) => {
      d.spec.replicas = 4;
      change?.(d);
    });
  const setOf = (name: string, replicas: number, owner = deployment()): MachineSet =>
    machineSet((s) => {
      Object.assign(s.metadata, { name, uid: `uid-of-${name}` });
      s.metadata.ownerReferences = [controllerReference(owner, API_VERSION, 'MachineDeployment')];
      s.spec.replicas = replicas;
    });
  const stopped = (d: BuiltMachineDeployment): void => {
    d.status.conditions = [{ type: 'Frozen', status: 'True', reason: CREATION_LIMIT_REACHED }];
  };

  test.each([
    { what: 'alone fills up to the replicas', sizes: [4], living: [1], going: [2], room: 3 },
    { what: 'beside an empty one waits for nothing that goes', sizes: [4, 0], living: [1, 0], going: [2, 0], room: 3 },
    {
      what: 'alone, of a size that a restore has set back, makes none beyond the replicas',
      sizes: [8],
      living: [4],
      going: [0],
      room: 0,
    },
    {
      what: 'replaces its own while another has asked for its first',
      sizes: [4, 1],
      living: [3, 0],
      going: [0, 0],
      unseen: 1,
      room: 1,
    },
    { what: 'creates no more than surge beside a full one', sizes: [4, 4], living: [0, 4], going: [0, 0], room: 1 },
    { what: 'waits in a rollout for what goes', sizes: [4, 3], living: [1, 3], going: [0, 1], room: 0 },
    {
      what: 'that never was full waits in a rollout for what goes elsewhere',
      sizes: [4, 3],
      living: [0, 3],
      going: [0, 2],
      room: 0,
    },
    { what: 'replaces its own without waiting for them', sizes: [2, 3], living: [1, 3], going: [1, 0], room: 1 },
    { what: 'counts what another one has asked for', sizes: [4, 2], living: [2, 1], going: [0, 0], unseen: 1, room: 1 },
  ])('$what', ({ sizes, living, going, unseen = 0, room }) => {
    const sets = sizes.map((size, i) => setOf(`set-${i + 1}`, size));
    const machines = sets.flatMap((set, i) => machinesOf(set, living[i] ?? 0, going[i] ?? 0));
    const deps = new SetWorld(sets, machines);
    deps.machineDeployments.put(deployment());
    // One of them is seen already: it counts as what it is.
    for (let i = 0; i < unseen; i++) deps.expectations.expect('uid-of-set-2', `unseen-${i}`);
    deps.expectations.expect('uid-of-set-2', machines.at(-1)?.metadata.name ?? '');
    const [own] = sets as [MachineSet];

    expect(roomFor(deps, own)).toBe(room);
  });

  test('of a MachineDeployment that was stopped creates nothing, also in a process that has created nothing yet', () => {
    const own = setOf('set-1', 4);
    const deps = new SetWorld([own]);
    deps.machineDeployments.put(deployment());
    const before = roomFor(deps, own);
    deps.machineDeployments.put(deployment((d) => [(d.metadata.resourceVersion = '2'), stopped(d)]));

    expect({ before, after: roomFor(deps, own) }).toEqual({ before: 4, after: 0 });
  });

  test('without a MachineDeployment is bounded by what the brake leaves of it alone', () => {
    const own = machineSet((s) => void (s.spec.replicas = 2));
    const deps = new SetWorld([own]);
    const before = roomFor(deps, own);
    for (let i = 0; i < 3; i++) deps.brake.createdMachine(own.metadata.uid);

    // Three fills of two, and twenty to spare.
    expect({ before, after: roomFor(deps, own) }).toEqual({ before: 26, after: 23 });
    expect(brakedOwner(deps, own)).toBe(own.metadata.uid);
  });

  test('of a MachineDeployment shares its brake with the others', () => {
    const own = setOf('set-1', 4);
    const deps = new SetWorld([own]);
    deps.machineDeployments.put(deployment());
    roomFor(deps, own);
    for (let i = 0; i < 34; i++) deps.brake.createdMachine(deployment().metadata.uid);

    // Three fills of four and one of surge, and twenty to spare: one is left.
    expect(roomFor(deps, own)).toBe(1);
    expect(brakedOwner(deps, own)).toBe(deployment().metadata.uid);
  });

  test('whose MachineDeployment was made again belongs to none', () => {
    const own = setOf('set-1', 4);
    const deps = new SetWorld([own]);
    deps.machineDeployments.put(deployment((d) => void (d.metadata.uid = 'of another')));

    expect(brakedOwner(deps, own)).toBe(own.metadata.uid);
  });

  test.each([
    { what: 'alone, with the template of its MachineDeployment', living: [1], isRolling: false, isReplaced: false },
    { what: 'beside one that has Machines', living: [1, 1], isRolling: true, isReplaced: false },
    { what: 'beside one that is empty', living: [1, 0], isRolling: false, isReplaced: false },
    { what: 'alone, with another template', living: [1], template: 'other', isRolling: true, isReplaced: true },
  ])('$what is part of a rollout: $isRolling', ({ living, template, ...row }) => {
    const sets = living.map((_, i) => setOf(`set-${i + 1}`, 1));
    const deps = new SetWorld(
      sets,
      sets.flatMap((set, i) => machinesOf(set, living[i] ?? 0, 0)),
    );
    deps.machineDeployments.put(
      deployment((d) => {
        if (template !== undefined)
          d.spec.template = { ...d.spec.template, metadata: { labels: { version: template } } };
      }),
    );
    const [own] = sets as [MachineSet];

    expect(row).toMatchObject({ isRolling: isRolling(deps, own), isReplaced: hasOutdatedTemplate(deps, own) });
  });
});
