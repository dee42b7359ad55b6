import { expect, test } from '@jest/globals';

import { revisionOf, targetServerOf } from './revision.ts';

const POD = 'machinist-6d8f7c9b4-k2x8p_1f2e3d4c';

test.each([
  { what: 'another pod of its ReplicaSet', identity: 'machinist-6d8f7c9b4-q7wzn_83ab0000', version: '1', isSame: true },
  { what: 'a pod of another ReplicaSet', identity: 'machinist-7f5d9c6b8-q7wzn_83ab0000', version: '1', isSame: false },
  { what: 'another version of the program', identity: POD, version: '2', isSame: false },
  {
    what: 'one with another target cluster for all cells',
    identity: POD,
    version: '1',
    target: { url: 'https://b' },
    isSame: false,
  },
  {
    what: 'one with another way to the target cluster',
    identity: POD,
    version: '1',
    target: { url: 'https://a', way: 'https://a/c-2' },
    isSame: false,
  },
])(
  'the revision of a pod is that of $what: $isSame',
  ({ identity, version, target = { url: 'https://a' }, isSame }) => {
    expect(revisionOf(identity, version, target) === revisionOf(POD, '1', { url: 'https://a' })).toBe(isSame);
  },
);

test.each(['host-1_1f2e3d4c', 'alpha_1f2e3d4c', 'machinist-0_1f2e3d4c'])(
  'a process that is no pod of a ReplicaSet, %s, has that of its version',
  (identity) => {
    expect(revisionOf(identity, '1', undefined)).toBe(revisionOf('beta_00000000', '1', undefined));
    expect(revisionOf(identity, '1', undefined)).toMatch(/^[0-9a-f]{16}$/);
  },
);

test('which target cluster a replica has is told by the whole way to it, or that each cell has its own', () => {
  const rancher = 'https://rancher.invalid';
  const [first, second] = ['c-1', 'c-2'].map((path) => targetServerOf({ url: rancher, way: `${rancher}/${path}` }));

  expect(first).not.toBe(second);
  expect(targetServerOf({ url: rancher, way: rancher })).toBe(targetServerOf({ url: rancher }));
  expect(targetServerOf(undefined)).toBe('own');
});
