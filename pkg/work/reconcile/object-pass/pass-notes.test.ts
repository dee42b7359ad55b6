import { expect, test } from '@jest/globals';

import { next, requeue, stop, waitFor } from '../result.ts';
import { PassNotes } from './pass-notes.ts';

test.each([
  { title: 'the sooner of two timers', timers: [20, 10, 30], result: stop, want: { kind: 'requeue', afterMs: 10 } },
  {
    title: 'a timer before its own requeue',
    timers: [10],
    result: requeue(20, 'x'),
    want: { kind: 'requeue', afterMs: 10 },
  },
  {
    title: 'its own requeue before a timer',
    timers: [20],
    result: requeue(10, 'x'),
    want: { kind: 'requeue', afterMs: 10 },
  },
  { title: 'a timer though it ended', timers: [10], result: next, want: { kind: 'requeue', afterMs: 10 } },
  { title: 'nothing', timers: [], result: waitFor('x'), want: { kind: 'stop' } },
])('a pass comes back for $title', ({ timers, result, want }) => {
  using pass = new PassNotes<never>();
  for (const afterMs of timers) pass.alsoAfter(afterMs, 'a deadline');

  expect(pass.resultOf(result)).toMatchObject(want);
});

test('what two steps of a pass changed one after the other is as before when the record is refused', () => {
  using pass = new PassNotes<never>();
  let status = 'as before';
  for (const changed of ['changed', 'changed again']) {
    const found = status;
    status = changed;
    pass.undoUnlessRecorded(() => void (status = found));
  }

  pass.unrecorded();

  expect(status).toBe('as before');
});
