import { deployment, machine, node, pod } from './objects.ts';
import { get, getPath, merge, post, put, type Row, strategic } from './row.ts';

/** As `kubectl get` has it. */
const TABLE = {
  accept:
    'application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json',
};
const STRICT = { query: '?fieldValidation=Strict' };
const NOW = '2026-01-01T00:00:00Z';
const LABELS = { table: 'yes' };
const LABELLED = { ...TABLE, query: '?labelSelector=table%3Dyes' };

/** What `kubectl` relies on beside objects: which kinds there are, and that nothing is dropped of what it sends. */
export const KUBECTL_ROWS: readonly Row[] = [
  getPath('kinds of the project', '/apis/machine.sapcloud.io/v1alpha1'),
  getPath('the group of the project', '/apis/machine.sapcloud.io'),
  getPath('a group that does not exist', '/apis/none.example.com/v1', { kept: { what: 'body', why: 'a text' } }),

  post('a field that nobody knows', 'machines', machine('strict', { extra: 1 }), STRICT),
  post(
    'several of them',
    'machines',
    machine('strict', { spec: { a: 1, class: { kind: 'MachineClass', name: 'c', b: {} } } }),
    STRICT,
  ),
  post(
    'one in a list',
    'machinedeployments',
    deployment('strict', { selector: { matchExpressions: [{ key: 'a', operator: 'Exists', c: 1 }] } }),
    STRICT,
  ),
  post('none', 'machines', machine('strict'), { ...STRICT, save: 'strict' }),
  merge('a patch with a field that nobody knows', 'machines/strict', { spec: { a: 1 } }, STRICT),
  put('an update with one', 'machines/strict', machine('strict', { a: 1 }), STRICT),

  post('a MachineDeployment for tables', 'machinedeployments', deployment('table')),
  post('a Machine for tables', 'machines', machine('table', {}, { labels: LABELS })),
  post('another one', 'machines', machine('table-2', {}, { labels: LABELS })),
  merge('its phase', 'machines/table/status', { status: { currentStatus: { phase: 'Running', lastUpdateTime: NOW } } }),
  merge('its Node', 'machines/table', { metadata: { labels: { node: 'n' } }, spec: { providerID: 'sim:///t' } }),
  merge('its zone', 'machines/table', {
    spec: { nodeTemplate: { metadata: { labels: { 'topology.kubernetes.io/zone': 'z' } } } },
  }),
  merge('its operation, and that it is preserved', 'machines/table/status', {
    status: {
      currentStatus: { preserveExpiryTime: NOW },
      lastOperation: { type: 'Create', state: 'Failed', errorCode: 'ResourceExhausted', description: 'no room' },
    },
  }),
  merge('that the MachineDeployment is paused', 'machinedeployments/table', { spec: { paused: true } }),
  merge('why it does not progress', 'machinedeployments/table/status', {
    status: {
      conditions: [
        { type: 'Available', status: 'True', reason: 'Minimum' },
        { type: 'Progressing', status: 'Unknown', reason: 'DeploymentPaused' },
        { type: 'Progressing', status: 'False', reason: 'Second' },
      ],
    },
  }),
  post('a Node for tables', 'nodes', node('table')),
  strategic('that it is ready', 'nodes/table/status', {
    status: {
      conditions: [{ type: 'Ready', status: 'True', lastHeartbeatTime: NOW, lastTransitionTime: NOW }],
      addresses: [{ type: 'InternalIP', address: '10.0.0.1' }],
      nodeInfo: { kubeletVersion: 'v1.30.0', osImage: 'OS', kernelVersion: '6', containerRuntimeVersion: 'c://1' },
    },
  }),
  post('a Node for tables that is cordoned', 'nodes', node('table-2', { spec: { unschedulable: true } })),
  strategic('its role', 'nodes/table-2', { metadata: { labels: { 'node-role.kubernetes.io/worker': '' } } }),
  strategic('that it is not ready', 'nodes/table-2/status', {
    status: { conditions: [{ type: 'Ready', status: 'Unknown' }] },
  }),
  post('a pod for tables', 'pods', pod('table', { nodeName: 'none' }, { labels: LABELS })),
  post('a ConfigMap for tables', 'configmaps', {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'table', labels: LABELS },
    data: { a: 'b' },
  }),
];

/** Tables, as `kubectl get` shows them. They come last: what others write to Nodes is seen in them. */
export const TABLE_ROWS: readonly Row[] = [
  ...[
    'machinedeployments/table',
    'machines/table',
    'machines/table-2',
    'nodes/table',
    'nodes/table-2',
    'machines/none',
  ].map((what) => get(`${what} as a table`, what, TABLE)),
  get('a table without objects', 'machines/table', { ...TABLE, query: '?includeObject=None' }),
  get('a table with whole objects', 'machines/table', { ...TABLE, query: '?includeObject=Object' }),
  get('no Machines as a table', 'machines', { ...TABLE, query: '?labelSelector=table%3Dno' }),
  get('a page of a table', 'machines', { ...TABLE, query: '?limit=1' }),
  ...['machinesets', 'machinedeployments', 'machineclasses', 'nodelabelpolicies', 'secrets', 'leases'].map((plural) =>
    get(`${plural} as a table`, plural, TABLE),
  ),
  ...['machines', 'pods', 'configmaps'].map((plural) => get(`labelled ${plural} as a table`, plural, LABELLED)),
  get('budgets as a table', 'poddisruptionbudgets', TABLE),
];
