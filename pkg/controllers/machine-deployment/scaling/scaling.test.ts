import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';

import { isScalingEvent, scale, replaceNamed, type ScalingFacts } from './scaling.ts';
import { EMPTY_SET, type SetFacts } from '../sets/set-facts.ts';

const facts = (name: string, size: number, more: Partial<SetFacts> = {}): SetFacts => ({
  ...EMPTY_SET,
  name,
  size,
  existing: size,
  living: size,
  available: size,
  desiredNote: 10,
  maxNote: 13,
  missing: size - (more.living ?? size),
  free: size - (more.living ?? size),
  ...more,
});

function input(replicas: number, more: Partial<ScalingFacts>): ScalingFacts {
  return {
    newSet: undefined,
    oldSets: [],
    strategy: 'RollingUpdate',
    limits: { replicas, surge: replicas === 0 ? 0 : 3, unavailable: 2 },
    isPaused: false,
    isFrozen: false,
    ...more,
  };
}

describe('a scaling event is', () => {
  test.each([
    { title: 'no: more is wanted of a template that has no set', replicas: 12, oldSets: [facts('a', 10)], is: false },
    { title: 'yes: fewer are wanted of a template that has no set', replicas: 9, oldSets: [facts('a', 10)], is: true },
    { title: 'no: they were taken before', replicas: 9, oldSets: [facts('a', 9, { desiredNote: 9 })], is: false },
    {
      title: 'yes: fewer are wanted than a set without a note has, of a template that has no set',
      replicas: 9,
      oldSets: [facts('a', 10, { desiredNote: undefined })],
      is: true,
    },
    {
      title: 'no: a set without a note has as many as are wanted, of a template that has no set',
      replicas: 10,
      oldSets: [facts('a', 10, { desiredNote: undefined })],
      is: false,
    },
    { title: 'no: the replicas are what was noted', replicas: 10, newSet: facts('n', 10), is: false },
    { title: 'yes: an active set noted another number', replicas: 12, newSet: facts('n', 10), is: true },
    { title: 'yes: an active old set did', replicas: 12, newSet: facts('n', 0), oldSets: [facts('a', 10)], is: true },
    {
      title: 'no: a set without a note is ignored',
      replicas: 12,
      newSet: facts('n', 10, { desiredNote: undefined }),
      is: false,
    },
    { title: 'no: an inactive set is', replicas: 0, newSet: facts('n', 0), is: false },
    { title: 'yes: nothing is active although machines are wanted', replicas: 10, newSet: facts('n', 0), is: true },
    {
      title: 'no: machines of an old set are still going',
      replicas: 10,
      newSet: facts('n', 0),
      oldSets: [facts('a', 0, { existing: 1 })],
      is: false,
    },
  ])('$title', ({ replicas, newSet, oldSets = [], is }) => {
    expect(isScalingEvent(input(replicas, { newSet, oldSets }))).toBe(is);
  });
});

