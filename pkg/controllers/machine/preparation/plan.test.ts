import { expect, test } from '@jest/globals';

import { planPreparation, type PreparationFacts } from './plan.ts';

const draining: PreparationFacts = { isRequested: true, hasBegun: true, policy: undefined, hooks: 0, hasNode: true };
const hardly = { ...draining, hasBegun: false, hooks: 2 };

test.each([
  { facts: { ...draining, isRequested: false, hasBegun: false }, want: 'nothing' },
  { facts: { ...draining, isRequested: false }, want: 'abort' },
  { facts: { ...draining, isRequested: false, policy: 'forced' }, want: 'abort' },
  { facts: { ...draining, hasBegun: false }, want: 'begin' },
  { facts: hardly, want: 'begin' },
  { facts: { ...hardly, policy: 'unsafe' }, want: 'delete' },
  { facts: { ...hardly, policy: 'forced' }, want: 'delete' },
  { facts: { ...draining, policy: 'unsafe' }, want: 'delete' },
  { facts: { ...draining, hooks: 1 }, want: 'await-hooks' },
  { facts: { ...draining, hooks: 1, hasNode: false }, want: 'await-hooks' },
  { facts: draining, want: 'drain' },
  { facts: { ...draining, policy: 'graceful' }, want: 'drain' },
  { facts: { ...draining, hasNode: false }, want: 'delete' },
] as const)('$facts: $want', ({ facts, want }) => {
  expect(planPreparation(facts)).toBe(want);
});
