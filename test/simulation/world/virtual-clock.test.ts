import { expect, test } from '@jest/globals';

import { VirtualTime } from './virtual-clock.ts';

const time = (): VirtualTime => new VirtualTime(() => 0.5);

test('who waits for a rest of time that is too short to make a difference comes to its end', async () => {
  const world = time();
  await world.advance(135_094.983_338_475_05);
  const startMs = world.elapsedMs;
  let waits = 0;
  const again = (): void => {
    waits += 1;
    if (world.elapsedMs === startMs) world.schedule(1e-12, again);
  };
  again();

  await world.advance(1);

  expect(waits).toBe(2);
});

test('what is repeated without a pause ends the world, and not the patience of who waits for it', async () => {
  const world = time();
  const again = (): void => void world.schedule(0, again);
  again();

  await expect(world.advance(1)).rejects.toThrow('time stands still at 0 ms');
});
