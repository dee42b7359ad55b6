import { expect, test } from '@jest/globals';

import { isAsAsked, MachinesWorld } from './machines-world.ts';
import { FINE } from './weather.ts';

test('what is changed only as it was read is refused with 409 where another writer is faster, and all becomes as asked for after that', async () => {
  await using world = await MachinesWorld.create({ seed: 1, replicas: 2, keepsTrace: true });
  await world.time.advance(600_000, () => isAsAsked(world));

  world.weather.rates = { ...FINE, conflict409: 1 };
  world.changePool({ spec: { replicas: 1 } });
  await world.time.advance(120_000);

  const answers = world.trace.lines.filter((line) => line.endsWith(' overtaken'));
  expect(answers.length).toBeGreaterThan(0);
  expect(answers.filter((line) => !line.endsWith(' 409 overtaken'))).toEqual([]);

  world.weather.rates = FINE;
  await world.time.advance(1_800_000, () => isAsAsked(world));
  expect(isAsAsked(world)).toBe(true);
});
