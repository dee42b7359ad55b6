import { describe, expect, test } from '@jest/globals';

import { API_VERSION } from '../../apis/machine/v1alpha1/group.ts';
import { EFFECTIVE_CREATION_TIMEOUT_ANNOTATION, MACHINE_FINALIZER } from '../../apis/machine/v1alpha1/labels.ts';
import type { MachineSpec } from '../../apis/machine/v1alpha1/machine.ts';
import { machine, machineSet, type BuiltMachine } from '../../../test/builders.ts';
import { SetWorld } from '../../../test/fakes/replicas-world.ts';
import { ApiError } from '../../kube/client/errors.ts';
import { controllerReference } from '../../work/reconcile/ownership.ts';
import { templateChange } from './template-push.ts';

const CLASS = { class: { kind: 'MachineClass', name: 'class-1' } };

function change(template: MachineSpec, mutate: (m: BuiltMachine) => void = () => undefined): unknown {
  const set = machineSet((s) => {
    s.spec.template.spec = { ...CLASS, ...template };
  });
  return templateChange(set, machine(mutate));
}

describe('what the template of a set pushes into a machine', () => {
  test.each([
    { title: 'nothing, when nothing differs', template: {}, spec: {}, want: undefined },
    {
      title: 'nothing, when only emptiness is spelled differently',
      template: { nodeTemplate: { metadata: { labels: {} }, spec: { taints: [] } } },
      spec: {},
      want: undefined,
    },
    {
      title: 'nothing, when only the spelling of a duration differs',
      template: { drainTimeout: '2h0m0s' },
      spec: { drainTimeout: '120m' },
      want: undefined,
    },
    {
      title: 'node labels that were added, changed and removed',
      template: { nodeTemplate: { metadata: { labels: { a: '2', c: '3' } } } },
      spec: { nodeTemplate: { metadata: { labels: { a: '1', b: '1' }, annotations: { x: 'y' } } } },
      want: { nodeTemplate: { metadata: { labels: { a: '2', b: null, c: '3' }, annotations: null } } },
    },
    {
      title: 'taints as a whole list',
      template: { nodeTemplate: { spec: { taints: [{ key: 'b', effect: 'NoSchedule' }] } } },
      spec: { nodeTemplate: { spec: { taints: [{ key: 'a', effect: 'NoSchedule' }] } } },
      want: { nodeTemplate: { spec: { taints: [{ key: 'b', effect: 'NoSchedule' }] } } },
    },
    {
      title: 'a node template that is gone',
      template: {},
      spec: { nodeTemplate: { metadata: { labels: { a: '1' } } } },
      want: { nodeTemplate: null },
    },
    {
      title: 'timeouts that were set and unset',
      template: { drainTimeout: '2h', disableHealthTimeout: false },
      spec: { healthTimeout: '10m' },
      want: { drainTimeout: '2h', disableHealthTimeout: false, healthTimeout: null },
    },
    {
      title: 'the class kind, not its name',
      template: { class: { kind: 'Other', name: 'class-2' } },
      spec: {},
      want: { class: { kind: 'Other' } },
    },
  ])('$title', ({ template, spec, want }) => {
    expect(
      change(template, (m) => {
        m.spec = { ...m.spec, ...spec };
      }),
    ).toEqual(want);
  });

  test('a machine that is lost only follows the class kind', () => {
    const template = { drainTimeout: '2h', class: { kind: 'Other', name: 'class-1' } };

    for (const phase of ['Failed', 'Terminating'] as const) {
      expect(
        change(template, (m) => {
          m.status.currentStatus.phase = phase;
        }),
      ).toEqual({ class: { kind: 'Other' } });
    }
  });

  test('a creation timeout that a machine was created with stays its own', () => {
    expect(
      change({ creationTimeout: '20m' }, (m) => {
        m.metadata.annotations[EFFECTIVE_CREATION_TIMEOUT_ANNOTATION] = '40m';
        m.spec.creationTimeout = '40m';
      }),
    ).toBeUndefined();
  });
});

