import { expect, test } from '@jest/globals';

import type { IronCoreMachine, IronCoreMachineSpec, IronCoreMachineStatus } from '../api/machine.ts';
import type { IronCoreMachinePool } from '../api/machine-pool.ts';
import type { IronCoreCondition } from '../api/reference.ts';
import { explainIronCoreMachine, type CachedPool } from './explain.ts';

const NOW = Date.parse('2026-01-01T00:10:00Z');
const EARLIER = '2026-01-01T00:09:00Z';
const METADATA = { name: 'm', uid: 'u', resourceVersion: '1', creationTimestamp: '2026-01-01T00:08:00Z' };
const PLACED = { machinePoolRef: { name: 'p' } };

function condition(type: string, status: IronCoreCondition['status'], reason: string, message = ''): IronCoreCondition {
  return { type, status, reason, message, lastTransitionTime: EARLIER };
}

function poolWith(...conditions: readonly IronCoreCondition[]): IronCoreMachinePool {
  return { metadata: { ...METADATA, name: 'p' }, status: { conditions } };
}

const READY = poolWith(condition('Ready', 'True', 'HeartbeatReceived'));
const RUNNING = condition('Ready', 'True', 'Running');

interface Row {
  readonly what: string;
  readonly spec?: Partial<IronCoreMachineSpec>;
  readonly status?: IronCoreMachineStatus;
  readonly pool?: CachedPool;
  readonly metadata?: Partial<IronCoreMachine['metadata']>;
  readonly reason: string;
  readonly message: string;
  readonly waitingFor: string | undefined;
  readonly sinceMs: number;
}

