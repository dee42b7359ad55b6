import { expect, test } from '@jest/globals';

import { missingPlaceholder, parsePlaceholder, placeholderOf } from './placeholder.ts';

test.each([
  { id: placeholderOf('shoot-a-1'), want: { kind: 'machine', machine: 'shoot-a-1' } },
  { id: missingPlaceholder('pool-a', 3), want: { kind: 'missing', group: 'pool-a', index: 3 } },
  { id: 'requested://pool-a#x', want: { kind: 'machine', machine: 'pool-a#x' } },
  { id: 'openstack:///RegionOne/4711', want: undefined },
  { id: '', want: undefined },
])('instance id $id is read', ({ id, want }) => {
  expect(parsePlaceholder(id)).toEqual(want);
});
