import { CLUSTER_API_GROUP, CLUSTER_API_VERSION } from '../../../pkg/worlds/cluster-api/api/keys.ts';
import type { Definition } from './definition.ts';
import { selector } from './selector.ts';
import { flag, int32, listOf, mapOf, object, text, time, type Schema } from './schema.ts';

const OPEN: Schema = { 'x-kubernetes-preserve-unknown-fields': true };
const FOREIGN = {
  group: CLUSTER_API_GROUP,
  version: CLUSTER_API_VERSION,
  folder: 'cluster-api',
  category: 'cluster-api',
};
const AGE = {
  name: 'Age',
  type: 'date',
  jsonPath: '.metadata.creationTimestamp',
  description: 'Time since its creation.',
} as const;

const seconds = (description: string): Schema => int32(description, { minimum: 0 });

const reference = (description: string): Schema =>
  object(
    description,
    {
      apiGroup: text('API group of the object.', { maxLength: 253 }),
      kind: text('Kind of the object.', { maxLength: 63 }),
      name: text('Name of the object, in the same namespace.', { maxLength: 253 }),
    },
    { required: ['apiGroup', 'kind', 'name'] },
  );

const conditions = listOf(
  'Conditions of the object, by type.',
  object(
    'A condition.',
    {
      type: text('Type of the condition.', { maxLength: 316 }),
      status: text('True, False or Unknown.', { maxLength: 7 }),
      reason: text('Reason of the last change, in CamelCase.', { maxLength: 1024 }),
      message: text('Human-readable details.', { maxLength: 32_768 }),
      lastTransitionTime: time('When the status last changed.'),
      observedGeneration: {
        description: 'Generation for which the condition was set.',
        type: 'integer',
        format: 'int64',
      },
    },
    { required: ['type', 'status'] },
  ),
  { maxItems: 100, 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['type'] },
);

const deprecated: Schema = { ...object('Fields for providers of the older contract.', {}), ...OPEN };

/** The kind Machine of Cluster API, for where Cluster API is not installed. */
export const clusterAPIMachine: Definition = {
  kind: 'Machine',
  plural: 'machines',
  shortName: 'ma',
  foreign: FOREIGN,
  description: 'A machine of Cluster API.',
  columns: [
    { name: 'Cluster', type: 'string', jsonPath: '.spec.clusterName', description: 'Its Cluster.' },
    { name: 'Node', type: 'string', jsonPath: '.status.nodeRef.name', description: 'Its Node.' },
    { name: 'ProviderID', type: 'string', jsonPath: '.spec.providerID', description: 'Its provider ID.' },
    {
      name: 'Ready',
      type: 'string',
      jsonPath: '.status.conditions[?(@.type=="Ready")].status',
      description: 'Whether it is ready.',
    },
    {
      name: 'Paused',
      type: 'string',
      jsonPath: '.status.conditions[?(@.type=="Paused")].status',
      description: 'Whether reconciliation of the Machine is paused.',
    },
    { name: 'Phase', type: 'string', jsonPath: '.status.phase', description: 'Phase of the object.' },
    AGE,
    { name: 'Version', type: 'string', jsonPath: '.spec.version', description: 'Kubernetes version of the machine.' },
  ],
  hasStatus: true,
  hasScale: false,
  required: ['spec'],
  properties: {
    spec: object(
      'Desired state of the machine.',
      {
        clusterName: text('Name of the Cluster, in the same namespace.', { maxLength: 63 }),
        bootstrap: object('Bootstrap data; set one of the two fields.', {
          configRef: reference('Object of a bootstrap provider, which creates the data.'),
          dataSecretName: text('Name of a Secret with the data under key value.', { maxLength: 253 }),
        }),
        infrastructureRef: reference('Object of an infrastructure provider, which creates the machine.'),
        version: text('Kubernetes version that the provider installs.', { maxLength: 256 }),
        providerID: text('Provider ID of the infrastructure and of the Node; set by the controller.', {
          maxLength: 512,
        }),
        failureDomain: text('Failure domain in which the provider creates the machine.', { maxLength: 256 }),
        minReadySeconds: seconds('Seconds for which the machine must be ready before it is available.'),
        readinessGates: listOf(
          'Additional conditions for readiness.',
          object(
            'A condition.',
            {
              conditionType: text('Its type.', { maxLength: 316 }),
              polarity: text('Positive, or Negative if True indicates a problem.', { maxLength: 8 }),
            },
            { required: ['conditionType'] },
          ),
          { maxItems: 32 },
        ),
        deletion: object('Settings for the deletion.', {
          nodeDrainTimeoutSeconds: seconds('Timeout of the drain of the Node. 0 or unset: no timeout.'),
          nodeVolumeDetachTimeoutSeconds: seconds('Timeout for volumes to be detached. 0 or unset: no timeout.'),
          nodeDeletionTimeoutSeconds: seconds('Timeout for the deletion of the Node. 0: no timeout. Defaults to 10.'),
        }),
        taints: listOf(
          'Taints of its Node.',
          object(
            'A taint.',
            {
              key: text('Its key.', { maxLength: 317 }),
              value: text('Its value.', { maxLength: 63 }),
              effect: text('NoSchedule, PreferNoSchedule or NoExecute.', { maxLength: 16 }),
              propagation: text('Always, or OnInitialization: only when the Node joins.', { maxLength: 16 }),
            },
            { required: ['key', 'effect', 'propagation'] },
          ),
          { maxItems: 64 },
        ),
      },
      {
        ...OPEN,
        required: ['clusterName', 'bootstrap', 'infrastructureRef'],
        'x-kubernetes-validations': [
          {
            rule: 'self.clusterName == oldSelf.clusterName',
            message: 'clusterName cannot change',
            reason: 'FieldValueInvalid',
          },
        ],
      },
    ),
    status: object(
      'Observed state of the machine.',
      {
        conditions,
        initialization: object('Completed initialization steps.', {
          infrastructureProvisioned: flag('Whether the infrastructure was provisioned.'),
          bootstrapDataSecretCreated: flag('Whether the Secret with bootstrap data was created.'),
        }),
        nodeRef: object('Its Node.', { name: text('Name of the Node.', { maxLength: 253 }) }),
        nodeInfo: { ...object('Information that the kubelet reports.', {}), ...OPEN },
        lastUpdated: time('When the phase last changed.'),
        addresses: listOf(
          'Addresses of the machine.',
          object('An address.', {
            type: text('Hostname, InternalIP, ExternalIP, InternalDNS or ExternalDNS.', { maxLength: 16 }),
            address: text('The address.', { maxLength: 256 }),
          }),
          { maxItems: 128, 'x-kubernetes-list-type': 'atomic' },
        ),
        failureDomain: text('Failure domain in which the provider created the machine.', { maxLength: 256 }),
        certificatesExpiryDate: time('When the certificates of a Machine of a control plane expire.'),
        phase: text('Phase of the object.', { maxLength: 32 }),
        observedGeneration: { description: 'Generation that was last observed.', type: 'integer', format: 'int64' },
        deletion: mapOf('Start times of the steps of the deletion.', time('Start time.')),
        deprecated,
      },
      OPEN,
    ),
  },
  rules: [],
};

