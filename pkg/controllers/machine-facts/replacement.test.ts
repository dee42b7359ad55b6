import { describe, expect, test } from '@jest/globals';

import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachinePhase } from '../../apis/machine/v1alpha1/phases.ts';
import { machine } from '../../../test/builders.ts';
import { mayReplace, replacementLimit, replacementsUnderWay } from './replacement.ts';

const NOW = Date.parse('2026-01-02T00:00:00Z');

let serial = 0;
function inPhase(phase: MachinePhase | '', preserved = false): Machine {
  serial += 1;
  return machine((m) => {
    m.metadata.name = `m-${serial}`;
    m.status.currentStatus.phase = phase;
    if (preserved) m.status.currentStatus.preserveExpiryTime = '2026-02-01T00:00:00Z';
  });
}

describe('the limit of replacements', () => {
  test.each([
    { annotation: undefined, replicas: 100, limit: 1 },
    { annotation: '0', replicas: 100, limit: 0 },
    { annotation: '5', replicas: 100, limit: 5 },
    { annotation: ' 5 ', replicas: 100, limit: 5 },
    { annotation: '10%', replicas: 55, limit: 5 },
    { annotation: '10%', replicas: 3, limit: 1 },
    { annotation: '-1', replicas: 100, limit: 1 },
    { annotation: '1.5', replicas: 100, limit: 1 },
    { annotation: 'many', replicas: 100, limit: 1 },
    { annotation: '', replicas: 100, limit: 1 },
  ])('"$annotation" of $replicas is $limit', ({ annotation, replicas, limit }) => {
    expect(replacementLimit(annotation, replicas)).toBe(limit);
  });
});

describe('replacements under way', () => {
  test.each([
    { phases: ['Running', 'Unknown', 'Running'], count: 0 },
    { phases: ['Failed'], count: 1 },
    { phases: ['Terminating'], count: 1 },
    { phases: ['Terminating', 'Pending'], count: 1 },
    { phases: ['Terminating', ''], count: 1 },
    { phases: ['Terminating', 'Failed', 'CrashLoopBackOff'], count: 2 },
    { phases: ['Pending', 'Pending', 'Terminating'], count: 2 },
    { phases: ['InPlaceUpdating', 'Failed'], count: 2 },
    { phases: ['InPlaceUpdateFailed', 'InPlaceUpdateSuccessful', 'Unknown'], count: 0 },
  ] as const)('$phases are $count', ({ phases, count }) => {
    expect(
      replacementsUnderWay(
        phases.map((phase) => inPhase(phase)),
        new Set(),
        NOW,
      ),
    ).toBe(count);
  });

  test('do not count what is preserved, and count what was condemned a moment ago', () => {
    const preserved = inPhase('Failed', true);
    const condemned = inPhase('Unknown');

    expect(replacementsUnderWay([preserved], new Set(), NOW)).toBe(0);
    expect(replacementsUnderWay([condemned], new Set([condemned.metadata.uid]), NOW)).toBe(1);
  });

  test.each([
    { time: '2026-01-01T00:00:00Z', count: 1 },
    { time: '2026-01-02T00:00:00Z', count: 1 },
    { time: '2026-01-02T00:00:01Z', count: 0 },
    { time: '', count: 1 },
  ])('count a failed machine that was preserved until "$time" as $count', ({ time, count }) => {
    const failed = machine((m) => void (m.status.currentStatus = { phase: 'Failed', preserveExpiryTime: time }));

    expect(replacementsUnderWay([failed], new Set(), NOW)).toBe(count);
  });

  test('count a machine whose deletion was asked for, whatever its phase', () => {
    const deleted = inPhase('Running');
    deleted.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';

    expect(replacementsUnderWay([deleted], new Set(), NOW)).toBe(1);
  });

  test('leave room up to the limit', () => {
    const others = [inPhase('Failed'), inPhase('Running')];

    expect(mayReplace(others, new Set(), { limit: 1, nowMs: NOW })).toBe(false);
    expect(mayReplace(others, new Set(), { limit: 2, nowMs: NOW })).toBe(true);
    expect(mayReplace([], new Set(), { limit: 0, nowMs: NOW })).toBe(false);
  });
});
