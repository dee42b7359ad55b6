import { expect, test } from '@jest/globals';

import { FakeClock } from '../../../../../test/fakes/fake-clock.ts';
import { Uncertainty } from './uncertainty.ts';

test('whether there is no machine is uncertain for a while after a creation, or when one has vanished', () => {
  const clock = new FakeClock();
  const uncertainty = new Uncertainty({ clock });

  expect(uncertainty.leftMs('a')).toBe(0);
  uncertainty.creating('a');
  uncertainty.vanished('b', 'stay');
  uncertainty.vanished('c', 'going');
  expect(['a', 'b', 'c'].map((uid) => uncertainty.leftMs(uid))).toEqual([120_000, 30_000, 5_000]);

  clock.advance(1_000);
  // Only the first look counts, and an answer ends it.
  uncertainty.vanished('b', 'stay');
  uncertainty.certain('c');
  expect(['a', 'b', 'c'].map((uid) => uncertainty.leftMs(uid))).toEqual([119_000, 29_000, 0]);

  clock.advance(30_000);
  uncertainty.vanished('b', 'stay');
  expect(uncertainty.leftMs('b')).toBe(0);
  uncertainty.forget('b');
  uncertainty.vanished('b', 'stay');
  expect(uncertainty.leftMs('b')).toBe(30_000);

  uncertainty.vanished('d', 'go');
  expect(uncertainty.leftMs('d')).toBe(15_000);
  clock.advance(14_000);
  uncertainty.distrusted('d');
  expect(uncertainty.leftMs('d')).toBe(30_000);
  // A creation that may still be carried out is.
  uncertainty.creating('d');
  uncertainty.distrusted('d');
  expect(uncertainty.leftMs('d')).toBe(120_000);
});

test('a creation of another process is remembered for as long as one of this process, whatever the clocks say', () => {
  const clock = new FakeClock();
  const uncertainty = new Uncertainty({ clock });

  uncertainty.recall('none', undefined, false);
  uncertainty.recall('past', clock.now() - 120_000, false);
  uncertainty.recall('recent', clock.now() - 20_000, false);
  uncertainty.recall('future', clock.now() + 3_600_000, false);
  uncertainty.recall('distrusted', clock.now() - 100_000, true);
  uncertainty.recall('long distrusted', clock.now() - 3_600_000, true);
  uncertainty.recall('newly distrusted', clock.now() - 20_000, true);
  uncertainty.certain('refused');
  uncertainty.recall('refused', clock.now(), false);

  expect(['none', 'past', 'recent', 'future', 'refused'].map((uid) => uncertainty.leftMs(uid))).toEqual([
    0, 0, 100_000, 120_000, 0,
  ]);
  // What it has distrusted is looked for again, as if it had vanished.
  const distrusted = ['distrusted', 'long distrusted', 'newly distrusted'];
  expect(distrusted.map((uid) => uncertainty.leftMs(uid))).toEqual([30_000, 30_000, 100_000]);
});
