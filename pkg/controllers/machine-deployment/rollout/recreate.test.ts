import { expect, test } from '@jest/globals';

import { recreateStep } from './rollout.ts';
import { EMPTY_SET } from '../sets/set-facts.ts';

test.each([
  {
    title: 'empties old sets',
    old: [{ size: 2, existing: 2 }],
    want: { kind: 'shrink', sizes: new Map([['old-0', 0]]) },
  },
  {
    title: 'empties none while it is frozen',
    isFrozen: true,
    old: [
      { size: 1, existing: 9 },
      { size: 2, existing: 2 },
    ],
    want: { kind: 'stay' },
  },
  {
    title: 'takes what is too many while it is frozen, first of the oldest',
    isFrozen: true,
    now: 1,
    old: [
      { size: 2, existing: 2, createdMs: 2 },
      { size: 1, existing: 1, createdMs: 1 },
    ],
    want: {
      kind: 'shrink',
      sizes: new Map([
        ['old-1', 0],
        ['old-0', 2],
      ]),
    },
  },
  {
    title: 'takes what is missing before it, while it is frozen',
    isFrozen: true,
    old: [
      { size: 2, existing: 2, createdMs: 1 },
      { size: 2, existing: 0, missing: 2, createdMs: 2 },
    ],
    want: {
      kind: 'shrink',
      sizes: new Map([
        ['old-0', 2],
        ['old-1', 1],
      ]),
    },
  },
  {
    title: 'makes way for a new set that is to shrink, also while it is frozen',
    isFrozen: true,
    now: 4,
    old: [{ size: 2, existing: 2 }],
    want: { kind: 'shrink', sizes: new Map([['old-0', 0]]) },
  },
  {
    title: 'empties all that nobody wants, also while it is frozen',
    isFrozen: true,
    replicas: 0,
    old: [{ size: 2, existing: 2 }],
    want: { kind: 'shrink', sizes: new Map([['old-0', 0]]) },
  },
  {
    title: 'waits while it is frozen and has begun',
    isFrozen: true,
    old: [{ size: 0, existing: 1 }],
    want: { kind: 'wait' },
  },
  { title: 'waits for the last old Machine', old: [{ size: 0, existing: 1 }], want: { kind: 'wait' } },
  { title: 'grows when none is left', old: [{ size: 0, existing: 0 }], want: { kind: 'grow' } },
])('a Recreate $title', ({ old, now = 0, replicas = 3, isFrozen = false, want }) => {
  const oldSets = old.map((facts, i) => ({ ...EMPTY_SET, name: `old-${i}`, ...facts }));
  const newSet = { ...EMPTY_SET, name: 'now', size: now, existing: now };
  expect(recreateStep({ newSet, oldSets }, { replicas, surge: 0, unavailable: 0 }, isFrozen)).toEqual(want);
});
