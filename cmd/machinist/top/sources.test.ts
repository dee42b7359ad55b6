import { expect, test } from '@jest/globals';

import { eventAt } from '../../../test/top-facts.ts';
import { ApiError } from '../../../pkg/kube/client/errors.ts';
import { RecentEvents } from './recent-events.ts';
import { Troubles } from './troubles.ts';

const NO_ANSWER = new ApiError(0, 'Unreachable', 'connection refused');
const FORBIDDEN = new ApiError(403, 'Forbidden', 'events is forbidden');

test('an outage has lasted since the last answer, and ends with the next one, whatever it says', () => {
  const troubles = new Troubles('API server', 0);
  troubles.note('machines', undefined, 1_000);
  troubles.note('machines', NO_ANSWER, 5_000);
  troubles.note('events', NO_ANSWER, 9_000);

  expect(troubles.list()).toEqual([
    { what: 'API server', sinceMs: 1_000, message: 'connection refused', isRefused: false },
  ]);

  troubles.note('events', FORBIDDEN, 10_000);

  expect(troubles.list()).toEqual([
    { what: 'events', sinceMs: 10_000, message: 'events is forbidden', isRefused: true },
  ]);
});

test('what was refused is refused until it is answered', () => {
  const troubles = new Troubles('API server', 0);
  troubles.note('events', FORBIDDEN, 1_000);
  troubles.note('events', FORBIDDEN, 2_000);
  troubles.note('machines', undefined, 3_000);
  troubles.note('machines', new Error('a bug'), 3_000);

  expect(troubles.list()).toMatchObject([{ what: 'events', sinceMs: 1_000 }]);

  troubles.note('events', undefined, 4_000);

  expect(troubles.list()).toEqual([]);
});

test('of any number of Events the latest are kept, in their order', () => {
  const recent = new RecentEvents(3);
  const timeOf = (n: number): string => `2026-01-01T00:${String(n).padStart(2, '0')}:00Z`;
  for (const n of [5, 9, 1, 7, 3, 8, 2, 6, 4]) recent.add(eventAt(timeOf(n)));
  recent.add(eventAt(timeOf(7), { count: 2 }));

  expect(recent.list().map(({ lastTimestamp, count }) => [lastTimestamp, count])).toEqual([
    [timeOf(7), 2],
    [timeOf(8), 1],
    [timeOf(9), 1],
  ]);
});
