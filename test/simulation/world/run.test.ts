import { readFile } from 'node:fs/promises';

import { expect, jest, test } from '@jest/globals';

import { sampled } from '../../expect/sampled.ts';
import { run } from './run.ts';
import { WORLDS, type WorldName, worldNamed } from '../worlds/worlds.ts';
import { isAsAsked, MachinesWorld } from './machines-world.ts';

// Seconds of the processor, which a busy host takes long to give: a world is bounded by its own time.
jest.setTimeout(900_000);

test.each([{ hasTarget: false }, { hasTarget: true }])(
  'a pool is made and rolled, and then nothing is written (target cluster of its own: $hasTarget)',
  async ({ hasTarget }) => {
    await using world = await MachinesWorld.create({ seed: 1, hasTarget, replicas: 3 });

    await world.time.advance(600_000, () => isAsAsked(world));
    expect(isAsAsked(world)).toBe(true);

    world.changePool({ spec: { template: { metadata: { annotations: { version: '2' } } } } });
    await world.time.advance(1_800_000, () => isAsAsked(world));
    expect(isAsAsked(world)).toBe(true);

    await world.time.advance(120_000);
    const { writes } = world.processes;
    await world.time.advance(600_000);
    expect(world.processes.writes).toBe(writes);
  },
);

const NAMES = Object.keys(WORLDS) as WorldName[];
/** Each takes two lives; what is not the seed's in one world is hardly the seed's in the others, and each has its turn. */
const DETERMINED = sampled({
  name: 'worlds whose seed decides all',
  rows: NAMES,
  nameOf: (world) => world,
  kindsOf: () => ['world'],
});

test.each(DETERMINED)(
  'a seed of world %s decides all that happens, also while the host has other things to do',
  async (world) => {
    const first = await run(2, { world, phases: 1, steps: 6, keepsTrace: true });

    const other = new AbortController();
    const busy = keepBusy(other.signal);
    const again = await run(2, { world, phases: 1, steps: 6, keepsTrace: true });
    other.abort();
    await busy;

    expect(again.trace.length).toBe(first.trace.length);
    expect(again.trace.find((line, at) => line !== first.trace[at])).toBeUndefined();
    expect(again.digest).toBe(first.digest);
  },
);

test('a world that does not exist is refused with those that do', () => {
  expect(worldNamed('autoscaler')).toBe('autoscaler');
  expect(() => worldNamed('clouds')).toThrow(`Possible values: ${NAMES.join(', ')}.`);
});

/** Has the host answer, at moments that nobody knows, until told to end. */
async function keepBusy(signal: AbortSignal): Promise<void> {
  while (!signal.aborted) await readFile(import.meta.filename);
}
