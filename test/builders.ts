import type { ObjectMeta } from '../pkg/apis/meta.ts';
import { API_VERSION } from '../pkg/apis/machine/v1alpha1/group.ts';
import { NODE_LABEL } from '../pkg/apis/machine/v1alpha1/labels.ts';
import type { CurrentStatus, LastOperation, Machine, MachineStatus } from '../pkg/apis/machine/v1alpha1/machine.ts';
import type { ClassNodeTemplate, MachineClass } from '../pkg/apis/machine/v1alpha1/machine-class.ts';
import type {
  MachineDeployment,
  MachineDeploymentSpec,
  MachineDeploymentStatus,
} from '../pkg/apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet, MachineSetSpec, MachineSetStatus } from '../pkg/apis/machine/v1alpha1/machine-set.ts';
import type { Node, Pod, Secret } from '../pkg/apis/wire.ts';

/** Namespace of everything that is built here. */
export const NAMESPACE = 'default';

/** When everything that is built here was created. */
export const CREATED = '2026-01-01T00:00:00Z';

/** Selects and labels what is built here. */
const LABELS = { pool: 'a' };

/** Metadata whose maps are there, so that a change can write into them. */
type BuiltMeta = ObjectMeta & Required<Pick<ObjectMeta, 'namespace' | 'labels' | 'annotations' | 'finalizers'>>;

/** An object whose usual members are there. */
type Built<T, Members> = Omit<T, 'metadata' | keyof Members> & { metadata: BuiltMeta } & Members;

/** A Machine with status, so that a change can write into it. */
export type BuiltMachine = Built<
  Machine,
  { status: MachineStatus & { currentStatus: CurrentStatus; lastOperation: LastOperation } }
>;

/** A MachineSet with all that a change usually writes into. */
export type BuiltMachineSet = Built<
  MachineSet,
  { spec: MachineSetSpec & Required<Pick<MachineSetSpec, 'selector' | 'template'>>; status: MachineSetStatus }
>;

/** A MachineDeployment with all that a change usually writes into. */
export type BuiltMachineDeployment = Built<
  MachineDeployment,
  {
    spec: MachineDeploymentSpec & Required<Pick<MachineDeploymentSpec, 'selector' | 'strategy'>>;
    status: MachineDeploymentStatus;
  }
>;

/** A MachineClass with a provider spec and node template that a change can write into. */
export type BuiltMachineClass = Built<
  MachineClass,
  { providerSpec: Record<string, unknown>; nodeTemplate: ClassNodeTemplate }
>;

/** A Node with spec and status. */
export type BuiltNode = Built<
  Node,
  {
    spec: NonNullable<Node['spec']>;
    status: NonNullable<Node['status']> & Required<Pick<NonNullable<Node['status']>, 'conditions' | 'capacity'>>;
  }
>;

/** A Pod with spec and status. */
export type BuiltPod = Built<Pod, { spec: NonNullable<Pod['spec']>; status: NonNullable<Pod['status']> }>;

/** A Secret with data. */
export type BuiltSecret = Built<Secret, { data: Record<string, string> }>;

/** Changes an object that was just built and belongs to nobody else. */
type Change<T> = (object: T) => void;

/** A Machine that runs on Node `m-1`. Its uid follows from its name unless the change sets one. */
export function machine(change?: Change<BuiltMachine>): BuiltMachine {
  return built(
    {
      apiVersion: API_VERSION,
      kind: 'Machine',
      metadata: metaOf('m-1', { labels: { ...LABELS, [NODE_LABEL]: 'm-1' } }),
      spec: { class: { kind: 'MachineClass', name: 'class-1' }, providerID: 'sim:///m-1' },
      status: {
        currentStatus: { phase: 'Running', lastUpdateTime: CREATED },
        lastOperation: {
          type: 'Create',
          state: 'Successful',
          description: 'Created machine.',
          lastUpdateTime: CREATED,
        },
      },
    },
    change,
  );
}

/** A MachineSet of one Machine that has it. */
export function machineSet(change?: Change<BuiltMachineSet>): BuiltMachineSet {
  return built(
    {
      apiVersion: API_VERSION,
      kind: 'MachineSet',
      metadata: metaOf('set-1', { labels: LABELS, generation: 1 }),
      spec: { replicas: 1, selector: { matchLabels: { ...LABELS } }, template: template() },
      status: {
        replicas: 1,
        fullyLabeledReplicas: 1,
        readyReplicas: 1,
        availableReplicas: 1,
        observedGeneration: 1,
      },
    },
    change,
  );
}

