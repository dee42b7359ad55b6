import { expect, test } from '@jest/globals';

import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { endWithResults } from './last-results.ts';

/** What is called, in order. */
function start(): { story: string[]; stop: (graceMs: number) => Promise<void> } {
  const story: string[] = [];
  const clock = new FakeClock();
  const note =
    (what: string, tookMs = 0) =>
    (ms?: unknown): Promise<void> => {
      story.push(typeof ms === 'number' ? `${what} ${ms}` : what);
      clock.advance(tookMs);
      return Promise.resolve();
    };
  const queue = {
    restrict: () => void story.push('restrict queue'),
    rest: note('rest', 1_000),
    stop: note('stop queue'),
  };
  const activities = { hasResult: () => false, stop: note('stop activities', 4_000) };
  return { story, stop: (graceMs) => endWithResults(activities, queue, { clock, graceMs }) };
}

test('work ends first, then what came of it is recorded, then the queue ends with what is left of the grace', async () => {
  const { story, stop } = start();

  await stop(20_000);

  expect(story).toEqual([
    'restrict queue',
    'stop activities 20000',
    'rest 5000',
    'stop queue 15000',
    'stop activities 15000',
  ]);
});

test('without grace everything ends at once', async () => {
  const { story, stop } = start();

  await stop(0);

  expect(story).toEqual(['stop queue 0', 'stop activities 0']);
});
