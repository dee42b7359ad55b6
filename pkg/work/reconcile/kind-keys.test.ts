import { expect, test } from '@jest/globals';

import { kindKeys } from './kind-keys.ts';

const keys = kindKeys('Machine', 'MachinePool');

test.each([
  { kind: 'Machine', key: 'ns/m' },
  { kind: 'MachinePool', key: 'p' },
] as const)('the key of $kind $key is read as it was written', ({ kind, key }) => {
  expect(keys.objectOf(keys.queueKeyOf(kind, key))).toEqual({ kind, key });
});

test('a key of another kind is refused, because no object can be found by it', () => {
  expect(() => keys.objectOf('Cluster/ns/c')).toThrow('Cluster/ns/c is not a key of Machine, MachinePool');
});
