import { setImmediate } from 'node:timers/promises';

import { expect, test } from '@jest/globals';
import fc from 'fast-check';

import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { fairly } from './fair-throttle.ts';
import { type Throttle, ThrottleClosedError } from './throttle.ts';

const told = { clock: new FakeClock(), waited: () => undefined };
const never = new AbortController().signal;

/** Grants a turn each time it is told to. */
class SteppedThrottle implements Throttle {
  readonly #waiting: PromiseWithResolvers<void>[] = [];

  acquire(): Promise<void> {
    const turn = Promise.withResolvers<void>();
    this.#waiting.push(turn);
    return turn.promise;
  }

  close(): Promise<void> {
    for (const { reject } of this.#waiting.splice(0)) reject(new ThrottleClosedError());
    return Promise.resolve();
  }

  async step(): Promise<void> {
    this.#waiting.shift()?.resolve();
    await setImmediate();
  }
}

test('a flow with one request waits for one turn of each other flow at most, however many requests these have', async () => {
  const flow = fc.constantFrom('a', 'b', 'c', 'd');
  await fc.assert(
    fc.asyncProperty(fc.array(flow, { maxLength: 30 }), fc.nat({ max: 10 }), async (asked, before) => {
      const stepped = new SteppedThrottle();
      const throttle = fairly(stepped, told);
      const passed: string[] = [];
      for (const of of asked) void throttle.acquire(never, of).then(() => passed.push(of));
      for (let i = 0; i < before; i++) await stepped.step();
      const from = passed.length;
      void throttle.acquire(never, 'single').then(() => passed.push('single'));
      for (let i = 0; i <= asked.length; i++) await stepped.step();

      expect(passed.indexOf('single') - from).toBeLessThanOrEqual(4);
      expect(passed.toSorted()).toEqual([...asked, 'single'].toSorted());
    }),
  );
});

test('within a flow, first come is first served; who gives up is told why, and uses no turn up', async () => {
  const stepped = new SteppedThrottle();
  const throttle = fairly(stepped, told);
  const leaving = new AbortController();
  const passed: string[] = [];
  const [, left] = ['first', 'second', 'third'].map((name) =>
    throttle.acquire(name === 'second' ? leaving.signal : never, 'flow').then(() => passed.push(name)),
  );
  leaving.abort(new Error('leaving'));

  await expect(left).rejects.toThrow('leaving');
  await stepped.step();
  await stepped.step();
  expect(passed).toEqual(['first', 'third']);
});

test('whoever waits when it is closed is refused', async () => {
  const throttle = fairly(new SteppedThrottle(), told);
  const asked = Promise.allSettled(['a', 'a', 'b'].map((flow) => throttle.acquire(never, flow)));

  await throttle.close();

  expect((await asked).map((one) => (one.status === 'rejected' ? one.reason : undefined))).toEqual(
    Array.from({ length: 3 }, () => expect.any(ThrottleClosedError)),
  );
});

test('each wait is told when it is over', async () => {
  const clock = new FakeClock();
  const stepped = new SteppedThrottle();
  const waits: number[] = [];
  const throttle = fairly(stepped, { clock, waited: (ms) => waits.push(ms) });
  const both = Promise.all([throttle.acquire(never, 'a'), throttle.acquire(never, 'b')]);

  clock.advance(100);
  await stepped.step();
  clock.advance(150);
  await stepped.step();
  await both;

  expect(waits).toEqual([100, 250]);
});
