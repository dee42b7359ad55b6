import { expect, test } from '@jest/globals';

import { FakeClock } from '../../test/fakes/fake-clock.ts';
import type { Capabilities } from '../driver/driver.ts';
import { DriverError } from '../driver/error.ts';
import { silentLogger } from '../base/log/logger.ts';
import { DriverGreetings } from './driver-greetings.ts';

test('a driver is asked until it answers, looked at from then on, and not any more when the process stops', async () => {
  const clock = new FakeClock();
  let isThere = false;
  const asked: number[] = [];
  const capabilities = (): Promise<Capabilities> => {
    asked.push(clock.monotonicMs());
    return isThere ? Promise.resolve({} as Capabilities) : Promise.reject(new DriverError('Unavailable', 'gone'));
  };
  const greetings = new DriverGreetings({ drivers: [{ provider: 'p', capabilities }], clock, log: silentLogger });

  await greetings.start();
  await clock.advanceAsync(60_000);
  const away = asked.splice(0);
  isThere = true;
  await clock.advanceAsync(60_000);
  const there = asked.splice(0);
  const stopped = greetings.stop();
  await clock.advanceAsync(60_000);
  await stopped;

  expect(away[0]).toBe(0);
  expect(away[1]).toBeLessThanOrEqual(1_000);
  expect(away.length).toBeGreaterThanOrEqual(7);
  expect(there.length).toBeGreaterThanOrEqual(5);
  expect(there.length).toBeLessThanOrEqual(7);
  expect(asked).toEqual([]);
});
