import { describe, expect, test } from '@jest/globals';

import { machine, machineDeployment, machineSet, node, type BuiltMachine } from '../../../test/builders.ts';
import { SetWorld } from '../../../test/fakes/replicas-world.ts';
import { API_VERSION } from '../../apis/machine/v1alpha1/group.ts';
import {
  LAST_APPLIED_NODE_PRESERVE_ANNOTATION,
  MACHINE_FINALIZER,
  PRESERVE_ANNOTATION,
} from '../../apis/machine/v1alpha1/labels.ts';
import { ApiError } from '../../kube/client/errors.ts';
import { machines as machineResource } from '../../kube/client/resource.ts';
import { controllerReference } from '../../work/reconcile/ownership.ts';
import { autoPreservation } from './auto-preserve.ts';

const failed = (day: number, value?: string, change?: (m: BuiltMachine) => void): BuiltMachine =>
  machine((m) => {
    m.metadata.name = `m-${day}`;
    m.metadata.creationTimestamp = `2026-01-0${day}T00:00:00Z`;
    m.status.currentStatus.phase = 'Failed';
    if (value !== undefined) m.metadata.annotations[PRESERVE_ANNOTATION] = value;
    change?.(m);
  });
const running = (day: number, value?: string): BuiltMachine =>
  failed(day, value, (m) => (m.status.currentStatus.phase = 'Running'));
const leaving = (day: number, value?: string): BuiltMachine =>
  failed(day, value, (m) => (m.metadata.deletionTimestamp = '2026-01-09T00:00:00Z'));

const until = (day: number, time: string): BuiltMachine =>
  failed(day, undefined, (m) => (m.status.currentStatus.preserveExpiryTime = time));
const taken = (day: number): BuiltMachine =>
  failed(day, undefined, (m) => (m.metadata.annotations[LAST_APPLIED_NODE_PRESERVE_ANNOTATION] = 'now'));

interface Case {
  readonly title: string;
  readonly machines: readonly BuiltMachine[];
  readonly allowed: number;
  readonly isRollout?: boolean;
  /** What the Nodes say, by Machine; `missing` are Nodes that are not there. */
  readonly ofNodes?: Readonly<Record<string, string>>;
  readonly preserve: readonly string[];
  readonly release: readonly string[];
}

describe('of failed machines', () => {
  test.each([
    { title: 'none is preserved without room', machines: [failed(1)], allowed: 0, preserve: [], release: [] },
    {
      title: 'the newest are, into the room',
      machines: [failed(1), failed(3), failed(2)],
      allowed: 2,
      preserve: ['m-3', 'm-2'],
      release: [],
    },
    {
      title: 'the first by name goes first, of those of one age',
      machines: [
        failed(1, undefined, (m) => (m.metadata.name = 'b')),
        failed(1, undefined, (m) => (m.metadata.name = 'a')),
      ],
      allowed: 1,
      preserve: ['b'],
      release: [],
    },
    {
      title: 'those preserved already take room',
      machines: [failed(1, 'auto-preserved'), failed(2)],
      allowed: 1,
      preserve: [],
      release: [],
    },
    {
      title: 'those that somebody decided about are left alone',
      machines: [failed(1, 'now'), failed(2, 'when-failed'), failed(3, 'false'), failed(4, 'other')],
      allowed: 9,
      preserve: ['m-4'],
      release: [],
    },
    {
      title: 'those whose Node says something are left alone',
      machines: [failed(1), failed(2), failed(3)],
      ofNodes: { 'm-1': 'now', 'm-2': 'false', 'm-3': 'nwo' },
      allowed: 9,
      preserve: [],
      release: [],
    },
    {
      title: 'those that had their time are not preserved again',
      machines: [until(1, '2026-01-01T00:00:00Z'), failed(2)],
      allowed: 9,
      preserve: ['m-2'],
      release: [],
    },
    {
      title: 'those whose Node is gone count by what it said last',
      machines: [taken(1), failed(2)],
      ofNodes: { 'm-1': 'missing', 'm-2': 'missing' },
      allowed: 9,
      preserve: ['m-2'],
      release: [],
    },
    {
      title: 'those that go take no room',
      machines: [leaving(1, 'auto-preserved'), failed(2)],
      allowed: 1,
      preserve: ['m-2'],
      release: [],
    },
    {
      title: 'those that run or go are not',
      machines: [running(1), leaving(2)],
      allowed: 9,
      preserve: [],
      release: [],
    },
    {
      title: 'the oldest are released when there are too many, whatever their phase',
      machines: [failed(3, 'auto-preserved'), running(1, 'auto-preserved'), failed(2, 'auto-preserved')],
      allowed: 1,
      preserve: [],
      release: ['m-1', 'm-2'],
    },
    {
      title: 'none is preserved during a rollout',
      machines: [failed(1), failed(2, 'auto-preserved')],
      allowed: 9,
      isRollout: true,
      preserve: [],
      release: [],
    },
    {
      title: 'the oldest are released also during a rollout',
      machines: [failed(1, 'auto-preserved'), failed(2, 'auto-preserved')],
      allowed: 1,
      isRollout: true,
      preserve: [],
      release: ['m-1'],
    },
  ] as Case[])('$title', ({ machines, allowed, isRollout = false, ofNodes = {}, preserve, release }) => {
    const got = autoPreservation(machines, { allowed, isRollout }, ({ metadata }) => {
      const says = ofNodes[metadata.name];
      if (says === undefined || says === 'missing') return says;
      return node((n) => {
        n.metadata.annotations[PRESERVE_ANNOTATION] = says;
      });
    });

    expect(got.preserve.map(({ metadata }) => metadata.name)).toEqual(preserve);
    expect(got.release.map(({ metadata }) => metadata.name)).toEqual(release);
  });
});

