import type { LabelSelector } from '../pkg/apis/meta.ts';
import { API_VERSION } from '../pkg/apis/machine/v1alpha1/group.ts';
import type {
  LastOperation,
  Machine,
  MachineSpec,
  MachineSummary,
  MachineTemplateSpec,
} from '../pkg/apis/machine/v1alpha1/machine.ts';
import type { NodeLabelPolicy } from '../pkg/apis/machine/v1alpha1/node-label-policy.ts';
import type { MachineClass } from '../pkg/apis/machine/v1alpha1/machine-class.ts';
import type { MachineDeployment, RollingLimits } from '../pkg/apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../pkg/apis/machine/v1alpha1/machine-set.ts';

/** T with every optional member present, at any depth: a member that is left out does not compile. */
export type Complete<T> = T extends readonly (infer U)[]
  ? Complete<U>[]
  : T extends object
    ? { [K in keyof T]-?: Complete<Exclude<T[K], undefined>> }
    : T;

/** A complete object, but for the metadata that only the server sets. */
type Full<T> = Complete<Omit<T, 'metadata'>> & { metadata: { name: string; labels: Record<string, string> } };

const NOW = '2026-01-01T00:00:00Z';

const lastOperation: Complete<LastOperation> = {
  description: 'Creating machine',
  errorCode: 'Internal',
  lastUpdateTime: NOW,
  state: 'Failed',
  type: 'Create',
};

const machineSpec: Complete<MachineSpec> = {
  class: { apiGroup: 'machine.sapcloud.io', kind: 'MachineClass', name: 'class-1' },
  providerID: 'sim:///m-1',
  nodeTemplate: {
    metadata: { labels: { a: '' }, annotations: { b: 'c' }, name: 'free-form' },
    spec: {
      configSource: {
        configMap: { kubeletConfigKey: 'k', name: 'n', namespace: 's', resourceVersion: '1', uid: 'u' },
      },
      externalID: 'e',
      podCIDR: '10.0.0.0/24',
      podCIDRs: ['10.0.0.0/24', 'fd00::/64'],
      providerID: 'sim:///m-1',
      taints: [{ effect: 'NoSchedule', key: 'k', timeAdded: NOW, value: 'v' }],
      unschedulable: true,
    },
  },
  drainTimeout: '1h2m3.5s',
  healthTimeout: '10m0s',
  creationTimeout: '20m',
  inPlaceUpdateTimeout: '300ms',
  machinePreserveTimeout: '0s',
  disableHealthTimeout: true,
  maxEvictRetries: 3,
  nodeConditions: 'KernelDeadlock,ReadonlyFilesystem',
};

const template: Complete<MachineTemplateSpec> = {
  metadata: {
    labels: { pool: 'a' },
    annotations: { d: 'e' },
    finalizers: ['example.com/f'],
    generateName: 'free-form-',
  },
  spec: machineSpec,
};

const selector: Complete<LabelSelector> = {
  matchLabels: { pool: 'a' },
  matchExpressions: [
    { key: 'pool', operator: 'In', values: ['a', 'b'] },
    { key: 'zone', operator: 'NotIn', values: ['z'] },
  ],
};

const limits: Complete<RollingLimits> = { maxSurge: '25%', maxUnavailable: 1 };

const failedMachines: Complete<MachineSummary>[] = [
  { name: 'm-1', providerID: 'sim:///m-1', ownerRef: 'set-1', lastOperation },
];

