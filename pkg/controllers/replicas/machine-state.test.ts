import { describe, expect, test } from '@jest/globals';

import { machine, type BuiltMachine } from '../../../test/builders.ts';
import { MAINTENANCE_SINCE_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import type { MachinePhase } from '../../apis/machine/v1alpha1/phases.ts';
import { countMachines, isFailed, isTerminating } from './machine-state.ts';
import { isPreserved } from '../machine-facts/preserved.ts';

const PAST = '2026-01-01T00:00:00Z';
const NOW = Date.parse('2026-01-02T00:00:00Z');
const LATER = '2026-01-03T00:00:00Z';

const inPhase = (phase: MachinePhase | '', change?: (m: BuiltMachine) => void): BuiltMachine =>
  machine((m) => {
    m.status.currentStatus.phase = phase;
    change?.(m);
  });
const preserved = (until: string) => (m: BuiltMachine) => void (m.status.currentStatus.preserveExpiryTime = until);
const going = (m: BuiltMachine): void => void (m.metadata.deletionTimestamp = PAST);
const inMaintenance = (m: BuiltMachine): void => void (m.metadata.annotations[MAINTENANCE_SINCE_ANNOTATION] = PAST);

describe('a Machine counts', () => {
  test.each([
    { what: 'Running', of: inPhase('Running'), want: [1, 1, 1, 0] },
    { what: 'Available', of: inPhase('Available'), want: [1, 0, 1, 0] },
    { what: 'Pending', of: inPhase('Pending'), want: [1, 0, 0, 0] },
    { what: 'without a phase', of: inPhase(''), want: [1, 0, 0, 0] },
    { what: 'Failed', of: inPhase('Failed'), want: [1, 0, 0, 0] },
    { what: 'Failed and preserved', of: inPhase('Failed', preserved(LATER)), want: [1, 0, 0, 1] },
    { what: 'Failed, its preservation over', of: inPhase('Failed', preserved(PAST)), want: [1, 0, 0, 1] },
    { what: 'Running and preserved', of: inPhase('Running', preserved(LATER)), want: [1, 1, 1, 0] },
    { what: 'Unknown and preserved', of: inPhase('Unknown', preserved(LATER)), want: [1, 0, 0, 0] },
    { what: 'Running, in maintenance', of: inPhase('Running', inMaintenance), want: [1, 1, 0, 0] },
    { what: 'Running, being deleted', of: inPhase('Running', going), want: [1, 0, 0, 0] },
    { what: 'Available, being deleted', of: inPhase('Available', going), want: [1, 0, 0, 0] },
    {
      what: 'Failed and preserved, being deleted',
      of: inPhase('Failed', (m) => [preserved(LATER), going].forEach((change) => change(m))),
      want: [1, 0, 0, 0],
    },
  ])('$what as [replicas, ready, available, preserved failed] $want', ({ of, want }) => {
    const { replicas, ready, available, preservedFailed } = countMachines([of]);

    expect([replicas, ready, available, preservedFailed]).toEqual(want);
  });
});

test.each([
  { what: 'Running', of: inPhase('Running'), terminating: false, failed: false },
  { what: 'Terminating', of: inPhase('Terminating'), terminating: true, failed: false },
  { what: 'Running, being deleted', of: inPhase('Running', going), terminating: true, failed: false },
  { what: 'Failed', of: inPhase('Failed'), terminating: false, failed: true },
  { what: 'Failed, being deleted', of: inPhase('Failed', going), terminating: true, failed: false },
])('$what is on its way out: $terminating, failed: $failed', ({ of, terminating, failed }) => {
  expect({ terminating: isTerminating(of), failed: isFailed(of) }).toEqual({ terminating, failed });
});

test.each([
  { until: undefined, nowMs: NOW, want: false },
  { until: LATER, nowMs: NOW, want: true },
  { until: LATER, nowMs: Date.parse(LATER) - 1, want: true },
  { until: LATER, nowMs: Date.parse(LATER), want: false },
  { until: PAST, nowMs: NOW, want: false },
])('a Machine that is preserved until $until is preserved at $nowMs: $want', ({ until, nowMs, want }) => {
  const of = machine((m) => {
    if (until !== undefined) preserved(until)(m);
  });

  expect(isPreserved(of, nowMs)).toBe(want);
});
