import { node, pod } from './objects.ts';
import {
  del,
  get,
  type Given,
  jsonPatch,
  merge,
  OTHER_UID,
  post,
  put,
  type Row,
  rvOf,
  strategic,
  uidOf,
} from './row.ts';

const NOW = '2026-01-01T00:00:00Z';
const ready = (status: string) => ({
  type: 'Ready',
  status,
  reason: 'R',
  message: 'm',
  lastHeartbeatTime: NOW,
  lastTransitionTime: NOW,
});
const TAINT = { key: 'k', value: 'v', effect: 'NoSchedule' };

/** Kinds that are built in: Nodes above all, with strategic merge patches. */
export const BUILT_IN_ROWS: readonly Row[] = [
  post('a Node', 'nodes', node('n', { spec: { providerID: 'sim:///n' } }, { labels: { zone: 'a' } }), { save: 'n' }),
  post('the same Node again', 'nodes', node('n')),
  strategic('a condition', 'nodes/n/status', { status: { conditions: [ready('True')] } }, { save: 'n' }),
  strategic('a second condition', 'nodes/n/status', { status: { conditions: [{ ...ready('False'), type: 'Disk' }] } }),
  strategic('a condition that changes', 'nodes/n/status', {
    status: { conditions: [{ type: 'Ready', status: 'False' }] },
  }),
  strategic('a condition that goes', 'nodes/n/status', {
    status: { conditions: [{ type: 'Disk', $patch: 'delete' }] },
  }),
  strategic('two conditions in another order', 'nodes/n/status', {
    status: { conditions: [{ ...ready('True'), type: 'B' }, ready('True'), { ...ready('True'), type: 'A' }] },
  }),
  strategic('addresses', 'nodes/n/status', { status: { addresses: [{ type: 'InternalIP', address: '10.0.0.1' }] } }),
  strategic('a cordon', 'nodes/n', { spec: { unschedulable: true } }),
  strategic('its end', 'nodes/n', { spec: { unschedulable: null } }),
  strategic('taints', 'nodes/n', { spec: { taints: [TAINT, { key: 'l', effect: 'NoExecute' }] } }),
  strategic('taints take the place of others', 'nodes/n', { spec: { taints: [TAINT] } }),
  strategic('no taints', 'nodes/n', { spec: { taints: null } }),
  strategic('labels and annotations', 'nodes/n', {
    metadata: { labels: { a: 'b', zone: null }, annotations: { c: 'd' } },
  }),
  strategic('a finalizer', 'nodes/n', { metadata: { finalizers: ['a.b/one'] } }),
  strategic('another finalizer', 'nodes/n', { metadata: { finalizers: ['a.b/two'] } }),
  strategic('the first one goes', 'nodes/n', { metadata: { '$deleteFromPrimitiveList/finalizers': ['a.b/one'] } }),
  strategic('one that is not there goes', 'nodes/n', {
    metadata: { '$deleteFromPrimitiveList/finalizers': ['a.b/none'] },
  }),
  strategic('the last one goes', 'nodes/n', { metadata: { '$deleteFromPrimitiveList/finalizers': ['a.b/two'] } }),
  strategic('nothing', 'nodes/n', {}, { save: 'n' }),
  strategic('with its uid', 'nodes/n', (given: Given) => ({
    metadata: { uid: uidOf(given, 'n'), labels: { u: '1' } },
  })),
  strategic('with another uid', 'nodes/n', { metadata: { uid: OTHER_UID, labels: { u: '2' } } }),
  strategic('with an old resourceVersion', 'nodes/n', (given: Given) => ({
    metadata: { resourceVersion: rvOf(given, 'n'), labels: { u: '3' } },
  })),
  strategic('of the status, with another uid', 'nodes/n/status', {
    metadata: { uid: OTHER_UID },
    status: { conditions: [ready('Unknown')] },
  }),
  strategic('of the status, with an annotation', 'nodes/n/status', {
    metadata: { annotations: { e: 'f' } },
    status: { conditions: [ready('Unknown')] },
  }),
  strategic('of the status past its subresource', 'nodes/n', { status: { conditions: [ready('True')] } }),
  strategic('of the spec by the status subresource', 'nodes/n/status', { spec: { unschedulable: true } }),
  merge('a merge patch of a Node', 'nodes/n', { metadata: { annotations: { g: 'h' } } }),
  merge('a merge patch of taints', 'nodes/n', { spec: { taints: [TAINT] } }),
  jsonPatch('a JSON patch of a Node', 'nodes/n', [{ op: 'add', path: '/metadata/annotations/i', value: 'j' }]),
  merge('a provider ID that changes', 'nodes/n', { spec: { providerID: 'sim:///other' } }),
  get('a Node as it is', 'nodes/n', { save: 'n' }),
  put('a Node without a resourceVersion', 'nodes/n', (given: Given) => ({
    ...node('n', { spec: { providerID: 'sim:///n' } }, { labels: { put: 'yes' } })(given),
  })),
  put('a Node with an old resourceVersion', 'nodes/n', (given: Given) => ({
    ...node('n', { spec: { providerID: 'sim:///n' } }, { resourceVersion: rvOf(given, 'n') })(given),
  })),
  strategic('a strategic patch of a Machine', 'machines/a', { metadata: { labels: { x: 'y' } } }),
  post('a Node that is held', 'nodes', node('held', {}, { finalizers: ['a.b/c'] }), { save: 'held' }),
  del('it stays', 'nodes/held', (given: Given) => ({ preconditions: { uid: uidOf(given, 'held') } })),
  strategic('and goes', 'nodes/held', { metadata: { '$deleteFromPrimitiveList/finalizers': ['a.b/c'] } }),
  get('a Node that is gone', 'nodes/held'),
  del('a Node that nothing holds', 'nodes/n'),

  post(
    'a Secret',
    'secrets',
    { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' }, stringData: { a: 'text' }, data: { b: 'Yg==' } },
    { save: 's' },
  ),
  merge('more of it', 'secrets/s', { stringData: { c: 'x' } }),
  merge('a key that goes', 'secrets/s', { data: { b: null } }),
  post('a Secret without its kind', 'secrets', { metadata: { name: 'bare' } }),
  post('a ConfigMap', 'configmaps', { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'm' }, data: { a: 'b' } }),
  post(
    'a Lease',
    'leases',
    {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: 'l' },
      spec: { holderIdentity: 'x', leaseTransitions: 1, renewTime: '2026-01-01T00:00:00.000000Z' },
    },
    { save: 'l' },
  ),
  put('a renewal', 'leases/l', (given: Given) => ({
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: 'l', resourceVersion: rvOf(given, 'l') },
    spec: { holderIdentity: 'x', leaseTransitions: 1, renewTime: '2026-01-01T00:00:02.000000Z' },
  })),
  put('a renewal that comes late', 'leases/l', (given: Given) => ({
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: 'l', resourceVersion: rvOf(given, 'l') },
    spec: { holderIdentity: 'y' },
  })),
  post('an Event', 'events', (given: Given) => ({
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: 'e' },
    involvedObject: { kind: 'Machine', name: 'a', namespace: given.namespace },
    reason: 'R',
    message: 'm',
    type: 'Normal',
    count: 1,
    firstTimestamp: NOW,
    lastTimestamp: NOW,
    source: { component: 'c' },
    reportingComponent: 'c',
    reportingInstance: '',
  })),
  merge('the count of an Event', 'events/e', { count: 2 }),
  post('a VolumeAttachment', 'volumeattachments', (given: Given) => ({
    apiVersion: 'storage.k8s.io/v1',
    kind: 'VolumeAttachment',
    metadata: { name: `${given.prefix}v` },
    spec: { attacher: 'sim', nodeName: 'n', source: { persistentVolumeName: 'pv' } },
  })),
  strategic('it is attached', 'volumeattachments/v/status', { status: { attached: true } }),
  del('it goes', 'volumeattachments/v'),

  post(
    'a pod to evict',
    'pods',
    pod('evicted', { nodeName: 'nowhere', tolerations: [{ operator: 'Exists' }] }, { labels: { app: 'a' } }),
    { save: 'evicted' },
  ),
  post('an eviction of another pod of the name', 'pods/evicted/eviction', {
    apiVersion: 'policy/v1',
    kind: 'Eviction',
    metadata: { name: 'evicted' },
    deleteOptions: { preconditions: { uid: OTHER_UID } },
  }),
  post('a budget', 'poddisruptionbudgets', {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: 'b' },
    spec: { minAvailable: 1, selector: { matchLabels: { app: 'a' } } },
  }),
  strategic('the pod runs', 'pods/evicted/status', {
    status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
  }),
  post('an eviction before the budget is known', 'pods/evicted/eviction', {
    apiVersion: 'policy/v1',
    kind: 'Eviction',
    metadata: { name: 'evicted' },
  }),
  merge('the budget allows none', 'poddisruptionbudgets/b/status', {
    status: { observedGeneration: 1, disruptionsAllowed: 0, currentHealthy: 1, desiredHealthy: 1, expectedPods: 1 },
  }),
  post('an eviction that is refused', 'pods/evicted/eviction', {
    apiVersion: 'policy/v1',
    kind: 'Eviction',
    metadata: { name: 'evicted' },
  }),
  merge('the budget allows one', 'poddisruptionbudgets/b/status', {
    status: { disruptionsAllowed: 1, currentHealthy: 2, desiredHealthy: 1 },
  }),
  post('an eviction', 'pods/evicted/eviction', {
    apiVersion: 'policy/v1',
    kind: 'Eviction',
    metadata: { name: 'evicted' },
    deleteOptions: { gracePeriodSeconds: 9 },
  }),
  get('the budget after it', 'poddisruptionbudgets/b'),
  get('the pod after it', 'pods/evicted'),
  post('an eviction of what is being deleted', 'pods/evicted/eviction', {
    apiVersion: 'policy/v1',
    kind: 'Eviction',
    metadata: { name: 'evicted' },
  }),
  post('an eviction of a pod that does not exist', 'pods/none/eviction', {
    apiVersion: 'policy/v1',
    kind: 'Eviction',
    metadata: { name: 'none' },
  }),
  post('a pod that waits', 'pods', pod('waiting', {}, { labels: { app: 'a' } })),
  post('its eviction, whatever the budget says', 'pods/waiting/eviction', {
    apiVersion: 'policy/v1',
    kind: 'Eviction',
    metadata: { name: 'waiting' },
  }),
];
