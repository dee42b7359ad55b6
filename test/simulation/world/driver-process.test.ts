import { expect, test } from '@jest/globals';

import type { DriverCall } from '../../../pkg/driver/driver.ts';
import { DriverProcess } from './driver-process.ts';
import { seededRandom } from './seeded-random.ts';
import { VirtualTime } from './virtual-clock.ts';

function begun(): { readonly time: VirtualTime; readonly driver: DriverProcess; readonly call: DriverCall } {
  const time = new VirtualTime(seededRandom(1, 'order'));
  const { signal } = new AbortController();
  return {
    time,
    driver: new DriverProcess(time),
    call: { cluster: 'c', fencingToken: 1n, timeoutMs: 60_000, signal },
  };
}

test.each([{ goesOn: true }, { goesOn: false }])(
  'a call that a driver runs when it restarts ends unanswered, and goes on at the provider or not (goes on: $goesOn)',
  async ({ goesOn }) => {
    const { driver, call } = begun();
    let signal: AbortSignal | undefined;
    const outcome = driver
      .call('CreateMachine', true, call, (given) => {
        signal = given.signal;
        return new Promise(() => undefined);
      })
      .catch((err: unknown) => err);

    driver.restart(1_000, () => goesOn);

    expect(await outcome).toMatchObject({ code: 'Unavailable', unanswered: true });
    expect(signal?.aborted).toBe(!goesOn);
  },
);

test('a driver that restarts cannot be reached for a while, and then answers again', async () => {
  const { time, driver, call } = begun();

  driver.restart(1_000, () => true);

  expect(() => driver.requireReachable()).toThrow(expect.objectContaining({ code: 'Unavailable', unanswered: false }));
  await time.advance(1_000);
  driver.requireReachable();
  await expect(driver.call('GetMachineStatus', false, call, () => Promise.resolve('vm'))).resolves.toBe('vm');
});
