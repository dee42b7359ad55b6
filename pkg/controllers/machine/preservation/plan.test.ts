import { describe, expect, test } from '@jest/globals';

import type { MachinePhase } from '../../../apis/machine/v1alpha1/phases.ts';
import type { RequestedPreservation } from '../../machine-facts/preserve-value.ts';
import { planPreservation } from './plan.ts';

const NOW = Date.parse('2026-01-02T00:00:00Z');
const DAY = 24 * 3_600_000;
const PRESERVE = { kind: 'preserve', isAutomatic: false };
const AUTO = { kind: 'preserve', isAutomatic: true };
const LEAVE = { kind: 'leave' };
const end = (why: string, forgetsRequest = false): object => ({ kind: 'end', why, forgetsRequest });

interface Case {
  readonly asked: RequestedPreservation;
  readonly phase: MachinePhase;
  /** Not yet preserved; preserved; preserved, and its time is over. */
  readonly fresh: object;
  readonly bound: object;
  readonly over: object;
}

describe.each<Case>([
  { asked: '', phase: 'Running', fresh: LEAVE, bound: end('withdrawn'), over: end('expired') },
  { asked: '', phase: 'Failed', fresh: LEAVE, bound: end('withdrawn'), over: end('expired') },
  { asked: 'false', phase: 'Running', fresh: LEAVE, bound: end('withdrawn'), over: end('expired') },
  { asked: 'false', phase: 'Failed', fresh: LEAVE, bound: end('withdrawn'), over: end('expired') },
  { asked: 'now', phase: 'Running', fresh: PRESERVE, bound: PRESERVE, over: end('expired', true) },
  { asked: 'now', phase: 'Pending', fresh: PRESERVE, bound: PRESERVE, over: end('expired', true) },
  { asked: 'now', phase: 'InPlaceUpdating', fresh: PRESERVE, bound: PRESERVE, over: end('expired', true) },
  { asked: 'now', phase: 'Failed', fresh: PRESERVE, bound: PRESERVE, over: end('expired', true) },
  { asked: 'when-failed', phase: 'Running', fresh: LEAVE, bound: end('recovered'), over: end('expired', true) },
  { asked: 'when-failed', phase: 'Unknown', fresh: LEAVE, bound: end('recovered'), over: end('expired', true) },
  { asked: 'when-failed', phase: 'Failed', fresh: PRESERVE, bound: PRESERVE, over: end('expired', true) },
  {
    asked: 'auto-preserved',
    phase: 'Running',
    fresh: end('recovered', true),
    bound: end('recovered', true),
    over: end('expired', true),
  },
  { asked: 'auto-preserved', phase: 'Failed', fresh: AUTO, bound: AUTO, over: end('expired', true) },
  { asked: 'illegal', phase: 'Running', fresh: LEAVE, bound: LEAVE, over: end('expired', true) },
  { asked: 'illegal', phase: 'Failed', fresh: LEAVE, bound: LEAVE, over: end('expired', true) },
  { asked: 'now', phase: 'Terminating', fresh: LEAVE, bound: LEAVE, over: LEAVE },
])('when "$asked" is asked for a machine in phase $phase', ({ asked: requested, phase, fresh, bound, over }) => {
  test.each([
    { what: 'not preserved', expiryMs: undefined, want: fresh },
    { what: 'preserved', expiryMs: NOW + DAY, want: bound },
    { what: 'preserved until now', expiryMs: NOW, want: over },
    { what: 'preserved until yesterday', expiryMs: NOW - DAY, want: over },
  ])('and that is $what', ({ expiryMs, want }) => {
    expect(planPreservation({ requested, phase, expiryMs, isShown: false, nowMs: NOW })).toEqual(want);
  });

  test('and that only its Node says to be preserved', () => {
    const want = phase === 'Failed' ? fresh : bound;
    expect(planPreservation({ requested, phase, expiryMs: undefined, isShown: true, nowMs: NOW })).toEqual(want);
  });
});