/** The kind Cluster of Cluster API, for where Cluster API is not installed. */
export const clusterAPICluster: Definition = {
  kind: 'Cluster',
  plural: 'clusters',
  shortName: 'cl',
  foreign: FOREIGN,
  description: 'A cluster of Cluster API: the common properties of its Machines.',
  columns: [
    { name: 'Phase', type: 'string', jsonPath: '.status.phase', description: 'Phase of the object.' },
    {
      name: 'Infrastructure',
      type: 'string',
      jsonPath: '.status.conditions[?(@.type=="InfrastructureReady")].status',
      description: 'Whether its infrastructure is ready.',
    },
    AGE,
  ],
  hasStatus: true,
  hasScale: false,
  properties: {
    spec: object(
      'Desired state of the cluster.',
      {
        paused: flag('Pauses the reconciliation of the Cluster and its Machines.'),
        infrastructureRef: reference(
          'Object of an infrastructure provider that the machines need. If unset, none is needed.',
        ),
        controlPlaneRef: reference('Object of a control-plane provider. If unset, the control plane already exists.'),
        controlPlaneEndpoint: object('Address of the API server.', {
          host: text('Host name or address.', { maxLength: 512 }),
          port: int32('Port.'),
        }),
      },
      OPEN,
    ),
    status: object(
      'Observed state of the cluster.',
      {
        conditions,
        initialization: object('Completed initialization steps.', {
          infrastructureProvisioned: flag('Whether the infrastructure was provisioned.'),
          controlPlaneInitialized: flag('Whether the control plane was initialized.'),
        }),
        failureDomains: listOf('Failure domains in which machines can be created.', {
          ...object('A failure domain.', {}),
          ...OPEN,
        }),
        phase: text('Phase of the object.', { maxLength: 32 }),
        observedGeneration: { description: 'Generation that was last observed.', type: 'integer', format: 'int64' },
        deprecated,
      },
      OPEN,
    ),
  },
  rules: [],
};

const selectors = (description: string, own: string, around: readonly [string, string]): Schema =>
  listOf(
    description,
    object('Selectors, all of which must match.', {
      selector: selector(own),
      [around[0]]: selector(around[1]),
    }),
    { maxItems: 32, 'x-kubernetes-list-type': 'atomic' },
  );

/** The kind MachineDrainRule of Cluster API, for where Cluster API is not installed. */
export const machineDrainRule: Definition = {
  kind: 'MachineDrainRule',
  plural: 'machinedrainrules',
  foreign: FOREIGN,
  description: 'How drains of the Nodes of machines handle pods.',
  columns: [
    { name: 'Behavior', type: 'string', jsonPath: '.spec.drain.behavior', description: 'How the pods are handled.' },
    {
      name: 'Order',
      type: 'string',
      jsonPath: '.spec.drain.order',
      description: 'Pods with a lower order are evicted first.',
    },
    AGE,
  ],
  hasStatus: false,
  hasScale: false,
  required: ['spec'],
  properties: {
    spec: object(
      'How to handle pods, and the selected pods.',
      {
        drain: object(
          'How to handle the pods.',
          {
            behavior: text('Drain: evict the pods. Skip: leave them. WaitCompleted: wait until they have completed.', {
              enum: ['Drain', 'Skip', 'WaitCompleted'],
            }),
            order: int32('With Drain: pods are evicted when all pods with a lower order are gone. Defaults to 0.'),
          },
          { required: ['behavior'] },
        ),
        machines: selectors(
          'Selects Machines; one entry must match. If unset, all Machines are selected.',
          'Labels of the Machine.',
          ['clusterSelector', 'Labels of its Cluster.'],
        ),
        pods: selectors('Selects pods; one entry must match. If unset, all pods are selected.', 'Labels of the pod.', [
          'namespaceSelector',
          'Labels of the namespace of the pod.',
        ]),
      },
      { required: ['drain'] },
    ),
  },
  rules: [],
};
