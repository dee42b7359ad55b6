import { expect, test } from '@jest/globals';

import { toTimestamp } from '../../base/clock/clock.ts';
import { conditionOf, dated, withCondition, withoutCondition } from './conditions.ts';

const NOW_MS = Date.UTC(2026, 0, 2);
const NOW = toTimestamp(NOW_MS);
const EARLIER = '2026-01-01T00:00:00Z';
const READY = { type: 'Ready', status: 'True', reason: 'New' };

test.each([
  ['there is none', undefined, NOW],
  ['it has the same status', [{ type: 'Ready', status: 'True', lastTransitionTime: EARLIER }], EARLIER],
  ['it has another status', [{ type: 'Ready', status: 'False', lastTransitionTime: EARLIER }], NOW],
  ['another type has the same status', [{ type: 'Healthy', status: 'True', lastTransitionTime: EARLIER }], NOW],
  ['it has no time', [{ type: 'Ready', status: 'True' }], NOW],
  ['its time is null', [{ type: 'Ready', status: 'True', lastTransitionTime: null }], NOW],
  ['its time is none', [{ type: 'Ready', status: 'True', lastTransitionTime: 'yesterday' }], NOW],
])('when %s on record, the transition time follows', (_, recorded, lastTransitionTime) => {
  expect(dated(READY, recorded, NOW_MS)).toEqual({ ...READY, lastTransitionTime });
});

test('a condition takes the place of the former one of its type, and a new one is the last', () => {
  const conditions = [
    { type: 'A', status: 'True' },
    { type: 'B', status: 'True' },
  ];

  expect(withCondition(conditions, { type: 'A', status: 'False' })).toEqual([
    { type: 'A', status: 'False' },
    conditions[1],
  ]);
  expect(withCondition(conditions, { type: 'C', status: 'False' })).toEqual([
    ...conditions,
    { type: 'C', status: 'False' },
  ]);
  expect(withCondition<{ type: string; status: string }>(undefined, { type: 'C', status: 'False' })).toEqual([
    { type: 'C', status: 'False' },
  ]);
});

test('a condition that is there twice is there once afterwards', () => {
  const conditions = [
    { type: 'A', status: 'True' },
    { type: 'B', status: 'True' },
    { type: 'A', status: 'False' },
  ];

  expect(withCondition(conditions, { type: 'A', status: 'Unknown' })).toEqual([
    { type: 'A', status: 'Unknown' },
    { type: 'B', status: 'True' },
  ]);
  expect(withoutCondition(conditions, 'A')).toEqual([{ type: 'B', status: 'True' }]);
});

test('a condition is found and removed by its type', () => {
  const conditions = [{ type: 'A' }, { type: 'B' }];

  expect([conditionOf(conditions, 'B'), conditionOf(conditions, 'C'), conditionOf(undefined, 'A')]).toEqual([
    { type: 'B' },
    undefined,
    undefined,
  ]);
  expect([withoutCondition(conditions, 'A'), withoutCondition(undefined, 'A')]).toEqual([[{ type: 'B' }], []]);
});
