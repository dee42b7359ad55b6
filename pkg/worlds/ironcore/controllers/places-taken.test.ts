import { expect, test } from '@jest/globals';
import * as fc from 'fast-check';

import type { IronCoreMachine } from '../api/machine.ts';
import { PlacesTaken } from './places-taken.ts';

function machine(uid: string, pool?: string, machineClass = 'c'): IronCoreMachine {
  return {
    metadata: { name: uid, uid, resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' },
    spec: { machineClassRef: { name: machineClass }, ...(pool !== undefined && { machinePoolRef: { name: pool } }) },
  };
}

test('a Machine counts once, from the decision until it is gone', () => {
  const taken = new PlacesTaken();

  taken.take(machine('m'), 'a');
  taken.seen(machine('m'));
  expect(taken.in('a', 'c')).toBe(1);
  taken.seen(machine('m', 'a'));
  taken.seen(machine('m', 'a'));
  expect(taken.in('a', 'c')).toBe(1);
  taken.free('m');
  taken.free('m');

  expect(taken.in('a', 'c')).toBe(0);
});

test('a decision that could not be written frees its place', () => {
  const taken = new PlacesTaken();
  taken.take(machine('m'), 'a');

  taken.free('m');

  expect(taken.in('a', 'c')).toBe(0);
});

test('what was decided for a version of a Machine is known until another version, or its end, is seen', () => {
  const taken = new PlacesTaken();
  const before = machine('m');
  taken.take(before, 'a');

  expect(taken.decided(before)).toBe('a');
  expect(taken.decided({ ...before, metadata: { ...before.metadata, resourceVersion: '2' } })).toBeUndefined();
  taken.seen(machine('m', 'a'));
  expect(taken.decided(before)).toBeUndefined();
  expect([taken.free('m'), taken.free('m')]).toEqual([true, false]);
  expect(taken.decided(before)).toBeUndefined();
});

test('a Machine that somebody else gave another pool counts there alone', () => {
  const taken = new PlacesTaken();
  taken.take(machine('m'), 'a');

  taken.seen(machine('m', 'b'));

  expect([taken.in('a', 'c'), taken.in('b', 'c')]).toEqual([0, 1]);
});

test('classes are counted apart', () => {
  const taken = new PlacesTaken();

  taken.seen(machine('m-1', 'a', 'c'));
  taken.seen(machine('m-2', 'a', 'd'));

  expect([taken.in('a', 'c'), taken.in('a', 'd'), taken.in('b', 'c')]).toEqual([1, 1, 0]);
});

test('whatever is told, the counts are those of a list of the Machines that have a place', () => {
  const uid = fc.constantFrom('m-1', 'm-2', 'm-3');
  const pool = fc.constantFrom('a', 'b');
  const told = fc.oneof(
    fc.record({ what: fc.constant('take' as const), uid, pool }),
    fc.record({ what: fc.constant('seen' as const), uid, pool: fc.option(pool, { nil: undefined }) }),
    fc.record({ what: fc.constant('free' as const), uid, pool: fc.constant(undefined) }),
  );
  fc.assert(
    fc.property(fc.array(told, { maxLength: 20 }), (events) => {
      const taken = new PlacesTaken();
      const places = new Map<string, string>();
      for (const event of events) {
        if (event.what === 'free') {
          taken.free(event.uid);
          places.delete(event.uid);
          continue;
        }
        if (event.pool !== undefined) places.set(event.uid, event.pool);
        if (event.what === 'take') taken.take(machine(event.uid), event.pool);
        else taken.seen(machine(event.uid, event.pool));
      }
      for (const name of ['a', 'b']) {
        expect(taken.in(name, 'c')).toBe([...places.values()].filter((at) => at === name).length);
      }
    }),
  );
});
