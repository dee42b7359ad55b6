import { expect, test } from '@jest/globals';

import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { LateVMs, UNANSWERED_MS } from './late-vms.ts';

test('VMs of a class may appear for two minutes after the last call without an answer, those of other classes never', () => {
  const clock = new FakeClock();
  const late = new LateVMs(clock);

  late.ended('ns/a', false);
  clock.advance(60_000);
  late.ended('ns/a', false);
  clock.advance(UNANSWERED_MS - 1);

  expect([late.leftMs('ns/a'), late.leftMs('ns/b')]).toEqual([1, 0]);
  clock.advance(1);
  expect(late.leftMs('ns/a')).toBe(0);
});

test('VMs of a class may appear while a call is under way, and not once all were answered', () => {
  const late = new LateVMs(new FakeClock());

  late.sent('ns/a');
  late.sent('ns/a');
  late.ended('ns/a', true);
  expect([late.leftMs('ns/a'), late.leftMs('ns/b')]).toEqual([UNANSWERED_MS, 0]);

  late.ended('ns/a', true);
  expect(late.leftMs('ns/a')).toBe(0);
});