describe('scaling', () => {
  test.each([
    {
      title: 'gives the only active set all',
      replicas: 12,
      more: { newSet: facts('n', 10) },
      sizes: { n: 12 },
      noted: ['n'],
    },
    { title: 'takes from it', replicas: 4, more: { newSet: facts('n', 10) }, sizes: { n: 4 }, noted: ['n'] },
    { title: 'wakes an empty new set', replicas: 4, more: { newSet: facts('n', 0) }, sizes: { n: 4 }, noted: ['n'] },
    {
      title: 'wakes the newest old set when there is no new one',
      replicas: 4,
      more: { oldSets: [facts('b', 0, { createdMs: 2 }), facts('a', 0, { createdMs: 1 })], isPaused: true },
      sizes: { b: 4 },
      noted: ['b'],
    },
    {
      title: 'wakes the old set of the latest revision, however old it is',
      replicas: 4,
      more: {
        oldSets: [facts('b', 0, { createdMs: 2, revision: 2 }), facts('a', 0, { createdMs: 1, revision: 3 })],
        isPaused: true,
      },
      sizes: { a: 4 },
      noted: ['a'],
    },
    {
      title: 'of several old sets grows the latest that has an available machine',
      replicas: 8,
      more: {
        oldSets: [
          facts('c', 2, { revision: 3, available: 0 }),
          facts('b', 2, { revision: 2 }),
          facts('a', 2, { revision: 1 }),
        ],
        isPaused: true,
      },
      sizes: { b: 4 },
      noted: ['a', 'b', 'c'],
    },
    {
      title: 'of several old sets without an available machine grows the latest',
      replicas: 8,
      more: {
        oldSets: [
          facts('b', 3, { createdMs: 1, revision: 2, available: 0 }),
          facts('a', 3, { createdMs: 2, revision: 1, available: 0 }),
        ],
        isPaused: true,
      },
      sizes: { b: 5 },
      noted: ['a', 'b'],
    },
    {
      title: 'takes from the old set of a template that has none',
      replicas: 4,
      more: { oldSets: [facts('a', 10)], isFrozen: true },
      sizes: { a: 4 },
      noted: ['a'],
    },
    {
      title: 'does not grow the old set of a template that has none',
      replicas: 8,
      more: { oldSets: [facts('a', 3)] },
      sizes: {},
      noted: ['a'],
    },
    {
      title: 'does not grow the newest old set of a template that has none',
      replicas: 8,
      more: { oldSets: [facts('b', 3, { createdMs: 2 }), facts('a', 2, { createdMs: 1 })] },
      sizes: {},
      noted: ['a', 'b'],
    },
    {
      title: 'leaves no surge to the old sets of a template that has none',
      replicas: 6,
      more: { oldSets: [facts('b', 7, { createdMs: 2 }), facts('a', 6, { createdMs: 1 })] },
      sizes: { a: 3, b: 3 },
      noted: ['a', 'b'],
    },
    {
      title: 'leaves them the surge while paused',
      replicas: 6,
      more: { oldSets: [facts('b', 7, { createdMs: 2 }), facts('a', 6, { createdMs: 1 })], isPaused: true },
      sizes: { a: 4, b: 5 },
      noted: ['a', 'b'],
    },
    {
      title: 'does not grow the only old set that a Recreate is to empty',
      replicas: 8,
      more: { oldSets: [facts('a', 3)], strategy: 'Recreate' },
      sizes: {},
      noted: ['a'],
    },
    {
      title: 'does not grow it either when there is a new one',
      replicas: 12,
      more: { newSet: facts('n', 0), oldSets: [facts('a', 10)], strategy: 'Recreate' },
      sizes: {},
      noted: ['a'],
    },
    {
      title: 'grows it while it is paused',
      replicas: 12,
      more: { oldSets: [facts('a', 10)], strategy: 'Recreate', isPaused: true },
      sizes: { a: 12 },
      noted: ['a'],
    },
    {
      title: 'during a rollout leaves growth to the new set',
      replicas: 14,
      more: { newSet: facts('n', 0), oldSets: [facts('a', 10)] },
      sizes: {},
      noted: ['a'],
    },
    {
      title: 'while paused grows the old set',
      replicas: 14,
      more: { newSet: facts('n', 0), oldSets: [facts('a', 10)], isPaused: true },
      sizes: { a: 14 },
      noted: ['a'],
    },
    {
      title: 'gives the new set what is wanted more',
      replicas: 20,
      more: { newSet: facts('n', 5), oldSets: [facts('a', 8)] },
      sizes: { n: 15 },
      noted: ['n', 'a'],
    },
    {
      title: 'never raises the new set above the replicas',
      replicas: 11,
      more: { newSet: facts('n', 10), oldSets: [facts('a', 1)] },
      sizes: { n: 11 },
      noted: ['n', 'a'],
    },
    {
      title: 'takes from all in proportion, from the largest what rounding leaves',
      replicas: 5,
      more: { newSet: facts('n', 5), oldSets: [facts('a', 8)] },
      sizes: { n: 3, a: 5 },
      noted: ['n', 'a'],
    },
    {
      title: 'takes first what the new set has not made, and costs no machine',
      replicas: 5,
      more: { newSet: facts('n', 8, { existing: 0, living: 0, available: 0 }), oldSets: [facts('a', 8)] },
      sizes: { n: 0 },
      noted: ['n', 'a'],
    },
    {
      title: 'takes then from all in proportion',
      replicas: 5,
      more: { newSet: facts('n', 6, { existing: 5, living: 5 }), oldSets: [facts('a', 8)] },
      sizes: { n: 3, a: 5 },
      noted: ['n', 'a'],
    },
    {
      title: 'takes first what the new set has not made in place, too',
      replicas: 4,
      more: {
        newSet: facts('n', 2, { existing: 0, living: 0, available: 0 }),
        oldSets: [facts('a', 3)],
        strategy: 'InPlaceUpdate',
        limits: { replicas: 4, surge: 0, unavailable: 1 },
      },
      sizes: { n: 1 },
      noted: ['n', 'a'],
    },
    {
      title: 'takes the rest from the oldest set in place',
      replicas: 4,
      more: {
        newSet: facts('n', 2, { existing: 1, living: 1, available: 0 }),
        oldSets: [facts('a', 3), facts('b', 3, { living: 2, createdMs: 1 })],
        strategy: 'InPlaceUpdate',
        limits: { replicas: 4, surge: 0, unavailable: 1 },
      },
      sizes: { n: 1, a: 1, b: 2 },
      noted: ['n', 'a', 'b'],
    },
    {
      title: 'takes then machines that are not available, of which the new set has the most, and none that works',
      replicas: 8,
      more: {
        newSet: facts('n', 5, { available: 0, free: 5 }),
        oldSets: [facts('a', 8)],
        limits: { replicas: 8, surge: 2, unavailable: 0 },
      },
      sizes: { n: 2 },
      noted: ['n', 'a'],
    },
    {
      title:
        'takes a machine that works, as the rollout would, rather than the only one of the new template, which is preserved',
      replicas: 5,
      more: {
        newSet: facts('n', 1, { available: 0, freePreserved: 1 }),
        oldSets: [facts('a', 6)],
        limits: { replicas: 5, surge: 1, unavailable: 0 },
      },
      sizes: { a: 5 },
      noted: ['n', 'a'],
    },
    {
      title: 'takes replicas without a machine before machines that are not available',
      replicas: 8,
      more: {
        newSet: facts('n', 3, { available: 0, living: 1, free: 3 }),
        oldSets: [facts('a', 8, { available: 6, free: 2 })],
        limits: { replicas: 8, surge: 0, unavailable: 0 },
      },
      sizes: { n: 1, a: 7 },
      noted: ['n', 'a'],
    },
    {
      title: 'takes machines that are not available first in place, too',
      replicas: 3,
      more: {
        newSet: facts('n', 2, { available: 0, free: 2 }),
        oldSets: [facts('a', 3)],
        strategy: 'InPlaceUpdate',
        limits: { replicas: 3, surge: 1, unavailable: 0 },
      },
      sizes: { n: 1 },
      noted: ['n', 'a'],
    },
    ...[undefined, facts('n', 0)].map((newSet) => ({
      title: `takes what another template has not made in place, with ${newSet === undefined ? 'no' : 'an empty'} new set`,
      replicas: 5,
      more: {
        newSet,
        oldSets: [facts('a', 3), facts('b', 3, { living: 0, available: 0, createdMs: 1 })],
        strategy: 'InPlaceUpdate',
        limits: { replicas: 5, surge: 0, unavailable: 1 },
      },
      sizes: { b: 2 },
      noted: ['a', 'b'],
    })),
    {
      title: 'does not take a machine that was just moved in place for one that its old set has not made',
      replicas: 6,
      more: {
        newSet: facts('n', 1, { living: 2 }),
        oldSets: [facts('a', 3), facts('b', 4, { living: 2, createdMs: 1 })],
        strategy: 'InPlaceUpdate',
        limits: { replicas: 6, surge: 0, unavailable: 1 },
      },
      sizes: { b: 3, a: 2 },
      noted: ['n', 'a', 'b'],
    },
    {
      title: 'does not take a named machine for one of those that stay',
      replicas: 6,
      more: { newSet: facts('n', 4, { living: 3, named: 1 }), oldSets: [facts('a', 7)] },
      sizes: { n: 2 },
      noted: ['n', 'a'],
    },
    {
      title: 'empties all at 0 replicas',
      replicas: 0,
      more: { newSet: facts('n', 5), oldSets: [facts('a', 8)] },
      sizes: { n: 0, a: 0 },
      noted: ['n', 'a'],
    },
    {
      title: 'empties old sets when the new one has all',
      replicas: 10,
      more: { newSet: facts('n', 10), oldSets: [facts('a', 2, { desiredNote: 9 })] },
      sizes: { a: 0 },
      noted: ['n', 'a'],
    },
    {
      title: 'lets a Recreate empty its old sets itself',
      replicas: 12,
      more: { newSet: facts('n', 5), oldSets: [facts('a', 5)], strategy: 'Recreate' },
      sizes: {},
      noted: ['n', 'a'],
    },
  ])('$title', ({ replicas, more, sizes, noted }) => {
    const got = scale(input(replicas, more));

    expect(Object.fromEntries(got.sizes)).toEqual(sizes);
    expect(got.noted.toSorted()).toEqual(noted.toSorted());
  });

  test('a frozen deployment raises nothing, and does not forget what it was asked for', () => {
    const raise = scale(input(12, { newSet: facts('n', 10), isFrozen: true }));
    const lower = scale(input(4, { newSet: facts('n', 10), isFrozen: true }));
    const back = scale(input(12, { newSet: facts('n', 10, { living: 14 }), isFrozen: true }));
    const some = scale(input(12, { newSet: facts('n', 10, { living: 11 }), isFrozen: true }));

    expect([back, some].map(({ sizes, noted }) => [...sizes, ...noted])).toEqual([[['n', 12], 'n'], [['n', 11]]]);

    expect({ sizes: raise.sizes.size, noted: raise.noted }).toEqual({ sizes: 0, noted: [] });
    expect(Object.fromEntries(lower.sizes)).toEqual({ n: 4 });
  });

  test('of several sets exactly replicas plus surge stay, and none grows when fewer are wanted', () => {
    const sizesArbitrary = fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 2, maxLength: 5 });
    fc.assert(
      fc.property(
        sizesArbitrary,
        fc.nat(100),
        fc.nat(10),
        fc.option(fc.integer({ min: 1, max: 200 })),
        (sizes, replicas, surge, note) => {
          const sets = sizes.map((size, i) =>
            facts(`s-${i}`, size, { createdMs: i, maxNote: note ?? undefined, desiredNote: replicas + 1 }),
          );
          const [newSet, ...oldSets] = sets as [SetFacts, ...SetFacts[]];
          const allowed = replicas === 0 ? 0 : replicas + surge;
          const total = sizes.reduce((sum, size) => sum + size, 0);
          fc.pre(total > allowed);

          const got = scale(input(replicas, { newSet, oldSets, limits: { replicas, surge, unavailable: 0 } }));

          const after = sets.map(({ name, size }) => got.sizes.get(name) ?? size);
          expect(after.reduce((sum, size) => sum + size, 0)).toBe(allowed);
          for (const [i, size] of after.entries()) expect(size).toBeLessThanOrEqual(sizes[i] ?? 0);
          expect(Math.min(...after)).toBeGreaterThanOrEqual(0);
        },
      ),
    );
  });
});