const full: Full<Machine> = {
  apiVersion: API_VERSION,
  kind: 'Machine',
  metadata: { name: 'full', labels: { node: 'node-1' } },
  spec: machineSpec,
  status: {
    addresses: [{ type: 'InternalIP', address: '10.0.0.1' }],
    conditions: [
      {
        type: 'Ready',
        status: 'True',
        reason: 'KubeletReady',
        message: 'ready',
        lastHeartbeatTime: NOW,
        lastTransitionTime: NOW,
      },
    ],
    lastOperation,
    currentStatus: { phase: 'Pending', timeoutActive: true, lastUpdateTime: NOW, preserveExpiryTime: NOW },
    lastKnownState: 'state',
    machineConditions: [
      { type: 'Drained', status: 'False', reason: 'Waiting', message: 'waits', lastTransitionTime: NOW },
    ],
    vmCapacity: { cpu: '4', memory: '8Gi' },
  },
};

const fullSet: Full<MachineSet> = {
  apiVersion: API_VERSION,
  kind: 'MachineSet',
  metadata: { name: 'full', labels: { pool: 'a' } },
  spec: {
    replicas: 3,
    selector,
    machineClass: { apiGroup: 'machine.sapcloud.io', kind: 'MachineClass', name: 'class-1' },
    template,
    minReadySeconds: 500,
    autoPreserveFailedMachineMax: 1,
  },
  status: {
    replicas: 3,
    fullyLabeledReplicas: 3,
    readyReplicas: 2,
    availableReplicas: 2,
    preservedFailedReplicas: 1,
    autoPreserveFailedMachineCount: 1,
    observedGeneration: 1,
    lastOperation,
    machineSetCondition: [
      { type: 'Frozen', status: 'True', lastTransitionTime: NOW, reason: 'Overshoot', message: 'too many' },
    ],
    failedMachines,
  },
};

const fullDeployment: Full<MachineDeployment> = {
  apiVersion: API_VERSION,
  kind: 'MachineDeployment',
  metadata: { name: 'full', labels: { pool: 'a' } },
  spec: {
    replicas: 3,
    selector,
    template,
    strategy: {
      type: 'InPlaceUpdate',
      rollingUpdate: limits,
      inPlaceUpdate: { ...limits, orchestrationType: 'Manual' },
    },
    minReadySeconds: 500,
    revisionHistoryLimit: 2,
    paused: true,
    rollbackTo: { revision: 1 },
    progressDeadlineSeconds: 600,
    autoPreserveFailedMachineMax: 1,
  },
  status: {
    observedGeneration: 1,
    replicas: 4,
    updatedReplicas: 3,
    readyReplicas: 2,
    availableReplicas: 2,
    unavailableReplicas: 1,
    preservedFailedReplicas: 1,
    conditions: [
      {
        type: 'Progressing',
        status: 'True',
        lastUpdateTime: NOW,
        lastTransitionTime: NOW,
        reason: 'NewMachineSetCreated',
        message: 'created',
      },
    ],
    collisionCount: 1,
    failedMachines,
  },
};

const fullClass: Full<MachineClass> = {
  apiVersion: API_VERSION,
  kind: 'MachineClass',
  metadata: { name: 'full', labels: { pool: 'a' } },
  providerSpec: { size: 'small', tags: { a: 'b' }, zones: [1, 'two'] },
  provider: 'sim',
  secretRef: { name: 'secret-1', namespace: 'default' },
  credentialsSecretRef: { name: 'secret-2', namespace: 'default' },
  nodeTemplate: {
    capacity: { cpu: 2, gpu: '0', memory: '8Gi' },
    virtualCapacity: { 'example.com/slots': '10', count: 3 },
    instanceType: 'small',
    region: 'region-1',
    zone: 'zone-1',
    architecture: 'amd64',
  },
};

const fullLabelPolicy: Full<NodeLabelPolicy> = {
  apiVersion: API_VERSION,
  kind: 'NodeLabelPolicy',
  metadata: { name: 'full', labels: { pool: 'a' } },
  spec: { machineLabels: { pool: 'a' }, allowed: [{ key: 'tier', value: 'web' }] },
};

/** One object of each kind in which every field has a value that is not empty. */
export const FULL_OBJECTS = [full, fullSet, fullDeployment, fullClass, fullLabelPolicy] as const;
