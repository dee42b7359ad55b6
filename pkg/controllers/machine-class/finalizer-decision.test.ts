import { expect, test } from '@jest/globals';

import { decideFinalizer, LONGEST_HOLD_MS, type ClassState } from './finalizer-decision.ts';

const unused: ClassState = {
  hasMachines: false,
  isHeld: true,
  isDeleting: false,
  isUnconfirmed: false,
  hasLost: false,
  hasLeft: false,
  mayComeLate: false,
  ownerless: undefined,
  waitedMs: 0,
  emptyForMs: undefined,
  uncountedForMs: 0,
  graceMs: 60_000,
};
const used: ClassState = { ...unused, hasMachines: true };
const deleting: ClassState = { ...unused, isDeleting: true };
const lost: ClassState = { ...deleting, hasLost: true };
const forced: ClassState = { ...deleting, isUnconfirmed: true, waitedMs: 10 * LONGEST_HOLD_MS };

test.each([
  { what: 'used, not held', state: { ...used, isHeld: false }, want: 'add' },
  { what: 'used, held', state: used, want: 'leave' },
  { what: 'used, held, deleted', state: { ...used, isDeleting: true }, want: 'leave' },
  { what: 'used, not held, deleted', state: { ...used, isHeld: false, isDeleting: true }, want: 'leave' },
  { what: 'unused, not held', state: { ...unused, isHeld: false }, want: 'leave' },
  { what: 'unused, held', state: unused, want: 'ask' },
  { what: 'no VM left', state: { ...unused, ownerless: 'none' }, want: 'remove' },
  { what: 'no VM left, deleted', state: { ...deleting, ownerless: 'none' }, want: 'remove' },
  { what: 'driver cannot list', state: { ...deleting, ownerless: 'unsupported' }, want: 'remove' },
  { what: 'a VM left', state: { ...unused, ownerless: 'some', waitedMs: 10 * LONGEST_HOLD_MS }, want: 'wait' },
  {
    what: 'a VM left, deleted',
    state: { ...deleting, ownerless: 'some', waitedMs: LONGEST_HOLD_MS - 1 },
    want: 'wait',
  },
  { what: 'nobody knows, deleted', state: { ...deleting, ownerless: 'unknown' }, want: 'wait' },
  {
    what: 'a VM left, deleted long ago',
    state: { ...deleting, ownerless: 'some', waitedMs: 10 * LONGEST_HOLD_MS },
    want: 'wait',
  },
  {
    what: 'nobody knows, deleted long ago',
    state: { ...deleting, ownerless: 'unknown', waitedMs: LONGEST_HOLD_MS },
    want: 'remove-unproven',
  },
  {
    what: 'no VM yet, which may come late',
    state: { ...deleting, ownerless: 'none', mayComeLate: true },
    want: 'wait',
  },
  {
    what: 'no VM that could be listed, which may come late',
    state: { ...deleting, ownerless: 'unsupported', mayComeLate: true },
    want: 'remove',
  },
  {
    what: 'nobody knows, deleted long ago, and a VM may come late',
    state: { ...deleting, ownerless: 'unknown', mayComeLate: true, waitedMs: LONGEST_HOLD_MS },
    want: 'remove-unproven',
  },
  {
    what: 'no VM in one list after a Machine vanished',
    state: { ...lost, ownerless: 'none', emptyForMs: 0 },
    want: 'wait',
  },
  {
    what: 'no VM in two lists after a Machine vanished',
    state: { ...lost, ownerless: 'none', emptyForMs: 60_000 },
    want: 'remove',
  },
  {
    what: 'no VM in one list after another had shown some',
    state: { ...deleting, hasLeft: true, ownerless: 'none', emptyForMs: 0 },
    want: 'wait',
  },
  {
    what: 'no VM in two lists after another had shown some',
    state: { ...deleting, hasLeft: true, ownerless: 'none', emptyForMs: 60_000 },
    want: 'remove',
  },
  {
    what: 'no VM in lists that have not counted for long after a Machine vanished',
    state: { ...lost, ownerless: 'none', uncountedForMs: LONGEST_HOLD_MS },
    want: 'remove-unproven',
  },
  {
    what: 'no VM in lists that have not counted for less long after a Machine vanished',
    state: { ...lost, ownerless: 'none', emptyForMs: 0, uncountedForMs: LONGEST_HOLD_MS - 1 },
    want: 'wait',
  },
  {
    what: 'no VM in lists that have not counted for less than two graces after a Machine vanished',
    state: { ...lost, ownerless: 'none', uncountedForMs: LONGEST_HOLD_MS, graceMs: LONGEST_HOLD_MS },
    want: 'wait',
  },
  {
    what: 'no VM in lists that have not counted for long after a Machine vanished from a class that is not deleted',
    state: { ...lost, isDeleting: false, ownerless: 'none', uncountedForMs: LONGEST_HOLD_MS },
    want: 'wait',
  },
  {
    what: 'no VM in lists that have not counted for long after another had shown some',
    state: { ...lost, hasLeft: true, ownerless: 'none', uncountedForMs: 10 * LONGEST_HOLD_MS },
    want: 'wait',
  },
  { what: 'driver cannot list after a Machine vanished', state: { ...lost, ownerless: 'unsupported' }, want: 'remove' },
  {
    what: 'nobody knows after a Machine vanished, deleted long ago',
    state: { ...lost, ownerless: 'unknown', waitedMs: LONGEST_HOLD_MS },
    want: 'remove-unproven',
  },
  { what: 'no VM in one list', state: { ...unused, ownerless: 'none', emptyForMs: 0 }, want: 'remove' },
  {
    what: 'no VM in one list after a forced removal',
    state: { ...forced, ownerless: 'none', emptyForMs: 0 },
    want: 'wait',
  },
  {
    what: 'no VM in two lists too close together after a forced removal',
    state: { ...forced, ownerless: 'none', emptyForMs: 59_999 },
    want: 'wait',
  },
  {
    what: 'no VM in two lists after a forced removal',
    state: { ...forced, ownerless: 'none', emptyForMs: 60_000 },
    want: 'remove',
  },
  { what: 'a VM left after a forced removal', state: { ...forced, ownerless: 'some' }, want: 'wait' },
  { what: 'nobody knows after a forced removal', state: { ...forced, ownerless: 'unknown' }, want: 'wait' },
  { what: 'driver cannot list after a forced removal', state: { ...forced, ownerless: 'unsupported' }, want: 'wait' },
] as const)('$what: $want', ({ state, want }) => {
  expect(decideFinalizer(state)).toBe(want);
});
