import { expect, test } from '@jest/globals';

import { machine, machineSet } from '../../../test/builders.ts';
import { SetWorld } from '../../../test/fakes/replicas-world.ts';
import { MACHINE_FINALIZER } from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { keyOf } from '../../apis/meta.ts';
import { ApiError } from '../../kube/client/errors.ts';
import { machines as machineResource } from '../../kube/client/resource.ts';
import { controllerReference } from '../../work/reconcile/ownership.ts';
import { DELETIONS_A_PASS } from './deletion-turns.ts';
import { settleWhenObserved } from './unseen-creations.ts';

const going = machineSet((s) => {
  s.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
  s.metadata.finalizers = ['example.com/other', MACHINE_FINALIZER];
});

function owned(count: number): Machine[] {
  return Array.from({ length: count }, (_unused, i) =>
    machine((m) => {
      m.metadata.name = `m-${i}`;
      m.metadata.ownerReferences = [controllerReference(going, 'machine.sapcloud.io/v1alpha1', 'MachineSet')];
    }),
  );
}

test('a set is let go once nothing is left, and only as it was looked at', async () => {
  const deps = new SetWorld([going]);

  expect(await deps.reconcile()).toEqual({ kind: 'stop' });

  const { uid, resourceVersion } = going.metadata;
  expect(deps.acts).toMatchObject([
    { intent: 'change', uid, resourceVersion, body: { metadata: { finalizers: ['example.com/other'] } } },
  ]);
});

test('a set stays while a POST is unanswered, and looks again by itself', async () => {
  const deps = new SetWorld([going]);
  deps.expectations.expect(going.metadata.uid, 'm-unanswered');

  expect(await deps.reconcile()).toMatchObject({ kind: 'requeue' });
  expect(deps.acts).toEqual([]);

  deps.clock.advance(5 * 60_000);
  expect(await deps.reconcile()).toEqual({ kind: 'stop' });
});

test('an unanswered POST that made a Machine after all is found live, and the Machine deleted first', async () => {
  const deps = new SetWorld([going]);
  const [late] = owned(1);
  deps.expectations.expect(going.metadata.uid, 'm-0');
  if (late !== undefined) deps.client.put(machineResource, late);
  deps.clock.advance(5 * 60_000);

  expect(await deps.reconcile()).toMatchObject({ kind: 'requeue', afterMs: 0 });
  expect(deps.acts).toEqual([]);
  await deps.reconcile();
  expect(deps.acts).toMatchObject([{ verb: 'delete', what: 'machines/m-0' }]);
});

test('the last Machine goes before the set', async () => {
  const deps = new SetWorld([going], owned(1));

  expect(await deps.reconcile()).toMatchObject({ kind: 'stop' });

  expect(deps.acts).toMatchObject([{ verb: 'delete', intent: 'destroy', what: 'machines/m-0' }]);
});

test('a large set goes on by itself after the first Machines', async () => {
  const deps = new SetWorld([going], owned(DELETIONS_A_PASS + 1));

  expect(await deps.reconcile()).toMatchObject({ kind: 'requeue', afterMs: 0 });
  expect(deps.acts).toHaveLength(DELETIONS_A_PASS);
});

test.each([{ isDeleted: true }, { isDeleted: false }])(
  'as many Machines that may not be deleted as a pass deletes keep no other from it (set is deleted: $isDeleted)',
  async ({ isDeleted }) => {
    const empty = machineSet((s) => void (s.spec.replicas = 0));
    const deps = new SetWorld([isDeleted ? going : empty], owned(DELETIONS_A_PASS + 10));
    const { client } = deps;
    const remove = client.delete.bind(client);
    client.delete = async (intent, resource, ref, ...rest) => {
      if (Number(ref.name.slice(2)) < DELETIONS_A_PASS) throw new ApiError(403, 'Forbidden', 'protected');
      await remove(intent, resource, ref, ...rest);
    };

    await deps.pass();
    await deps.pass();

    const left = deps.machines.list().filter(({ metadata }) => metadata.deletionTimestamp === undefined);
    expect(left.map(keyOf)).toEqual(owned(DELETIONS_A_PASS).map(keyOf));
  },
);

test('a deletion that spares its dependents waits for the garbage collector', async () => {
  const sparing = machineSet((s) => {
    s.metadata.deletionTimestamp = 'now';
    s.metadata.finalizers = ['orphan', MACHINE_FINALIZER];
  });
  const deps = new SetWorld([sparing], owned(1));

  expect(await deps.reconcile()).toMatchObject({ kind: 'stop' });
  expect(deps.acts).toEqual([]);
});

test('a Machine that cannot be looked for does not count as never made', async () => {
  const deps = new SetWorld([going]);
  deps.expectations.expect(going.metadata.uid, 'm-unanswered');
  deps.client.readFailure = new ApiError(503, 'ServiceUnavailable', 'no answer');
  deps.clock.advance(5 * 60_000);

  await expect(deps.reconcile()).rejects.toThrow('no answer');
  expect(deps.acts).toEqual([]);
});

test.each([{ machines: 0 }, { machines: 1 }])(
  'a set that is deleted, and may not be let go with its last Machine, or that Machine not be deleted ($machines left), tells of it',
  async ({ machines }) => {
    const deps = new SetWorld([going], owned(machines));
    deps.client.failures.push(new ApiError(403, 'Forbidden', 'protected'));

    const { result } = await deps.pass();

    expect(result).toMatchObject({ code: 403 });
    expect(deps.events).toContain('ChangeRefused');
    const told = { type: 'ReplicaFailure', reason: 'ChangeRefused' };
    const status = deps.machineSets.get('default/set-1')?.status;
    expect(status?.machineSetCondition).toContainEqual(expect.objectContaining(told));
  },
);

test('a Machine that came and went settles its creation: it holds nothing back', async () => {
  const deps = new SetWorld([going]);
  settleWhenObserved(deps);
  const [late] = owned(1);
  deps.expectations.expect(going.metadata.uid, 'm-0');
  if (late !== undefined) deps.machines.put(late);
  deps.machines.remove('default/m-0');

  expect(await deps.reconcile()).toEqual({ kind: 'stop' });
});
