import { expect, test } from '@jest/globals';

import { missingPlaceholder, parsePlaceholder, placeholderOf } from './placeholder.ts';

test.each([
  { id: placeholderOf('shoot-a-1'), want: { kind: 'machine', machine: 'shoot-a-1' } },
  { id: missingPlaceholder('pool-a', 'x-3'), want: { kind: 'missing', group: 'pool-a', place: 'x-3' } },
  { id: 'requested://pool-a#3', want: { kind: 'missing', group: 'pool-a', place: '3' } },
  { id: 'requested://#3', want: { kind: 'machine', machine: '#3' } },
  { id: 'openstack:///RegionOne/4711', want: undefined },
  { id: '', want: undefined },
])('instance id $id is read', ({ id, want }) => {
  expect(parsePlaceholder(id)).toEqual(want);
});
