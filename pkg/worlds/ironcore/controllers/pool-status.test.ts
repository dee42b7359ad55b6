import { expect, test } from '@jest/globals';

import type { IronCoreMachine } from '../api/machine.ts';
import type { IronCoreMachineClass } from '../api/machine-class.ts';
import type { IronCoreMachinePool, IronCoreMachinePoolStatus } from '../api/machine-pool.ts';
import type { IronCoreCondition } from '../api/reference.ts';
import { poolStatus, type Probe } from './pool-status.ts';

const THEN = '2026-01-01T00:00:00Z';
const NOW_MS = Date.parse('2026-01-01T01:00:00Z');
const meta = (name: string) => ({ name, uid: name, resourceVersion: '1', creationTimestamp: THEN });
const machineClass = (name: string): IronCoreMachineClass => ({ metadata: meta(name), capabilities: { cpu: 1 } });
const machine = (name: string, of: string): IronCoreMachine => ({
  metadata: meta(name),
  spec: { machineClassRef: { name: of }, machinePoolRef: { name: 'p' } },
});
const pool = (status?: IronCoreMachinePoolStatus): IronCoreMachinePool => ({
  metadata: { ...meta('p'), generation: 3 },
  ...(status && { status }),
});
const other: IronCoreCondition = { type: 'Other', status: 'True', reason: '', message: '' };
const condition = (status: IronCoreCondition['status']): IronCoreCondition => ({
  type: 'Ready',
  status,
  reason: '',
  message: '',
  lastTransitionTime: THEN,
});
const answers: Probe = {
  classes: [
    { name: 'small', resources: {}, quantity: 3 },
    { name: 'large', resources: {}, quantity: 1 },
    { name: 'nobody-asks-for', resources: {}, quantity: 9 },
  ],
};
const silent: Probe = { why: 'no such socket', state: 'Offline', reason: 'RuntimeUnreachable' };
const classes = ['small', 'large', 'unknown'].map(machineClass);

test('a runtime that answers: its places for each class that there is, and those that are left', () => {
  const machines = [
    machine('m-1', 'small'),
    machine('m-2', 'large'),
    machine('m-3', 'large'),
    machine('m-4', 'unknown'),
  ];

  expect(poolStatus({ pool: pool(), probe: answers, classes, machines }, NOW_MS)).toEqual({
    conditions: [
      {
        type: 'Ready',
        status: 'True',
        reason: 'HeartbeatReceived',
        message: 'The runtime answers',
        observedGeneration: 3,
        lastTransitionTime: '2026-01-01T01:00:00Z',
      },
    ],
    state: 'Ready',
    availableMachineClasses: [{ name: 'large' }, { name: 'small' }],
    capacity: { 'class/machine.large': '1', 'class/machine.small': '3' },
    allocatable: { 'class/machine.large': '0', 'class/machine.small': '2' },
  });
});

test('one that does not: not ready, and everything else as it was', () => {
  const before = {
    capacity: { 'class/machine.small': '3' },
    allocatable: {},
    addresses: [{ type: 'x', address: 'y' }],
  };

  const after = poolStatus({ pool: pool(before), probe: silent, classes, machines: [] }, NOW_MS);

  const { addresses: _addresses, ...others } = before;
  expect(after).toMatchObject({ ...others, state: 'Offline' });
  expect(after.conditions).toMatchObject([
    { status: 'False', reason: 'RuntimeUnreachable', message: 'no such socket' },
  ]);
});

test.each([
  { before: 'True', probe: answers, since: THEN },
  { before: 'False', probe: answers, since: '2026-01-01T01:00:00Z' },
  { before: 'Unknown', probe: silent, since: '2026-01-01T01:00:00Z' },
  { before: 'False', probe: silent, since: THEN },
] as const)('since when it is so, after $before: $since', ({ before, probe, since }) => {
  const conditions = [condition(before), other];

  const after = poolStatus({ pool: pool({ conditions }), probe, classes, machines: [] }, NOW_MS);

  expect(after.conditions).toMatchObject([{ type: 'Ready', lastTransitionTime: since }, other]);
});

test('what was said once is not said anew', () => {
  const said = poolStatus({ pool: pool(), probe: answers, classes, machines: [] }, NOW_MS);

  expect(poolStatus({ pool: pool(said), probe: answers, classes, machines: [] }, NOW_MS + 10_000)).toEqual(said);
});

test.each([{ probe: answers }, { probe: silent }])(
  'where a former machinepoollet was is said no longer',
  ({ probe }) => {
    const before = {
      addresses: [{ type: 'InternalIP', address: '10.0.0.1' }],
      daemonEndpoints: { machinepoolletEndpoint: { port: 20_250 } },
    };

    const status = poolStatus({ pool: pool(before), probe, classes, machines: [] }, NOW_MS);

    expect(status).not.toHaveProperty('addresses');
    expect(status).not.toHaveProperty('daemonEndpoints');
  },
);
