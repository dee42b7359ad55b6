import { expect, test } from '@jest/globals';
import { PhaseHistory, SAMPLED_EVERY_MS } from './status-page.ts';

const START_MS = Date.parse('2026-01-01T00:00:00Z');
const HOUR_MS = 3_600_000;

test('an hour of samples is kept', () => {
  const history = new PhaseHistory();
  for (let atMs = START_MS; atMs <= START_MS + 2 * HOUR_MS; atMs += SAMPLED_EVERY_MS) history.add({ Running: 3 }, atMs);

  const samples = history.list();

  expect(samples).toHaveLength(241);
  expect(samples[0]).toEqual({ at: '2026-01-01T01:00:00Z', phases: { Running: 3 } });
  expect(samples.at(-1)?.at).toBe('2026-01-01T02:00:00Z');
});

test('a clock that is set back takes samples of the future away', () => {
  const history = new PhaseHistory();
  history.add({ Running: 1 }, START_MS);
  history.add({ Running: 2 }, START_MS + HOUR_MS / 2);

  history.add({ Running: 3 }, START_MS + 60_000);

  expect(history.list().map(({ phases }) => phases['Running'])).toEqual([1, 3]);
});
