import { expect, test } from '@jest/globals';

import { machine, machineSet } from '../../../test/builders.ts';
import { DELETIONS_A_PASS, DeletionTurns } from './deletion-turns.ts';

test.each([
  { what: 'could not be deleted', remove: () => Promise.reject(new Error('protected')) },
  { what: 'were spared', remove: () => Promise.resolve(false) },
])('those that $what are tried in turn', async ({ remove }) => {
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
        return await remove();
      })
      .catch(() => {});
    tried.push(names);
  }

  const names = all.map(({ machine: { metadata } }) => metadata.name);
  expect(tried[0]).toEqual(names.slice(0, DELETIONS_A_PASS));
  expect(tried[1]).toEqual([...names.slice(DELETIONS_A_PASS), ...names.slice(0, DELETIONS_A_PASS - 10)]);
  expect(tried[2]?.slice(0, 10)).toEqual(names.slice(DELETIONS_A_PASS - 10, DELETIONS_A_PASS));
});