test.each(['Failed', 'Terminating'] as const)('a machine that is lost, %s, follows the class kind only', (phase) => {
  const template = {
    class: { kind: 'AnotherClass', name: 'class-1' },
    nodeTemplate: { metadata: { labels: { a: 'b' } } },
    drainTimeout: '5m',
  };

  expect(change(template, (m) => void (m.status.currentStatus.phase = phase))).toEqual({
    class: { kind: 'AnotherClass' },
  });
});

describe('the write of a template', () => {
  const set = machineSet((s) => {
    s.metadata.finalizers = [MACHINE_FINALIZER];
    s.spec.template.spec = { ...CLASS, drainTimeout: '5m' };
  });
  const owned = machine((m) => {
    m.metadata.ownerReferences = [controllerReference(set, API_VERSION, 'MachineSet')];
  });

  test('holds only for the Machine that was looked at', async () => {
    const world = new SetWorld([set], [owned]);

    await world.reconcile();

    const { uid, resourceVersion } = owned.metadata;
    const guard = { intent: 'change', what: 'machines/m-1', uid, resourceVersion };
    expect(world.client.writes[0]).toMatchObject({ ...guard, body: { spec: { drainTimeout: '5m' } } });
  });

  test.each([
    { failure: new ApiError(404, 'NotFound', 'gone'), throws: false },
    { failure: new ApiError(409, 'Conflict', 'changed'), throws: true },
  ])('to a Machine that is $failure fails the pass: $throws', async ({ failure, throws }) => {
    const world = new SetWorld([set], [owned]);
    world.client.failures.push(failure);

    const { result } = await world.pass();

    expect(result === failure).toBe(throws);
  });

  test('that one Machine refuses keeps no other from it, nor what is missing from being created', async () => {
    const four = { ...set, spec: { ...set.spec, replicas: 4 } };
    const machines = ['m-1', 'm-2', 'm-3'].map((name) =>
      machine((m) => {
        Object.assign(m.metadata, { name, uid: `uid-of-${name}`, ownerReferences: owned.metadata.ownerReferences });
      }),
    );
    const world = new SetWorld([four], machines);
    world.client.failures.push(new ApiError(403, 'Forbidden', 'protected'));

    const { result } = await world.pass();

    expect(world.acts.map(({ verb, what }) => `${verb} ${what}`)).toEqual([
      'patch machines/m-1',
      'patch machines/m-2',
      'patch machines/m-3',
      'create machines/set-1-new-1',
    ]);
    expect(world.machines.list().filter(({ spec }) => spec.drainTimeout === '5m')).toHaveLength(3);
    expect(world.machineSets.get('default/set-1')?.status?.machineSetCondition).toMatchObject([
      {
        type: 'ReplicaFailure',
        reason: 'ChangeRefused',
        message: 'A change of machines/m-1 is refused, and retried: protected',
      },
    ]);
    expect(result).toMatchObject({ kind: 'requeue' });

    // It is left alone for a while, is still told of, and gets the template when it may.
    world.clock.advance(1_000);
    await world.pass();
    expect(world.acts).toHaveLength(4);
    expect(JSON.stringify(world.machineSets.get('default/set-1')?.status)).toContain('ChangeRefused');
    world.clock.advance(10_000);
    await world.pass();
    expect(world.machines.get('default/m-1')?.spec.drainTimeout).toBe('5m');
    expect(JSON.stringify(world.machineSets.get('default/set-1')?.status)).not.toContain('ChangeRefused');
    expect(world.events.filter((reason) => reason === 'ChangeRefused')).toHaveLength(1);
  });

  test('is told only when it fails again, if the API server failed', async () => {
    const world = new SetWorld([set], [owned]);
    const fails = () => new ApiError(500, 'InternalError', 'etcdserver: leader changed');
    world.client.failures.push(fails(), fails());

    await world.pass();
    const atFirst = [...world.events];
    world.clock.advance(10_000);
    await world.pass();

    expect([atFirst, world.events]).toEqual([[], ['ChangeRefused']]);
  });
});