/** A MachineDeployment of one Machine that has it, rolling one by one. */
export function machineDeployment(change?: Change<BuiltMachineDeployment>): BuiltMachineDeployment {
  return built(
    {
      apiVersion: API_VERSION,
      kind: 'MachineDeployment',
      metadata: metaOf('deployment-1', { generation: 1 }),
      spec: {
        replicas: 1,
        selector: { matchLabels: { ...LABELS } },
        template: template(),
        strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
      },
      status: {
        observedGeneration: 1,
        replicas: 1,
        updatedReplicas: 1,
        readyReplicas: 1,
        availableReplicas: 1,
      },
    },
    change,
  );
}

/** The MachineClass of the Machines that are built here. */
export function machineClass(change?: Change<BuiltMachineClass>): BuiltMachineClass {
  return built(
    {
      apiVersion: API_VERSION,
      kind: 'MachineClass',
      metadata: metaOf('class-1', { generation: 1 }),
      provider: 'sim',
      providerSpec: { size: 'small' },
      secretRef: { name: 'secret-1', namespace: NAMESPACE },
      nodeTemplate: {
        capacity: { cpu: '2', gpu: '0', memory: '8Gi' },
        instanceType: 'small',
        region: 'region-1',
        zone: 'zone-1',
        architecture: 'amd64',
      },
    },
    change,
  );
}

/** The Node of the Machine that is built here: Ready, with room for Pods. */
export function node(change?: Change<BuiltNode>): BuiltNode {
  const capacity = { cpu: '2', memory: '8Gi', pods: '110' };
  return built(
    {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: metaOf('m-1', { namespace: '' }),
      spec: { providerID: 'sim:///m-1' },
      status: {
        capacity,
        allocatable: { ...capacity },
        conditions: [
          {
            type: 'Ready',
            status: 'True',
            reason: 'KubeletReady',
            message: 'kubelet is posting ready status',
            lastHeartbeatTime: CREATED,
            lastTransitionTime: CREATED,
          },
        ],
      },
    },
    change,
  );
}

/** A Pod of a ReplicaSet that runs on the Node that is built here. */
export function pod(change?: Change<BuiltPod>): BuiltPod {
  return built(
    {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: metaOf('pod-1', {
        labels: { app: 'a' },
        ownerReferences: [
          { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'rs-1', uid: 'uid-of-rs-1', controller: true },
        ],
      }),
      spec: { nodeName: 'm-1', containers: [{ name: 'c', image: 'registry.example/c:1' }], priority: 0 },
      status: { phase: 'Running' },
    },
    change,
  );
}

/** The Secret of the class that is built here, with user data. */
export function secret(change?: Change<BuiltSecret>): BuiltSecret {
  const userData = Buffer.from('#cloud-config').toString('base64');
  return built(
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: metaOf('secret-1', {}),
      type: 'Opaque',
      data: { userData },
    },
    change,
  );
}

/** A copy without what only the server sets and without status: what is POSTed to make the object. */
export function forCreation<T extends { metadata: ObjectMeta; status?: unknown }>(
  object: T,
): Omit<T, 'metadata' | 'status'> & { metadata: Omit<ObjectMeta, 'uid' | 'resourceVersion' | 'creationTimestamp'> } {
  const { status: _status, metadata, ...rest } = structuredClone(object);
  const {
    uid: _uid,
    resourceVersion: _version,
    creationTimestamp: _created,
    generation: _generation,
    ...kept
  } = metadata;
  return { ...rest, metadata: kept };
}

function template(): NonNullable<MachineSetSpec['template']> {
  return { metadata: { labels: { ...LABELS } }, spec: { class: { kind: 'MachineClass', name: 'class-1' } } };
}

function metaOf(name: string, more: Partial<ObjectMeta>): BuiltMeta {
  return {
    name,
    namespace: NAMESPACE,
    uid: '',
    resourceVersion: '1',
    creationTimestamp: CREATED,
    annotations: {},
    finalizers: [],
    ...more,
    labels: { ...more.labels },
  };
}

function built<T extends { kind?: string; metadata: BuiltMeta }>(object: T, change: Change<T> | undefined): T {
  change?.(object);
  const { metadata: meta } = object;
  if (meta.uid === '') meta.uid = `uid-of-${object.kind?.toLowerCase()}-${meta.name}`;
  if (meta.namespace === '') delete (meta as Partial<BuiltMeta>).namespace; // cluster-scoped
  return object;
}
