import type { Members } from '../api-server/json.ts';
import { del, get, type Given, merge, post, put, type Row, rvOf } from './row.ts';

const MACHINES = 'machines.cluster.x-k8s.io';
const CLUSTERS = 'clusters.cluster.x-k8s.io';
const RULES = 'machinedrainrules.cluster.x-k8s.io';
const API_VERSION = 'cluster.x-k8s.io/v1beta2';
const FINALIZER = 'machine.cluster.x-k8s.io';

const SPEC: Members = {
  clusterName: 'c',
  bootstrap: { dataSecretName: 'data' },
  infrastructureRef: { apiGroup: 'infrastructure.cluster.x-k8s.io', kind: 'SimMachine', name: 'k' },
};

function of(name: string, spec: Members = {}): Members {
  return { apiVersion: API_VERSION, kind: 'Machine', metadata: { name }, spec: { ...SPEC, ...spec } };
}

const condition = (type: string, more: Members = {}): Members => ({
  type,
  status: 'True',
  reason: 'Fine',
  message: '',
  lastTransitionTime: '2020-01-01T00:00:00Z',
  ...more,
});

/** Definitions of Cluster API, and what its controllers write. */
export const CLUSTER_API_ROWS: readonly Row[] = [
  post('a Machine of a Cluster', MACHINES, of('k', { more: { kept: true } }), { save: 'k' }),
  post('of no Cluster', MACHINES, of('l', { clusterName: null })),
  post('of a Cluster whose name is too long', MACHINES, of('l', { clusterName: 'x'.repeat(64) })),
  post('with a reference that lacks a name', MACHINES, of('l', { infrastructureRef: { apiGroup: 'a', kind: 'B' } })),
  post('with a negative time', MACHINES, of('l', { minReadySeconds: -1 })),
  post('with a taint that lacks an effect', MACHINES, of('l', { taints: [{ key: 'a' }] })),
  post(
    'with deletion and taints',
    MACHINES,
    of('m', {
      deletion: { nodeDrainTimeoutSeconds: 10 },
      taints: [{ key: 'a', effect: 'NoSchedule', propagation: 'Always' }],
    }),
  ),
  merge('its finalizer, unless it has changed', `${MACHINES}/k`, (given: Given) => ({
    metadata: { resourceVersion: rvOf(given, 'k'), finalizers: [FINALIZER] },
  })),
  merge('another Cluster', `${MACHINES}/k`, { spec: { clusterName: 'd' } }),
  merge('a provider ID', `${MACHINES}/k`, { spec: { providerID: 'sim://k' } }),
  merge('what it owns, and a label', `${MACHINES}/k`, {
    metadata: { labels: { 'cluster.x-k8s.io/cluster-name': 'c' }, annotations: { 'cluster.x-k8s.io/paused': '' } },
  }),
  merge('a status with conditions', `${MACHINES}/k/status`, {
    status: { phase: 'Running', conditions: [condition('Ready'), condition('Available')], nodeRef: { name: 'n' } },
  }),
  merge('two conditions of a type', `${MACHINES}/k/status`, {
    status: { conditions: [condition('Ready'), condition('Ready')] },
  }),
  merge('a condition without a reason', `${MACHINES}/k/status`, {
    status: { conditions: [condition('Ready', { reason: null })] },
  }),
  merge('the spec by the status subresource of a Machine of a Cluster', `${MACHINES}/k/status`, {
    spec: { providerID: 'sim://other' },
  }),
  get('the Machine that came of it', `${MACHINES}/k`, { save: 'k' }),
  put('the whole of it', `${MACHINES}/k`, (given: Given) => ({
    ...(given.saved('k') as Members),
    spec: { ...SPEC, failureDomain: 'a' },
  })),

  post('a Cluster of Machines', CLUSTERS, {
    apiVersion: API_VERSION,
    kind: 'Cluster',
    metadata: { name: 'c' },
    spec: { clusterNetwork: { pods: { cidrBlocks: ['10.1.0.0/16'] } } },
  }),
  merge('a pause', `${CLUSTERS}/c`, { spec: { paused: true } }),
  merge('the status of a Cluster of Machines', `${CLUSTERS}/c/status`, {
    status: {
      phase: 'Provisioned',
      conditions: [condition('Available')],
      initialization: { infrastructureProvisioned: true },
    },
  }),
  post('a drain rule', RULES, {
    apiVersion: API_VERSION,
    kind: 'MachineDrainRule',
    metadata: { name: 'r' },
    spec: { drain: { behavior: 'Skip' }, pods: [{ selector: { matchLabels: { a: 'b' } } }] },
  }),
  post('a drain rule that does something else', RULES, {
    apiVersion: API_VERSION,
    kind: 'MachineDrainRule',
    metadata: { name: 's' },
    spec: { drain: { behavior: 'Dance' } },
  }),
  get('Machines of the Cluster', MACHINES, { query: '?labelSelector=cluster.x-k8s.io%2Fcluster-name%3Dc' }),
  del('a Machine that its finalizer holds', `${MACHINES}/k`),
  merge('which goes with that', `${MACHINES}/k`, { metadata: { finalizers: null } }),
  get('and is gone', `${MACHINES}/k`),
];
