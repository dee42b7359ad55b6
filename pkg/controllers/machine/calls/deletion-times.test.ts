import { expect, test } from '@jest/globals';

import { FakeClock } from '../../../../test/fakes/fake-clock.ts';
import { DriverError } from '../../../driver/error.ts';
import { DeletionTimes } from './deletion-times.ts';

/** Deletions of one account, unless a test says otherwise. */
class World {
  readonly clock = new FakeClock();
  readonly times = new DeletionTimes({ clock: this.clock });
  readonly abort = new AbortController();

  /** Deletions that have taken so long, one after the other. */
  async took(ms: readonly number[], account = 'a'): Promise<void> {
    for (const oneMs of ms) {
      const call = { account, timeouts: 0, signal: this.abort.signal };
      await this.times.during(call, () => Promise.resolve(this.clock.advance(oneMs)));
    }
  }

  /** One that is never answered: when it was given up, and what it ended with. */
  hang(timeouts = 0): { readonly endMs: () => number | undefined; readonly end: Promise<unknown> } {
    let endMs: number | undefined;
    const startedMs = this.clock.monotonicMs();
    const end = this.times
      .during({ account: 'a', timeouts, signal: this.abort.signal }, (signal) => this.#untilAborted(signal))
      .catch((err: unknown) => {
        endMs ??= this.clock.monotonicMs() - startedMs;
        return err;
      });
    return { endMs: () => endMs, end };
  }

  async #untilAborted(signal: AbortSignal): Promise<never> {
    return await new Promise((_, reject) => {
      signal.addEventListener('abort', () => reject(new DriverError('Canceled', 'aborted', { unanswered: true })));
    });
  }

  /** Advances in small steps. */
  async pass(ms: number): Promise<void> {
    for (let leftMs = ms; leftMs > 0; leftMs -= 1_000) {
      this.clock.advance(1_000);
      await Promise.resolve();
      await Promise.resolve();
      await Promise.resolve();
    }
  }
}

const QUICK = [200, 200, 200];

test.each([
  { what: 'others are answered at once', took: QUICK, timeouts: 0, endMs: 10_000 },
  { what: 'the slowest of the others takes 6 s', took: [200, 6_000, 200], timeouts: 0, endMs: 24_000 },
  { what: 'it has timed out six times before', took: QUICK, timeouts: 6, endMs: 40_000 },
  { what: 'only two were answered', took: [200, 200], timeouts: 0, endMs: undefined },
  { what: 'the slowest of the others takes 20 s', took: [200, 200, 20_000], timeouts: 0, endMs: undefined },
])('a deletion without answer is given up after $endMs ms when $what', async ({ took, timeouts, endMs }) => {
  const world = new World();
  await world.took(took);

  const call = world.hang(timeouts);
  await world.pass(120_000);

  expect(call.endMs()).toBe(endMs);
});

test('what others take counts also when it is known only later, and then ends a timeout without answer', async () => {
  const world = new World();
  const call = world.hang();
  await world.pass(4_000);
  await world.took(QUICK);
  await world.pass(10_000);

  expect(await call.end).toMatchObject({ code: 'Aborted', unanswered: true, timedOut: true });
});

test.each<{ what: string; before: (world: World) => Promise<unknown> }>([
  { what: 'other accounts', before: (world) => world.took(QUICK, 'b') },
  {
    what: 'those that failed',
    before: async ({ times, abort }) => {
      const call = { account: 'a', timeouts: 0, signal: abort.signal };
      const failing = (): Promise<never> => Promise.reject(new DriverError('Internal', 'x'));
      for (let i = 0; i < 5; i++) await times.during(call, failing).catch(() => undefined);
    },
  },
  {
    what: 'what was deleted more than ten minutes ago',
    before: async (world) => {
      await world.took(QUICK);
      world.clock.advance(600_001);
    },
  },
])('the times of $what say nothing', async ({ before }) => {
  const world = new World();
  await before(world);

  const call = world.hang();
  await world.pass(55_000);

  expect(call.endMs()).toBeUndefined();
});

test('the last twenty count', async () => {
  const world = new World();
  await world.took([20_000, ...Array.from({ length: 20 }, () => 200)]);

  const call = world.hang();
  await world.pass(20_000);

  expect(call.endMs()).toBe(10_000);
});

test('a call that somebody else gives up ends as that, and an answer counts although it comes with the end', async () => {
  const world = new World();
  await world.took(QUICK);
  const call = world.hang();
  world.abort.abort();
  expect(await call.end).toMatchObject({ code: 'Canceled' });

  const other = new World();
  await other.took(QUICK);
  const late = other.times.during({ account: 'a', timeouts: 0, signal: other.abort.signal }, async (signal) => {
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
    throw new DriverError('NotFound', 'no VM');
  });
  const ended = late.catch((err: unknown) => err);
  await other.pass(20_000);
  expect(await ended).toMatchObject({ code: 'NotFound' });
});
