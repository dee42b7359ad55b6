import type { Members } from '../api-server/json.ts';
import { del, get, type Given, merge, post, type Row, rvOf } from './row.ts';

const MACHINES = 'machines.cluster.k8s.io';
const CLUSTERS = 'clusters.cluster.k8s.io';
const POOLS = 'machinepools.kaas.mirantis.com';
const SHOWN: NonNullable<Row['kept']> = { what: 'causes', why: 'how Go shows a value' };
const FINALIZER = 'machine.sapcloud.io/front-end';

const specOf = (value: Members): Members => ({ providerSpec: { value: { flavor: 'small', unknown: [1], ...value } } });

function front(name: string, value: Members = {}, metadata: Members = {}): Members {
  return {
    apiVersion: 'cluster.k8s.io/v1alpha1',
    kind: 'Machine',
    metadata: { name, ...metadata },
    spec: { ...specOf(value), more: { kept: true } },
  };
}

const value = (members: Members): Members => ({ spec: { providerSpec: { value: members } } });
const status = (members: Members): Members => ({ status: { providerStatus: members } });

/** Definitions of Mirantis Container Cloud, which keep what they do not know, and what its controllers write. */
export const MIRANTIS_ROWS: readonly Row[] = [
  post('a Machine of the front end', MACHINES, front('f'), { save: 'front' }),
  post(
    'one that a Machine owns',
    MACHINES,
    front(
      'owned',
      {},
      {
        finalizers: [FINALIZER],
        labels: { 'kaas.mirantis.com/provider': 'openstack' },
        ownerReferences: [
          {
            apiVersion: 'machine.sapcloud.io/v1alpha1',
            kind: 'Machine',
            name: 'a',
            uid: '00000000-0000-4000-8000-000000000001',
            controller: true,
          },
        ],
      },
    ),
    { kept: { what: 'all', why: 'the garbage collector has its part: nobody has that UID' } },
  ),
  merge('its finalizer, unless it has changed', `${MACHINES}/f`, (given: Given) => ({
    metadata: { resourceVersion: rvOf(given, 'front'), finalizers: [FINALIZER] },
  })),
  merge('which Machine was made for it', `${MACHINES}/f`, { metadata: { annotations: { made: 'uid' } } }),
  merge('a maintenance', `${MACHINES}/f`, value({ maintenance: true })),
  merge('a member that goes', `${MACHINES}/f`, value({ maintenance: null })),
  merge('a policy that is none', `${MACHINES}/f`, value({ deletionPolicy: 'gentle' }), { kept: SHOWN }),
  merge('a policy', `${MACHINES}/f`, value({ deletionPolicy: 'unsafe' })),
  merge('a stricter policy', `${MACHINES}/f`, value({ deletionPolicy: 'graceful' })),
  merge('a deletion that is asked for', `${MACHINES}/f`, value({ delete: true, deletionPolicy: 'unsafe' })),
  merge('a stricter policy during it', `${MACHINES}/f`, value({ deletionPolicy: 'graceful' }), { kept: SHOWN }),
  merge('a weaker one', `${MACHINES}/f`, value({ deletionPolicy: 'forced' })),
  merge('a deletion that is taken back', `${MACHINES}/f`, value({ delete: false })),
  merge(
    'the status of a Machine',
    `${MACHINES}/f/status`,
    status({
      conditions: [{ type: 'LCM', ready: false, message: 'The machine is about to be created' }],
      hardware: { cpu: 2, ram: 4 },
      maintenance: false,
      status: 'Provision',
    }),
  ),
  merge('a member of the status that goes', `${MACHINES}/f/status`, status({ hardware: null })),
  merge('the spec by the status subresource', `${MACHINES}/f/status`, value({ flavor: 'large' })),
  get('what became of it', `${MACHINES}/f`),

  post('a pool', POOLS, {
    apiVersion: 'kaas.mirantis.com/v1alpha1',
    kind: 'MachinePool',
    metadata: { name: 'workers' },
    spec: { replicas: 2, machineSpec: specOf({}) },
  }),
  merge('another size', `${POOLS}/workers`, { spec: { replicas: 3 } }),
  merge('another image', `${POOLS}/workers`, { spec: { machineSpec: specOf({ image: 'other' }) } }),
  merge('the status of a pool', `${POOLS}/workers/status`, {
    status: { observedGeneration: 3, replicas: 3, readyReplicas: 1, updatedReplicas: 2, conditions: [] },
  }),
  post('a Cluster', CLUSTERS, {
    apiVersion: 'cluster.k8s.io/v1alpha1',
    kind: 'Cluster',
    metadata: { name: 'example' },
    spec: { providerSpec: { value: { maintenance: true } } },
  }),
  merge('the status of a Cluster', `${CLUSTERS}/example/status`, status({ maintenance: true, conditions: [] })),
  merge('the finalizer goes', `${MACHINES}/f`, { metadata: { finalizers: [] } }),
  del('a Machine of the front end that goes', `${MACHINES}/f`),
];