describe('the patch of a failed machine', () => {
  const set = machineSet((s) => {
    s.metadata.finalizers = [MACHINE_FINALIZER];
    s.spec.autoPreserveFailedMachineMax = 1;
  });
  const one = failed(1, undefined, (m) => {
    m.metadata.ownerReferences = [controllerReference(set, API_VERSION, 'MachineSet')];
  });

  test('holds only for the Machine that was decided about', async () => {
    const world = new SetWorld([set], [one]);

    await world.reconcile();

    const { uid, resourceVersion } = one.metadata;
    expect(world.client.writes[0]).toMatchObject({
      what: 'machines/m-1',
      intent: 'change',
      uid,
      resourceVersion,
      body: { metadata: { annotations: { [PRESERVE_ANNOTATION]: 'auto-preserved' } } },
    });
  });

  test('is not written while its MachineDeployment has another template', async () => {
    const deployment = machineDeployment((d) => void (d.spec.template.metadata = { labels: { changed: 'true' } }));
    const owned = {
      ...set,
      metadata: {
        ...set.metadata,
        ownerReferences: [controllerReference(deployment, API_VERSION, 'MachineDeployment')],
      },
    };
    const world = new SetWorld([owned], [one]);
    world.machineDeployments.put(deployment);

    await world.reconcile();

    expect(world.acts.map(({ verb, what }) => `${verb} ${what}`)).toEqual([
      'delete machines/m-1',
      'create machines/set-1-new-1',
    ]);
  });

  test.each([
    { failure: new ApiError(404, 'NotFound', 'x'), throws: false },
    { failure: new ApiError(409, 'Conflict', 'x'), throws: false },
    { failure: new ApiError(403, 'Forbidden', 'x'), throws: false },
    { failure: new ApiError(0, 'Unreachable', 'x'), throws: true },
  ])('that is refused with $failure fails the pass: $throws', async ({ failure, throws }) => {
    const world = new SetWorld([set], [one]);
    world.client.failures.push(failure);

    const { result, writes } = await world.pass();

    expect(result === failure).toBe(throws);
    expect(writes.filter((what) => what === 'patch machines/m-1')).toHaveLength(1);
  });

  test('that meets a change of the machine keeps it until that is decided about', async () => {
    const world = new SetWorld([set], [one]);
    const { client } = world;
    const patch = client.patch.bind(client);
    let isChanged = false;
    client.patch = async (intent, resource, ref, ...rest) => {
      if (!isChanged)
        client.wrote(machineResource, { ...one, metadata: { ...one.metadata, annotations: { changed: 'true' } } });
      isChanged = true;
      return await patch(intent, resource, ref, ...rest);
    };

    const { result } = await world.pass();

    expect(result).toMatchObject({ kind: 'requeue' });
    expect(world.machines.get('default/m-1')?.metadata.deletionTimestamp).toBeUndefined();
    await world.pass();
    expect(world.machines.get('default/m-1')?.metadata.annotations?.[PRESERVE_ANNOTATION]).toBe('auto-preserved');
  });

  test('keeps the machine although it is refused, tells of it, and is tried again', async () => {
    const world = new SetWorld([set], [one]);
    world.client.failures.push(new ApiError(403, 'Forbidden', 'protected'));

    const { result, writes } = await world.pass();

    expect(writes).toEqual(['patch machines/m-1', 'patch machinesets/set-1/status']);
    expect(world.events).toEqual(['ChangeRefused']);
    expect(result).toMatchObject({ kind: 'requeue' });
    world.clock.advance(10_000);
    await world.pass();
    expect(world.machines.get('default/m-1')?.metadata.annotations?.[PRESERVE_ANNOTATION]).toBe('auto-preserved');
  });
});
