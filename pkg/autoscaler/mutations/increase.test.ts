import { expect, test } from '@jest/globals';
import { Status } from 'nice-grpc';

import { groupState, nodeGroup } from '../../../test/node-group.ts';
import { decideIncrease } from './resize.ts';

const { INVALID_ARGUMENT, FAILED_PRECONDITION } = Status;

test.each([
  { title: 'more', delta: 2, want: { replicas: 5, machines: [] } },
  { title: 'more than the maximum: none at all', delta: 3, want: { code: FAILED_PRECONDITION } },
  { title: 'none', delta: 0, want: { code: INVALID_ARGUMENT } },
  { title: 'fewer', delta: -1, want: { code: INVALID_ARGUMENT } },
  { title: 'a part of one', delta: 0.5, want: { code: INVALID_ARGUMENT } },
])('a group of 3 to 5 that is to have $title', ({ delta, want }) => {
  expect(decideIncrease(groupState(3, []), nodeGroup(), delta)).toMatchObject(want);
});

test('a group that is being deleted is not made larger', () => {
  const state = groupState(3, []);
  state.deployment.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';

  expect(decideIncrease(state, nodeGroup(), 1)).toMatchObject({ code: FAILED_PRECONDITION });
});

test('a group whose spec is invalid is not made larger: nothing would follow', () => {
  const state = groupState(3, []);
  state.deployment.spec.template.spec = {};

  expect(decideIncrease(state, nodeGroup(), 1)).toMatchObject({
    code: FAILED_PRECONDITION,
    message: expect.stringContaining('spec.template.spec.class'),
  });
});

test('a group without a size has none', () => {
  const state = groupState(0, []);
  delete state.deployment.spec.replicas;

  expect(decideIncrease(state, nodeGroup({ min: 0 }), 1)).toEqual({ replicas: 1, machines: [] });
});

test('what is refused says how to get it', () => {
  expect(decideIncrease(groupState(3, []), nodeGroup(), 9)).toMatchObject({
    message: expect.stringMatching(/has 3 replicas and a maximum of 5, but 12 were requested.*raise the maximum/),
  });
});