test.each<Row>([
  {
    what: 'that no scheduler has seen',
    reason: 'NotLookedAt',
    message: 'The Machine has no pool, and no scheduler has reported why.',
    waitingFor: 'a scheduler to place the Machine',
    sinceMs: 120_000,
  },
  {
    what: 'that no pool takes',
    status: { conditions: [condition('Scheduled', 'False', 'OutOfCapacity', '3 not ready, 1 full')] },
    reason: 'OutOfCapacity',
    message: 'The Machine has no pool: 3 not ready, 1 full.',
    waitingFor: 'a ready pool that matches the Machine and has capacity',
    sinceMs: 60_000,
  },
  {
    what: 'of which its pool has said nothing',
    spec: PLACED,
    reason: 'Placed',
    message: 'The Machine is in pool p. No state has been reported yet.',
    waitingFor: 'the pool to report the state',
    sinceMs: 120_000,
  },
  {
    what: 'whose pool is not there',
    spec: PLACED,
    pool: 'missing',
    status: { state: 'Running', conditions: [RUNNING] },
    reason: 'PoolMissing',
    message: 'MachinePool p does not exist. Its state is Running.',
    waitingFor: 'MachinePool p',
    sinceMs: NaN,
  },
  {
    what: 'whose pool is silent',
    spec: PLACED,
    pool: poolWith(condition('Ready', 'Unknown', 'MachinePoolStatusUnknown', 'no Lease')),
    status: { state: 'Running', conditions: [RUNNING] },
    reason: 'PoolNotReady',
    message: 'MachinePool p is not ready (MachinePoolStatusUnknown: no Lease). Its state is Running.',
    waitingFor: 'MachinePool p to be ready',
    sinceMs: 60_000,
  },
  {
    what: 'whose pool nobody has called ready',
    spec: PLACED,
    pool: poolWith(),
    reason: 'PoolNotReady',
    message: 'MachinePool p is not ready (no readiness has been reported). No state has been reported yet.',
    waitingFor: 'MachinePool p to be ready',
    sinceMs: NaN,
  },
  {
    what: 'that waits for a volume',
    spec: PLACED,
    status: {
      state: 'Pending',
      conditions: [
        condition('Ready', 'False', 'VolumeNotReady', 'Volume v does not exist'),
        condition('VolumesReady', 'False', 'VolumeNotReady', 'Volume v does not exist'),
      ],
    },
    reason: 'VolumeNotReady',
    message: 'Volume v does not exist. Its state is Pending.',
    waitingFor: 'condition VolumesReady',
    sinceMs: 60_000,
  },
  {
    what: 'that waits for a volume and for something else',
    spec: PLACED,
    status: {
      state: 'Pending',
      conditions: [
        condition('Ready', 'False', 'IgnitionNotReady', 'Secret s does not exist; Volume v does not exist'),
        condition('VolumesReady', 'False', 'VolumeNotReady', 'Volume v does not exist'),
      ],
    },
    reason: 'IgnitionNotReady',
    message: 'Secret s does not exist; Volume v does not exist. Its state is Pending.',
    waitingFor: 'condition Ready',
    sinceMs: 60_000,
  },
  {
    what: 'that runs, and whose runtime refuses a change',
    spec: PLACED,
    status: { state: 'Running', conditions: [condition('Ready', 'True', 'RuntimeRefused', 'AttachVolume: locked')] },
    reason: 'RuntimeRefused',
    message: 'AttachVolume: locked. Its state is Running.',
    waitingFor: 'condition Ready',
    sinceMs: 60_000,
  },
  {
    what: 'that runs',
    spec: PLACED,
    status: { state: 'Running', conditions: [condition('Scheduled', 'True', 'Placed'), RUNNING] },
    reason: 'Running',
    message: 'The Machine is Running in pool p.',
    waitingFor: undefined,
    sinceMs: 60_000,
  },
  {
    what: 'that runs and should not',
    spec: { ...PLACED, power: 'Off' },
    status: { state: 'Running', conditions: [RUNNING] },
    reason: 'Running',
    message: 'The Machine is in pool p. Its state is Running.',
    waitingFor: 'the pool to report the state',
    sinceMs: 120_000,
  },
  {
    what: 'that is switched off, as it should be',
    spec: { ...PLACED, power: 'Off' },
    // As the controller says of it.
    status: { state: 'Shutdown', conditions: [condition('Ready', 'False', 'NotReady', 'The Machine is not ready')] },
    reason: 'Shutdown',
    message: 'The Machine is Shutdown in pool p.',
    waitingFor: undefined,
    sinceMs: 60_000,
  },
  {
    what: 'that is being deleted',
    spec: PLACED,
    status: { state: 'Terminating' },
    metadata: { deletionTimestamp: EARLIER, finalizers: ['a/b', 'c/d'] },
    reason: 'Deleting',
    message: 'The Machine is being deleted. Its state is Terminating.',
    waitingFor: 'finalizers a/b, c/d',
    sinceMs: 60_000,
  },
  {
    what: 'that is being deleted while too many machines of its pool are missing',
    spec: PLACED,
    status: { state: 'Running', conditions: [condition('Ready', 'False', 'MachinesLost', 'None of 3 is shown.')] },
    metadata: { deletionTimestamp: EARLIER, finalizers: ['a/b'] },
    reason: 'MachinesLost',
    message: 'The Machine is being deleted. None of 3 is shown.',
    waitingFor: 'the missing machines of the pool to be found, or given up',
    sinceMs: 60_000,
  },
  {
    what: 'that is being deleted, which its runtime refuses',
    spec: PLACED,
    status: { state: 'Running', conditions: [condition('Ready', 'False', 'RuntimeRefused', 'DeleteMachine: locked')] },
    metadata: { deletionTimestamp: EARLIER, finalizers: ['a/b'] },
    reason: 'RuntimeRefused',
    message: 'The Machine is being deleted. DeleteMachine: locked.',
    waitingFor: 'the runtime of the pool to accept the deletion',
    sinceMs: 60_000,
  },
  {
    what: 'that is being deleted, which its runtime has not answered',
    spec: PLACED,
    status: {
      state: 'Running',
      conditions: [condition('Ready', 'False', 'RuntimeUnreachable', 'DeleteMachine: reset')],
    },
    metadata: { deletionTimestamp: EARLIER, finalizers: ['a/b'] },
    reason: 'RuntimeUnreachable',
    message: 'The Machine is being deleted. DeleteMachine: reset.',
    waitingFor: 'the runtime of the pool to answer',
    sinceMs: 60_000,
  },
  {
    what: 'that is being deleted, for which the API server refuses something',
    spec: PLACED,
    status: { state: 'Running', conditions: [condition('Ready', 'False', 'ApiServerRefused', 'No patch of volumes.')] },
    metadata: { deletionTimestamp: EARLIER, finalizers: ['a/b'] },
    reason: 'ApiServerRefused',
    message: 'The Machine is being deleted. No patch of volumes.',
    waitingFor: 'the API server to accept the update',
    sinceMs: 60_000,
  },
  {
    what: 'that is being deleted while its pool is silent',
    spec: PLACED,
    status: { state: 'Running' },
    pool: poolWith(condition('Ready', 'False', 'RuntimeUnreachable', 'connection refused')),
    metadata: { deletionTimestamp: EARLIER, finalizers: ['a/b'] },
    reason: 'Deleting',
    message:
      'The Machine is being deleted. MachinePool p is not ready (RuntimeUnreachable: connection refused). Its state is Running.',
    waitingFor: 'finalizers a/b',
    sinceMs: 60_000,
  },
])('a Machine of IronCore $what is explained', ({ what: _what, spec, status, pool = READY, metadata, ...expected }) => {
  const machine: IronCoreMachine = {
    metadata: { ...METADATA, ...metadata },
    spec: { machineClassRef: { name: 'c' }, ...spec },
    ...(status && { status }),
  };

  const { reason, message, waitingFor, sinceMs = NaN, nextStep } = explainIronCoreMachine(machine, pool, NOW);

  expect({ reason, message, waitingFor, sinceMs }).toEqual(expected);
  expect(nextStep).toMatch(/[.]$/);
});

test('a Machine that no scheduler has seen says which namespaces one looks at, and where its Lease is', () => {
  const machine: IronCoreMachine = { metadata: METADATA, spec: { machineClassRef: { name: 'c' } } };

  const { nextStep } = explainIronCoreMachine(machine, 'unknown', NOW);

  expect(nextStep).toMatch(
    /Machines of all namespaces, .*Lease ironcore-scheduler in the namespace of its --namespace/,
  );
});
