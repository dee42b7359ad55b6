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

test('a list that may be old is answered as it was a while ago, and one that may not as it is', async () => {
  await using world = await MachinesWorld.create({ seed: 1, replicas: 2 });
  const { time, pasts, weather } = world;
  await time.advance(600_000, () => isAsAsked(world));
  const path = world.pathOf('machines');
  const { objects } = world.servers.control;

  expect(weather.oldCacheOf({ method: 'GET', path: `${path}?resourceVersion=0` }, time.elapsedMs)).toBeUndefined();
  weather.rates = { ...FINE, oldReads: 1 };

  expect(weather.oldCacheOf({ method: 'GET', path: `${path}?limit=500` }, time.elapsedMs)).toBeUndefined();
  const old = weather.oldCacheOf({ method: 'GET', path: `${path}?resourceVersion=0` }, time.elapsedMs)!;
  expect(old.untilMs).toBeGreaterThan(time.elapsedMs);
  expect(pasts.control.revisionAt(old.atMs)).toBeLessThan(objects.revisions.current);
  expect(pasts.control.revisionAt(time.elapsedMs)).toBe(objects.revisions.current);
});

test('a process that starts while the caches of the servers are behind waits for them, and does nothing wrong', async () => {
  await using world = await MachinesWorld.create({ seed: 1, replicas: 2, keepsTrace: true });
  await world.time.advance(600_000, () => isAsAsked(world));
  world.weather.rates = { ...FINE, oldReads: 1 };
  world.processes.kill();
  await world.processes.start();
  world.changePool({ spec: { replicas: 1 } });
  await world.time.advance(900_000, () => isAsAsked(world));

  expect(isAsAsked(world)).toBe(true);
  expect(world.trace.lines.filter((line) => / as of \d+$/.test(line))).not.toEqual([]);
});
