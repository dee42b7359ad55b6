import { expect, test } from '@jest/globals';
import { Status } from './rpc-error.ts';

import { describeMutated, noMutations } from './mutations.ts';

test.each([
  { mutated: { before: 3, after: 3, machines: [] }, want: 'size stays 3' },
  { mutated: { before: 3, after: 1, machines: ['a', 'b'] }, want: 'size 3 -> 1, without a, b' },
])('what was done is told: $want', ({ mutated, want }) => {
  expect(describeMutated(mutated)).toBe(want);
});

test('without mutations each of them is refused as not implemented', async () => {
  const group = { id: 'a', namespace: 'default', name: 'a', min: 0, max: 5 };
  const call = { peer: 'test', signal: new AbortController().signal, leftMs: () => Infinity };

  await expect(noMutations.increase(group, 1, call)).rejects.toMatchObject({ code: Status.UNIMPLEMENTED });
});
