import { describe, expect, test } from '@jest/globals';

import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { ReconnectBackoff } from './reconnect-backoff.ts';

describe('ReconnectBackoff', () => {
  test('doubles from 0.8 s to 30 s', () => {
    const backoff = new ReconnectBackoff(new FakeClock(), { random: () => 0.5 });

    expect(Array.from({ length: 8 }, () => backoff.next())).toEqual([
      800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000,
    ]);
    expect(backoff.failures).toBe(8);
  });

  test('spreads every pause by a quarter to both sides', () => {
    expect(new ReconnectBackoff(new FakeClock(), { random: () => 0 }).next()).toBe(600);
    expect(new ReconnectBackoff(new FakeClock(), { random: () => 1 }).next()).toBe(1_000);
  });

  test('begins again after 2 min without failure, not counting its own pause', () => {
    const clock = new FakeClock();
    const backoff = new ReconnectBackoff(clock, { random: () => 0.5 });
    for (let i = 0; i < 7; i++) backoff.next();

    clock.advance(30_000 + 119_000);
    expect(backoff.next()).toBe(30_000);
    clock.advance(30_000 + 121_000);
    expect(backoff.next()).toBe(800);
  });
});
