import { CLUSTER_API_GROUP, CLUSTER_API_VERSION } from '../../../pkg/apis/cluster-api/keys.ts';
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
      apiGroup: text('Group of its kind.', { maxLength: 253 }),
      kind: text('Its kind.', { maxLength: 63 }),
      name: text('Its name; it is in the same namespace.', { maxLength: 253 }),
    },
    { required: ['apiGroup', 'kind', 'name'] },
  );

const conditions = listOf(
  'What is known of it, by type.',
  object(
    'A condition.',
    {
      type: text('What it is about.', { maxLength: 316 }),
      status: text('True, False or Unknown.', { maxLength: 7 }),
      reason: text('Why, in one word.', { maxLength: 1024 }),
      message: text('Why.', { maxLength: 32_768 }),
      lastTransitionTime: time('Since when it has this status.'),
      observedGeneration: { description: 'Generation that it is about.', type: 'integer', format: 'int64' },
    },
    { required: ['type', 'status'] },
  ),
  { maxItems: 100, 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['type'] },
);

const deprecated: Schema = { ...object('What providers of the older contract read.', {}), ...OPEN };

/** The kind Machine of Cluster API, for where Cluster API is not installed. */
export const clusterAPIMachine: Definition = {
  kind: 'Machine',
  plural: 'machines',
  shortName: 'ma',
  foreign: FOREIGN,
  description: 'A machine as Cluster API has it.',
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
      description: 'Whether nothing is done about it.',
    },
    { name: 'Phase', type: 'string', jsonPath: '.status.phase', description: 'Where it stands in one word.' },
    AGE,
    { name: 'Version', type: 'string', jsonPath: '.spec.version', description: 'Its version of Kubernetes.' },
  ],
  hasStatus: true,
  hasScale: false,
  required: ['spec'],
  properties: {
    spec: object(
      'What the machine should be.',
      {
        clusterName: text('Its Cluster, in the same namespace.', { maxLength: 63 }),
        bootstrap: object('What it starts with; one of both.', {
          configRef: reference('An object of a bootstrap provider, which makes the data.'),
          dataSecretName: text('A Secret with the data under key value.', { maxLength: 253 }),
        }),
        infrastructureRef: reference('The object of an infrastructure provider, which makes the machine.'),
        version: text('Version of Kubernetes that the provider installs.', { maxLength: 256 }),
        providerID: text('Set from the infrastructure: the Node has the same.', { maxLength: 512 }),
        failureDomain: text('Where the provider is to make it.', { maxLength: 256 }),
        minReadySeconds: seconds('How long it has to be ready to be available.'),
        readinessGates: listOf(
          'Further conditions that it takes to be ready.',
          object(
            'A condition.',
            {
              conditionType: text('Its type.', { maxLength: 316 }),
              polarity: text('Positive, or Negative where True is bad.', { maxLength: 8 }),
            },
            { required: ['conditionType'] },
          ),
          { maxItems: 32 },
        ),
        deletion: object('How it goes.', {
          nodeDrainTimeoutSeconds: seconds('How long its Node may be drained; 0 or absent: as long as it takes.'),
          nodeVolumeDetachTimeoutSeconds: seconds(
            'How long volumes may take to be detached; 0 or absent: as long as it takes.',
          ),
          nodeDeletionTimeoutSeconds: seconds('How long its Node may resist; 0: for ever. Absent: 10.'),
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
      'What is known of the machine.',
      {
        conditions,
        initialization: object('What was reached once.', {
          infrastructureProvisioned: flag('The infrastructure was provisioned.'),
          bootstrapDataSecretCreated: flag('The Secret with bootstrap data was there.'),
        }),
        nodeRef: object('Its Node.', { name: text('Name of the Node.', { maxLength: 253 }) }),
        nodeInfo: { ...object('What the kubelet says of itself.', {}), ...OPEN },
        lastUpdated: time('When the phase changed last.'),
        addresses: listOf(
          'Addresses of the machine.',
          object('An address.', {
            type: text('Hostname, InternalIP, ExternalIP, InternalDNS or ExternalDNS.', { maxLength: 16 }),
            address: text('The address.', { maxLength: 256 }),
          }),
          { maxItems: 128, 'x-kubernetes-list-type': 'atomic' },
        ),
        failureDomain: text('Where the provider has made it.', { maxLength: 256 }),
        certificatesExpiryDate: time('When the certificates of a Machine of a control plane expire.'),
        phase: text('Where it stands in one word.', { maxLength: 32 }),
        observedGeneration: { description: 'Generation that was seen last.', type: 'integer', format: 'int64' },
        deletion: mapOf('Since when the steps of its deletion wait.', time('Since when.')),
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
  description: 'A cluster as Cluster API has it: what its Machines have in common.',
  columns: [
    { name: 'Phase', type: 'string', jsonPath: '.status.phase', description: 'Where it stands in one word.' },
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
      'What the cluster should be.',
      {
        paused: flag('Nothing is done about the Cluster and its Machines.'),
        infrastructureRef: reference('The object of an infrastructure provider that its machines need; absent: none.'),
        controlPlaneRef: reference('Who makes its control plane; absent: it is there.'),
        controlPlaneEndpoint: object('Where its API server is.', {
          host: text('Host name or address.', { maxLength: 512 }),
          port: int32('Port.'),
        }),
      },
      OPEN,
    ),
    status: object(
      'What is known of the cluster.',
      {
        conditions,
        initialization: object('What was reached once.', {
          infrastructureProvisioned: flag('The infrastructure was provisioned.'),
          controlPlaneInitialized: flag('The control plane was there.'),
        }),
        failureDomains: listOf('Where machines can be made.', { ...object('A failure domain.', {}), ...OPEN }),
        phase: text('Where it stands in one word.', { maxLength: 32 }),
        observedGeneration: { description: 'Generation that was seen last.', type: 'integer', format: 'int64' },
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
    object('What has to fit, all of it.', {
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
  description: 'What drains of the Nodes of machines do about pods.',
  columns: [
    { name: 'Behavior', type: 'string', jsonPath: '.spec.drain.behavior', description: 'What is done about the pods.' },
    { name: 'Order', type: 'string', jsonPath: '.spec.drain.order', description: 'Pods of a lower order go first.' },
    AGE,
  ],
  hasStatus: false,
  hasScale: false,
  required: ['spec'],
  properties: {
    spec: object(
      'What is done, and about which pods.',
      {
        drain: object(
          'What is done.',
          {
            behavior: text('Drain; Skip: they stay; WaitCompleted: they are waited for until they have completed.', {
              enum: ['Drain', 'Skip', 'WaitCompleted'],
            }),
            order: int32('With Drain: they go when all pods of a lower order have gone. Absent: 0.'),
          },
          { required: ['behavior'] },
        ),
        machines: selectors('Of which Machines; one has to fit. Absent: of all.', 'By labels of the Machine.', [
          'clusterSelector',
          'By labels of its Cluster.',
        ]),
        pods: selectors('Which pods; one has to fit. Absent: all.', 'By labels of the pod.', [
          'namespaceSelector',
          'By labels of its namespace.',
        ]),
      },
      { required: ['drain'] },
    ),
  },
  rules: [],
};
