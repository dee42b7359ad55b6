import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';

import { ApiError } from '../../../kube/client/errors.ts';
import { applyInParts } from './node-parts.ts';

const MARKS = ['x', 'y'];
const ENTRIES = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];
const ALL = [...MARKS, ...ENTRIES];

/** An API server that refuses some entries. */
function server(bad: readonly string[]) {
  const applied = new Set<string>();
  let requests = 0;
  const attempt = async (without: ReadonlySet<string>): Promise<void> => {
    requests += 1;
    const asked = ALL.filter((entry) => !without.has(entry));
    const refused = asked.find((entry) => bad.includes(entry));
    if (refused !== undefined) throw new ApiError(422, 'Invalid', `not ${refused}`);
    for (const entry of asked) applied.add(entry);
    await Promise.resolve();
  };
  return { attempt, applied, requests: () => requests };
}

describe('what is refused as a whole', () => {
  test('is applied but for what is refused by itself, which is told', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(fc.constantFrom(...ALL)), async (bad) => {
        const { attempt, applied, requests } = server(bad);

        const refused = await applyInParts(MARKS, ENTRIES, 'n-1', attempt);

        const told = new Map(refused.map(({ what, why }) => [what, why]));
        expect(told).toEqual(new Map(bad.map((what) => [what, `not ${what}`])));
        expect(refused).toHaveLength(bad.length);
        expect([...applied].toSorted()).toEqual(ALL.filter((one) => !bad.includes(one)).toSorted());
        expect(requests()).toBeLessThanOrEqual(2 * ALL.length);
      }),
    );
  });

  test('is left for later when the server fails otherwise', async () => {
    const failure = new ApiError(409, 'Conflict', 'changed');

    await expect(applyInParts(MARKS, ENTRIES, 'n-1', () => Promise.reject(failure))).rejects.toBe(failure);
  });
});
