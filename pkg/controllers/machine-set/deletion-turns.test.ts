import { expect, test } from '@jest/globals';

import { machine, machineSet } from '../../../test/builders.ts';
import { DELETIONS_A_PASS, DeletionTurns } from './deletion-turns.ts';

test('those that could not be deleted are tried in turn', async () => {
  const turns = new DeletionTurns();
  const all = Array.from({ length: DELETIONS_A_PASS + 10 }, (_unused, i) => ({
    machine: machine((m) => void Object.assign(m.metadata, { name: `m-${i}`, uid: `${i}` })),
  }));
  const tried: string[][] = [];
  for (let pass = 0; pass < 3; pass += 1) {
    const names: string[] = [];
    await turns
      .each(machineSet(), all, async ({ machine: { metadata } }) => {
        names.push(metadata.name);
        await Promise.reject(new Error('protected'));
      })
      .catch(() => {});
    tried.push(names);
  }

  const names = all.map(({ machine: { metadata } }) => metadata.name);
  expect(tried[0]).toEqual(names.slice(0, DELETIONS_A_PASS));
  expect(tried[1]).toEqual([...names.slice(DELETIONS_A_PASS), ...names.slice(0, DELETIONS_A_PASS - 10)]);
  expect(tried[2]?.slice(0, 10)).toEqual(names.slice(DELETIONS_A_PASS - 10, DELETIONS_A_PASS));
});
