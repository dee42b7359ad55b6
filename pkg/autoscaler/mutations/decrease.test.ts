import { expect, test } from '@jest/globals';
import { Status } from 'nice-grpc';

import { groupState, nodeGroup, type MemberFacts } from '../../../test/node-group.ts';
import { decideDecrease } from './resize.ts';

const { INVALID_ARGUMENT, FAILED_PRECONDITION } = Status;

const joined: MemberFacts = { name: 'joined' };
const older: MemberFacts = { name: 'older', hasNode: false };
const younger: MemberFacts = {
  name: 'younger',
  hasNode: false,
  change: ({ metadata }) => void (metadata.creationTimestamp = '2026-06-01T00:00:00Z'),
};
const failing: MemberFacts = {
  name: 'failing',
  hasNode: false,
  change: ({ status }) => {
    status.lastOperation = { ...status.lastOperation, type: 'Create', state: 'Failed' };
  },
};
const failed: MemberFacts = { name: 'failed', change: ({ status }) => void (status.currentStatus.phase = 'Failed') };
const kept: MemberFacts = {
  name: 'kept',
  hasNode: false,
  change: ({ status }) => {
    status.currentStatus = { phase: 'Failed', preserveExpiryTime: '2027-01-01T00:00:00Z' };
  },
};

test.each<{
  title: string;
  replicas: number;
  members: MemberFacts[];
  delta: number;
  list?: string;
  owed?: number;
  min?: number;
  want: object;
}>([
  { title: 'no more', replicas: 3, members: [], delta: 0, want: { code: INVALID_ARGUMENT } },
  { title: 'more', replicas: 3, members: [], delta: 1, want: { code: INVALID_ARGUMENT } },
  {
    title: 'replicas without a Machine come first',
    replicas: 4,
    members: [joined, older],
    delta: -2,
    want: { replicas: 2, machines: [] },
  },
  {
    title: 'then a Machine that could not be created, and the youngest',
    replicas: 5,
    members: [joined, older, younger, failing],
    delta: -3,
    want: { replicas: 2, machines: ['failing', 'younger'] },
  },
  {
    title: 'before them one that has failed, whose replacement nobody wants',
    replicas: 3,
    members: [joined, failing, failed],
    delta: -1,
    want: { replicas: 2, machines: ['failed'] },
  },
  {
    title: 'whatever the delta, what has joined stays',
    replicas: 3,
    members: [joined, { name: 'joined-2' }, older],
    delta: -3,
    want: { replicas: 2, machines: ['older'] },
  },
  {
    title: 'the minimum stays',
    replicas: 3,
    members: [older, younger],
    delta: -3,
    min: 2,
    want: { replicas: 2, machines: [] },
  },
  {
    title: 'what is going already does not count',
    replicas: 2,
    members: [joined, older, younger],
    list: 'younger',
    delta: -1,
    want: { replicas: 1, machines: ['older'] },
  },
  {
    title: 'a Node that is going leaves its place',
    replicas: 1,
    members: [joined, older],
    list: 'joined',
    delta: -1,
    min: 0,
    want: { replicas: 0, machines: ['older'] },
  },
  { title: 'all have joined', replicas: 1, members: [joined], delta: -1, min: 0, want: { code: FAILED_PRECONDITION } },
  {
    title: 'the rest is preserved',
    replicas: 2,
    members: [joined, kept],
    delta: -1,
    want: { code: FAILED_PRECONDITION },
  },
  {
    title: 'the rest has lost its Node',
    replicas: 2,
    members: [joined, { name: 'lost', isLost: true }],
    delta: -1,
    want: { code: FAILED_PRECONDITION },
  },
  {
    title: 'more have joined than are wanted',
    replicas: 1,
    members: [joined, { name: 'joined-2' }, older],
    delta: -1,
    min: 0,
    want: { code: FAILED_PRECONDITION },
  },
  {
    title: 'what a rollout owes stays',
    replicas: 3,
    members: [joined, older, younger],
    owed: 1,
    delta: -2,
    want: { replicas: 2, machines: ['younger'] },
  },
  {
    title: 'what a rollout owes is no reason that hides the minimum',
    replicas: 2,
    members: [joined, older],
    owed: 1,
    delta: -1,
    min: 2,
    want: { code: FAILED_PRECONDITION, message: expect.stringContaining('within the minimum of 2') },
  },
  {
    title: 'only what a rollout owes is left',
    replicas: 3,
    members: [joined, { name: 'joined-2' }],
    owed: 1,
    delta: -1,
    min: 0,
    want: { code: FAILED_PRECONDITION, message: expect.stringContaining('would cost machines that have nodes') },
  },
])('a request is taken back: $title', ({ replicas, members, delta, list, owed = 0, min = 1, want }) => {
  const state = groupState(replicas, members, { owed, ...(list === undefined ? {} : { list }) });

  expect(decideDecrease(state, nodeGroup({ min }), delta)).toMatchObject(want);
});