describe('machines that an autoscaler has named', () => {
  const old = facts('a', 6, { named: 2 });
  const newSet = facts('n', 5);

  test.each([
    { title: 'go from their own set first', more: { newSet, oldSets: [old] }, sizes: { a: 4 }, replicas: 6 },
    { title: 'go also when more is wanted', more: { newSet, oldSets: [old] }, sizes: { a: 4, n: 9 }, replicas: 12 },
    {
      title: 'of the only active set of a rollout are not made up for there',
      more: { newSet: facts('n', 0), oldSets: [facts('a', 10, { named: 2 })] },
      sizes: { a: 8 },
      replicas: 9,
    },
    {
      title: 'can be more than their set should have, when surplus ones are still there',
      more: { newSet: facts('n', 0), oldSets: [facts('a', 1, { named: 2, existing: 3 })] },
      sizes: { a: 0 },
      replicas: 1,
    },
    {
      title: 'in place: go from their own set, the rest from the oldest',
      more: { newSet: facts('n', 3, { named: 1 }), oldSets: [facts('a', 8)], strategy: 'InPlaceUpdate' },
      sizes: { n: 2, a: 6 },
      replicas: 5,
    },
  ])('$title', ({ more, sizes, replicas }) => {
    expect(Object.fromEntries(scale(input(replicas, more)).sizes)).toEqual(sizes);
  });

  test.each([
    { title: 'an old set gives them up', more: {}, sizes: { a: 4 }, noted: ['a'] },
    { title: 'while paused a set only learns of them', more: { isPaused: true }, sizes: {}, noted: ['a'] },
    { title: 'without a new set it only learns of them', more: { newSet: undefined }, sizes: {}, noted: ['a'] },
    {
      title: 'the new set only learns of its own',
      more: { newSet: facts('n', 5, { named: 1 }), oldSets: [] },
      sizes: {},
      noted: ['n'],
    },
    { title: 'nobody has to learn anything', more: { oldSets: [facts('a', 6)] }, sizes: {}, noted: [] },
  ])('when the replicas are what they were, $title', ({ more, sizes, noted }) => {
    const told = replaceNamed(input(10, { newSet, oldSets: [old], ...more }));

    expect([Object.fromEntries(told.sizes), told.noted]).toEqual([sizes, noted]);
  });
});
