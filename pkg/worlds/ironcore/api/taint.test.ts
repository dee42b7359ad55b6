import { describe, expect, test } from '@jest/globals';

import { tolerated } from './taint.ts';

const taint = { key: 'gpu', value: 'yes', effect: 'NoSchedule' };

describe('a taint gpu=yes:NoSchedule', () => {
  test.each([
    { toleration: { key: 'gpu', operator: 'Equal', value: 'yes', effect: 'NoSchedule' }, want: true },
    { toleration: { key: 'gpu', value: 'yes' }, want: true },
    { toleration: { key: 'gpu', operator: '', value: 'yes', effect: '' }, want: true },
    { toleration: { key: 'gpu', operator: 'Exists' }, want: true },
    { toleration: { operator: 'Exists' }, want: true },
    { toleration: { operator: 'Exists', effect: 'NoSchedule' }, want: true },
    { toleration: { key: 'gpu', value: 'no' }, want: false },
    { toleration: { key: 'gpu' }, want: false },
    { toleration: { key: 'fpga', operator: 'Exists' }, want: false },
    { toleration: { operator: 'Exists', effect: 'NoExecute' }, want: false },
    { toleration: { key: 'gpu', operator: 'Matches', value: 'yes' }, want: false },
  ])('with $toleration: $want', ({ toleration, want }) => {
    expect(tolerated([taint], [toleration])).toBe(want);
  });
});

test('a taint without a value is tolerated by a toleration without one', () => {
  expect(tolerated([{ key: 'gpu', effect: 'NoExecute' }], [{ key: 'gpu', value: '' }])).toBe(true);
});

test('each taint needs a toleration, of whatever effect it is', () => {
  const taints = [taint, { key: 'old', effect: 'NoExecute' }];

  expect(tolerated(taints, [{ key: 'gpu', operator: 'Exists' }])).toBe(false);
  expect(tolerated(taints, [{ key: 'gpu', operator: 'Exists' }, { key: 'old' }])).toBe(true);
  expect(tolerated([], [])).toBe(true);
  expect(tolerated(undefined, undefined)).toBe(true);
});
