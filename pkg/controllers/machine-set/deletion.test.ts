import { expect, test } from '@jest/globals';

import { machine, machineSet } from '../../../test/builders.ts';
import { MemorySetDeps } from '../../../test/machine-set-deps.ts';
import { MACHINE_FINALIZER } from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { ApiError } from '../../kube/errors.ts';
import { machines as machineResource } from '../../kube/resource.ts';
import { controllerReference } from '../../reconcile/ownership.ts';
import { finishSetDeletion } from './deletion.ts';
import { DELETIONS_A_PASS } from './scale-down.ts';
import { settleWhenSeen } from './unseen-creations.ts';

const signal = new AbortController().signal;
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
  const deps = new MemorySetDeps([going], []);

  expect(await finishSetDeletion(deps, going, signal)).toMatchObject({ kind: 'next' });

  const { uid, resourceVersion } = going.metadata;
  expect(deps.client.writes).toMatchObject([
    { intent: 'change', uid, resourceVersion, body: { metadata: { finalizers: ['example.com/other'] } } },
  ]);
});

test('a set stays while a POST is unanswered, and looks again by itself', async () => {
  const deps = new MemorySetDeps([going], []);
  deps.expectations.expect(going.metadata.uid, 'm-unanswered');

  expect(await finishSetDeletion(deps, going, signal)).toMatchObject({ kind: 'requeue' });
  expect(deps.client.writes).toEqual([]);

  deps.clock.advance(5 * 60_000);
  expect(await finishSetDeletion(deps, going, signal)).toMatchObject({ kind: 'next' });
});

test('an unanswered POST that made a Machine after all is found live, and the Machine deleted first', async () => {
  const deps = new MemorySetDeps([going], []);
  const [late] = owned(1);
  deps.expectations.expect(going.metadata.uid, 'm-0');
  if (late !== undefined) deps.client.put(machineResource, late);
  deps.clock.advance(5 * 60_000);

  expect(await finishSetDeletion(deps, going, signal)).toMatchObject({ kind: 'requeue', afterMs: 0 });
  expect(deps.client.writes).toEqual([]);
  await finishSetDeletion(deps, going, signal);
  expect(deps.client.writes).toMatchObject([{ verb: 'delete', what: 'machines/m-0' }]);
});

test('the last Machine goes before the set', async () => {
  const deps = new MemorySetDeps([going], owned(1));

  expect(await finishSetDeletion(deps, going, signal)).toMatchObject({ kind: 'stop' });

  expect(deps.client.writes).toMatchObject([{ verb: 'delete', intent: 'destroy', what: 'machines/m-0' }]);
});

test('a large set goes on by itself after the first Machines', async () => {
  const deps = new MemorySetDeps([going], owned(DELETIONS_A_PASS + 1));

  expect(await finishSetDeletion(deps, going, signal)).toMatchObject({ kind: 'requeue', afterMs: 0 });
  expect(deps.client.writes).toHaveLength(DELETIONS_A_PASS);
});

test('a deletion that spares its dependents waits for the garbage collector', async () => {
  const deps = new MemorySetDeps([going], owned(1));
  const sparing = machineSet((s) => {
    s.metadata.deletionTimestamp = 'now';
    s.metadata.finalizers = ['orphan', MACHINE_FINALIZER];
  });

  expect(await finishSetDeletion(deps, sparing, signal)).toMatchObject({ kind: 'stop' });
  expect(deps.client.writes).toEqual([]);
});

test('a Machine that cannot be looked for does not count as never made', async () => {
  const deps = new MemorySetDeps([going], []);
  deps.expectations.expect(going.metadata.uid, 'm-unanswered');
  deps.client.readFailure = new ApiError(503, 'ServiceUnavailable', 'no answer');
  deps.clock.advance(5 * 60_000);

  await expect(finishSetDeletion(deps, going, signal)).rejects.toThrow('no answer');
  expect(deps.client.writes).toEqual([]);
});

test('a Machine that came and went settles its creation: it holds nothing back', async () => {
  const deps = new MemorySetDeps([going], []);
  settleWhenSeen(deps);
  const [late] = owned(1);
  deps.expectations.expect(going.metadata.uid, 'm-0');
  if (late !== undefined) deps.machines.put(late);
  deps.machines.remove('default/m-0');

  expect(await finishSetDeletion(deps, going, signal)).toMatchObject({ kind: 'next' });
});
