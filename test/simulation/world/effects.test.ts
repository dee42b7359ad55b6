import { expect, test } from '@jest/globals';

import { machine, type BuiltMachine } from '../../builders.ts';
import { effectOf } from './effects.ts';

type Request = Parameters<typeof effectOf>[0];

const MACHINES = '/apis/machine.sapcloud.io/v1alpha1/namespaces/pools/machines';
const SETS = '/apis/machine.sapcloud.io/v1alpha1/namespaces/pools/machinesets';
const POOL = '/apis/machine.sapcloud.io/v1alpha1/namespaces/pools/machinedeployments/pool';
const NODE = '/api/v1/nodes/m-1';
const GOING = '2026-01-01T00:00:00Z';
const CONTROL = ['control'];
const BOTH = ['control', 'target'];

const owned = (m: BuiltMachine): void => {
  Object.assign(m.metadata, {
    ownerReferences: [{ apiVersion: '', kind: 'MachineSet', name: 'set-1', uid: 'set-uid' }],
  });
};
const forced = (m: BuiltMachine): void => {
  owned(m);
  Object.assign(m.metadata.labels, { 'force-deletion': 'True' });
};
const goingByForce = (m: BuiltMachine): void => {
  forced(m);
  m.metadata.deletionTimestamp = GOING;
};
const going = (m: BuiltMachine): void => {
  owned(m);
  m.metadata.deletionTimestamp = GOING;
};
const of = (metadata: object, more: object = {}): NonNullable<Request['before']> => ({
  apiVersion: '',
  kind: '',
  ...more,
  metadata: { name: '', uid: '', resourceVersion: '', creationTimestamp: '', ...metadata },
});
const sizeOf = (replicas: number, metadata: object = {}): NonNullable<Request['before']> =>
  of({ uid: 'set-uid', ...metadata }, { spec: { replicas } });
const listed = (...entries: readonly string[]): object => ({
  annotations: { 'node.machine.sapcloud.io/trigger-deletion-by-mcm': entries.join(',') },
});
const failed = { status: { currentStatus: { phase: 'Failed' } } };
const phase = (name: string): Partial<Request> => ({ before: of({}, { status: { currentStatus: { phase: name } } }) });
const selected = { metadata: { labels: { 'node.machine.sapcloud.io/selected-for-update': 'true' } } };

interface Row {
  readonly what: string;
  readonly request: Partial<Request> & Pick<Request, 'method' | 'path'>;
  readonly machine?: (m: BuiltMachine) => void;
  /** Undefined: it changes nothing. */
  readonly destroys: boolean | undefined;
  readonly on?: readonly string[];
}

