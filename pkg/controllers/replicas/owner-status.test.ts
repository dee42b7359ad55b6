import { expect, test } from '@jest/globals';

import { machineSet } from '../../../test/builders.ts';
import { passOver, SetWorld } from '../../../test/fakes/replicas-world.ts';
import { MACHINE_FINALIZER } from '../../apis/machine/v1alpha1/labels.ts';
import { MINUTE_MS } from '../../base/clock/clock.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { statusPatch } from '../../kube/client/patch.ts';
import { machineSets } from '../../kube/client/resource.ts';
import { Finalizer } from '../../work/reconcile/finalizer.ts';
import { OwnerStatuses } from './owner-status.ts';

function scene(sets: readonly MachineSet[]) {
  const world = new SetWorld(sets);
  const { client: writer, machineSets: objects, recorder, clock } = world;
  const finalizer = new Finalizer(writer, machineSets, MACHINE_FINALIZER);
  const of = { kind: 'MachineSet', resource: machineSets, conditionsOf: () => [] } as const;
  const statuses = new OwnerStatuses({ ...of, objects, finalizer, writer, recorder, clock });
  /** What was written, and after which time the pass comes back. */
  const write = async (set: MachineSet) => {
    const [pass, before] = [passOver(set), writer.writes.length];
    await statuses.write(pass, (object) => statusPatch(object, { replicas: 7 }));
    const result = pass.notes.resultOf({ kind: 'stop' });
    return [writer.writes.length - before, result.kind === 'requeue' ? result.afterMs : undefined];
  };
  return { world, statuses, write };
}

const named = (name: string) => machineSet((s) => void Object.assign(s.metadata, { name, uid: name }));

test('a status is written at once, then after a pause, each object for itself, and at once again when it was forgotten', async () => {
  const [a, b] = [named('a'), named('b')];
  const { world, statuses, write } = scene([a, b]);

  expect(await write(a)).toEqual([1, undefined]);
  expect(await write(a)).toEqual([0, 250]);
  expect(await write(b)).toEqual([1, undefined]);
  world.clock.advance(100);
  expect(await write(a)).toEqual([0, 150]);
  world.clock.advance(150);
  expect(await write(a)).toEqual([1, undefined]);
  statuses.forget('default/a');
  expect(await write(a)).toEqual([1, undefined]);
});

test.each([
  {
    title: 'is being deleted and was let go',
    change: { deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['x'] },
  },
  { title: 'is another one of its name', change: { uid: 'another' } },
])('an object that $title shows no status', async ({ change }) => {
  const set = named('a');
  const { world, write } = scene([set]);
  world.machineSets.put({ ...set, metadata: { ...set.metadata, resourceVersion: '2', ...change } });

  expect(await write(set)).toEqual([0, undefined]);
});

test('a failure that has another text in each pass is told anew once a minute', () => {
  const { world, statuses } = scene([]);
  const seen = (text: string | undefined) => statuses.failureOf('default/a', text)?.text;

  expect([seen('request 1'), seen('request 2'), seen('request 1')]).toEqual(['request 1', 'request 1', 'request 1']);
  world.clock.advance(MINUTE_MS);
  expect([seen('request 4'), seen('request 5')]).toEqual(['request 4', 'request 4']);
  expect([seen(undefined), seen('request 6')]).toEqual([undefined, 'request 6']);
});

test('a failure that is told of for a minute is so with what it was, also if another one follows', () => {
  const { statuses } = scene([]);
  const quota = { text: 'quota', kind: 'creation' };

  expect(statuses.failureOf('default/a', 'quota', 'creation')).toEqual(quota);
  expect(statuses.failureOf('default/a', 'a policy')).toEqual(quota);
});

test('an Event tells of what is refused at first, and every 30 minutes, for as long as it is', () => {
  const { world, statuses } = scene([]);
  const tell = (refusal?: string): number => {
    const pass = { ...passOver(named('a')), ...(refusal !== undefined && { refusal }) };
    statuses.tell(pass);
    return world.events.length;
  };

  expect([tell('a policy'), tell('another')]).toEqual([1, 1]);
  world.clock.advance(30 * MINUTE_MS);
  expect([tell('a policy'), tell('a policy'), tell(), tell('a policy')]).toEqual([2, 2, 2, 3]);
  expect(world.events).toEqual(['ChangeRefused', 'ChangeRefused', 'ChangeRefused']);
});
