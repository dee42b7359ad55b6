import { expect, test } from '@jest/globals';

import { isAsAsked, MachinesWorld } from './machines-world.ts';

const AWAY_MS = 300_000;

test('a target cluster is cut off while the control cluster answers, and its watches tell afterwards what they missed', async () => {
  await using world = await MachinesWorld.create({ seed: 1, hasTarget: true, replicas: 2, keepsTrace: true });
  const { time, targetWay, trace } = world;
  await time.advance(600_000, () => isAsAsked(world));
  const before = trace.lines.length;

  targetWay.cutOff(AWAY_MS);
  expect([world.downSinceMs('control'), world.downSinceMs('target')]).toEqual([Infinity, time.elapsedMs]);
  world.changePool({ spec: { replicas: 3 } });
  await time.advance(AWAY_MS - 1);

  const requests = trace.lines.slice(before).filter((line) => / process \d+ [A-Z]+ \//.test(line));
  expect(requests.filter((line) => line.endsWith(' 0 request-lost'))).not.toEqual([]);
  expect(requests.filter((line) => line.endsWith(' 200 done'))).not.toEqual([]);
  expect(world.cloud.size).toBe(2);

  await time.advance(1);
  expect(world.downSinceMs('target')).toBe(Infinity);
  await time.advance(900_000, () => isAsAsked(world));
  expect(isAsAsked(world)).toBe(true);
});

test('a way that is cut off again is down since the first time, and reached as soon as that is over', async () => {
  await using world = await MachinesWorld.create({ seed: 1, hasTarget: true, replicas: 0 });
  const { time, targetWay } = world;
  const sinceMs = time.elapsedMs;

  targetWay.cutOff(10_000);
  await time.advance(5_000);
  targetWay.cutOff(10_000);
  await time.advance(9_000);
  expect(targetWay.downSinceMs).toBe(sinceMs);
  expect(targetWay.lagMs('/api/v1/nodes?watch=true')).toBeCloseTo(1_000);

  targetWay.restore();
  expect([targetWay.downSinceMs, targetWay.lagMs('/api/v1/nodes?watch=true')]).toEqual([Infinity, 0]);
});

test('where the target cluster is the control cluster, it is down as that is', async () => {
  await using world = await MachinesWorld.create({ seed: 1, replicas: 0 });

  world.targetWay.cutOff(10_000);
  expect(world.downSinceMs('target')).toBe(Infinity);

  world.weather.isDown = true;
  expect([world.downSinceMs('control'), world.downSinceMs('target')]).toEqual([
    world.time.elapsedMs,
    world.time.elapsedMs,
  ]);
});