const ROWS: readonly Row[] = [
  { what: 'a VM is made', request: { method: 'CreateMachine', path: 'm-1' }, destroys: true, on: BOTH },
  { what: 'a VM is initialized', request: { method: 'InitializeMachine', path: 'm-1' }, destroys: true, on: BOTH },
  { what: 'a VM goes', request: { method: 'DeleteMachine', path: 'm-1' }, machine: going, destroys: true, on: BOTH },
  { what: 'a VM of nobody goes', request: { method: 'DeleteMachine', path: 'm-2' }, destroys: true, on: BOTH },
  {
    what: 'a VM goes whose Machine goes by force',
    request: { method: 'DeleteMachine', path: 'm-1' },
    machine: goingByForce,
    destroys: true,
    on: CONTROL,
  },
  {
    what: 'a VM goes whose Machine stays, whatever its label',
    request: { method: 'DeleteMachine', path: 'm-1' },
    machine: forced,
    destroys: true,
    on: BOTH,
  },
  {
    what: 'a runtime is asked for something',
    request: { to: '', method: 'CreateMachine', path: 'pool uid' },
    destroys: true,
    on: CONTROL,
  },
  {
    what: 'an object of another API is deleted',
    request: { method: 'DELETE', path: '/apis/example.com/v1/namespaces/pools/machines/m-1' },
    destroys: true,
    on: CONTROL,
  },
  {
    what: 'an object of another API gets smaller',
    request: {
      method: 'PATCH',
      path: '/apis/example.com/v1/namespaces/pools/machinesets/set-1',
      body: { spec: { replicas: 1 } },
      before: sizeOf(2),
    },
    machine: owned,
    destroys: false,
    on: CONTROL,
  },
  {
    what: 'a status of another API tells something',
    request: { method: 'PATCH', path: '/apis/example.com/v1/namespaces/pools/machines/m-1/status', body: failed },
    destroys: undefined,
  },
  { what: 'a VM is looked at', request: { method: 'GetMachineStatus', path: 'm-1' }, destroys: undefined },
  { what: 'a Machine is deleted', request: { method: 'DELETE', path: `${MACHINES}/m-1` }, destroys: true, on: BOTH },
  {
    what: 'a Machine with the label is deleted',
    request: { method: 'DELETE', path: `${MACHINES}/m-1` },
    machine: forced,
    destroys: true,
    on: CONTROL,
  },
  {
    what: 'a Machine becomes Failed',
    request: { method: 'PATCH', path: `${MACHINES}/m-1/status`, body: failed, ...phase('Running') },
    destroys: true,
    on: BOTH,
  },
  {
    what: 'a Machine stays Failed',
    request: { method: 'PATCH', path: `${MACHINES}/m-1/status`, body: failed, ...phase('Failed') },
    destroys: undefined,
  },
  {
    what: 'a Machine becomes Running',
    request: {
      method: 'PATCH',
      path: `${MACHINES}/m-1/status`,
      body: { status: { currentStatus: { phase: 'Running' } } },
      ...phase('Pending'),
    },
    destroys: undefined,
  },
  {
    what: 'a Machine that goes loses its finalizer',
    request: {
      method: 'PATCH',
      path: `${MACHINES}/m-1`,
      body: { metadata: { finalizers: [] } },
      before: of({ deletionTimestamp: GOING, finalizers: ['f'] }),
    },
    destroys: true,
    on: CONTROL,
  },
  {
    what: 'all its finalizers at once',
    request: {
      method: 'PATCH',
      path: `${MACHINES}/m-1`,
      body: { metadata: { finalizers: null } },
      before: of({ deletionTimestamp: GOING, finalizers: ['f'] }),
    },
    destroys: true,
    on: CONTROL,
  },
  {
    what: 'a Machine that stays loses its finalizer',
    request: {
      method: 'PATCH',
      path: `${MACHINES}/m-1`,
      body: { metadata: { finalizers: [] } },
      before: of({ finalizers: ['f'] }),
    },
    destroys: false,
    on: CONTROL,
  },
  {
    what: 'a Machine is to go by force',
    request: { method: 'PATCH', path: `${MACHINES}/m-1`, body: { metadata: { labels: { 'force-deletion': 'True' } } } },
    destroys: false,
    on: CONTROL,
  },
  { what: 'a Machine is made', request: { method: 'POST', path: MACHINES, body: {} }, destroys: false, on: CONTROL },
  {
    what: 'a set gets smaller',
    request: { method: 'PATCH', path: `${SETS}/set-1`, body: { spec: { replicas: 1 } }, before: sizeOf(2) },
    machine: owned,
    destroys: true,
    on: BOTH,
  },
  {
    what: 'a set gets smaller by its scale',
    request: { method: 'PUT', path: `${SETS}/set-1/scale`, body: { spec: { replicas: 1 } }, before: sizeOf(2) },
    machine: owned,
    destroys: true,
    on: BOTH,
  },
  {
    what: 'a set gets smaller whose Machines all have the label',
    request: { method: 'PATCH', path: `${SETS}/set-1`, body: { spec: { replicas: 1 } }, before: sizeOf(2) },
    machine: forced,
    destroys: true,
    on: CONTROL,
  },
  {
    what: 'a set gets smaller whose Machines all go',
    request: { method: 'PATCH', path: `${SETS}/set-1`, body: { spec: { replicas: 1 } }, before: sizeOf(2) },
    machine: going,
    destroys: true,
    on: CONTROL,
  },
  {
    what: 'a set without Machines gets smaller',
    request: { method: 'PATCH', path: `${SETS}/set-1`, body: { spec: { replicas: 1 } }, before: sizeOf(2) },
    destroys: true,
    on: CONTROL,
  },
  {
    what: 'a set gets smaller that has no Machine of another one',
    request: {
      method: 'PATCH',
      path: `${SETS}/set-2`,
      body: { spec: { replicas: 1 } },
      before: sizeOf(2, { uid: 'another' }),
    },
    machine: owned,
    destroys: true,
    on: CONTROL,
  },
  {
    what: 'a set gets larger',
    request: { method: 'PATCH', path: `${SETS}/set-1`, body: { spec: { replicas: 3 } }, before: sizeOf(2) },
    machine: owned,
    destroys: false,
    on: CONTROL,
  },
  {
    what: 'a set is deleted',
    request: { method: 'DELETE', path: `${SETS}/set-1`, before: sizeOf(1) },
    machine: owned,
    destroys: true,
    on: BOTH,
  },
  {
    what: 'an empty set is deleted',
    request: { method: 'DELETE', path: `${SETS}/set-1`, before: sizeOf(0) },
    destroys: true,
    on: CONTROL,
  },
  {
    what: 'a set loses its finalizer',
    request: {
      method: 'PATCH',
      path: `${SETS}/set-1`,
      body: { metadata: { finalizers: [] } },
      before: sizeOf(0, { deletionTimestamp: GOING, finalizers: ['f'] }),
    },
    destroys: false,
    on: CONTROL,
  },
  {
    what: 'a pool gets smaller, and a Machine is named for that',
    request: {
      method: 'PATCH',
      path: POOL,
      body: { spec: { replicas: 1 }, metadata: listed('m-0~t', 'm-1~t') },
      before: sizeOf(2, listed('m-0~t')),
    },
    destroys: true,
    on: BOTH,
  },
  {
    what: 'a pool gets smaller, and its Machine was named before',
    request: {
      method: 'PATCH',
      path: POOL,
      body: { spec: { replicas: 1 }, metadata: listed('m-1~t') },
      before: sizeOf(2, listed('m-1~t')),
    },
    destroys: true,
    on: CONTROL,
  },
  {
    what: 'a pool gets smaller, and a Machine is named that is gone',
    request: {
      method: 'PATCH',
      path: POOL,
      body: { spec: { replicas: 1 }, metadata: listed('m-0~t') },
      before: sizeOf(2),
    },
    destroys: true,
    on: CONTROL,
  },
  {
    what: 'a status of a pool tells of an outage',
    request: { method: 'PATCH', path: `${POOL}/status`, body: { status: { conditions: [] } }, before: sizeOf(2) },
    destroys: undefined,
  },
  { what: 'a Node is deleted', request: { method: 'DELETE', path: `${NODE}?x=y` }, destroys: true, on: BOTH },
  {
    what: 'a Node of the same cluster is deleted',
    request: { to: 'control', method: 'DELETE', path: NODE },
    destroys: true,
    on: BOTH,
  },
  {
    what: 'a pod is evicted',
    request: { method: 'POST', path: '/api/v1/namespaces/a/pods/p/eviction' },
    destroys: true,
    on: BOTH,
  },
  {
    what: 'a pod is deleted',
    request: { method: 'DELETE', path: '/api/v1/namespaces/a/pods/p' },
    destroys: true,
    on: BOTH,
  },
  {
    what: 'a volume is detached',
    request: { method: 'DELETE', path: '/apis/storage.k8s.io/v1/volumeattachments/a' },
    destroys: true,
    on: BOTH,
  },
  {
    what: 'a token is deleted',
    request: { method: 'DELETE', path: '/api/v1/namespaces/kube-system/secrets/bootstrap-token-a' },
    destroys: true,
    on: BOTH,
  },
  {
    what: 'a Node is cordoned',
    request: { method: 'PATCH', path: NODE, body: { spec: { unschedulable: true } } },
    destroys: false,
    on: BOTH,
  },
  {
    what: 'a Node gets a condition',
    request: { method: 'PATCH', path: `${NODE}/status`, body: { status: { conditions: [] } } },
    destroys: false,
    on: BOTH,
  },
  {
    what: 'a Node is to be emptied',
    request: { method: 'PATCH', path: NODE, body: selected },
    destroys: true,
    on: BOTH,
  },
  {
    what: 'a Node is to be emptied as before',
    request: { method: 'PATCH', path: NODE, body: selected, before: of(selected.metadata) },
    destroys: false,
    on: BOTH,
  },
  {
    what: 'a Node is no longer to be emptied',
    request: {
      method: 'PATCH',
      path: NODE,
      body: { metadata: { labels: { 'node.machine.sapcloud.io/selected-for-update': null } } },
    },
    destroys: false,
    on: BOTH,
  },
];

test.each(ROWS)('$what', ({ request, machine: change, destroys, on }) => {
  const to = request.path.startsWith('/api/v1') || request.path.includes('storage') ? 'target' : 'control';

  const effect = effectOf({ to, ...request }, [machine(change)]);

  expect(effect && { destroys: effect.destroys, on: effect.on }).toEqual(
    destroys === undefined ? undefined : { destroys, on },
  );
});
