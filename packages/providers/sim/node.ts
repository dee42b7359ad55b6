import type { Node, NodeCondition } from '../../../pkg/apis/wire.ts';
import type { New } from '../../../pkg/kube/client/client.ts';
import { nodeNameOf, otherIDOf, type SimVM } from './vm.ts';

/** Whether a Node reports, and what the node lifecycle controller says when it no longer does. */
export type NodeReadiness = 'ready' | 'not-ready' | 'unknown';

const CAPACITY = { cpu: '4', memory: '16Gi', pods: '110', 'ephemeral-storage': '50Gi' };

/** Problems that a kubelet reports beside Ready. */
const PRESSURES = ['MemoryPressure', 'DiskPressure', 'PIDPressure'];

/** Until a cloud controller manager takes it away, no pods are scheduled on a Node that registers with it. */
export const UNINITIALIZED_TAINT = { key: 'node.cloudprovider.kubernetes.io/uninitialized', effect: 'NoSchedule' };

/** Whether a Node, as an API server stores it, still has it. */
export function isUninitialized(node: object): boolean {
  return (node as Node).spec?.taints?.some(({ key }) => key === UNINITIALIZED_TAINT.key) === true;
}

/** How Nodes register. */
export interface Registration {
  /** With provider ids of another form than the driver reports, as some cloud controllers write them. */
  readonly otherIDs: boolean;
  /** With the taint that a cloud controller manager takes away. */
  readonly uninitialized: boolean;
}

/** The Node as which a VM registers. */
export function simNode(vm: SimVM, nowTimestamp: string, { otherIDs, uninitialized }: Registration): New<Node> {
  return {
    metadata: {
      name: nodeNameOf(vm),
      labels: {
        'kubernetes.io/hostname': nodeNameOf(vm),
        'kubernetes.io/arch': 'amd64',
        'kubernetes.io/os': 'linux',
        'node.kubernetes.io/instance-type': vm.size,
        'topology.kubernetes.io/region': 'sim',
        'topology.kubernetes.io/zone': vm.zone,
        ...vm.nodeLabels,
      },
    },
    spec: {
      providerID: otherIDs ? otherIDOf(vm.providerID) : vm.providerID,
      ...(uninitialized && { taints: [UNINITIALIZED_TAINT] }),
    },
    status: {
      capacity: CAPACITY,
      allocatable: CAPACITY,
      addresses: [
        { type: 'InternalIP', address: vm.address },
        { type: 'Hostname', address: nodeNameOf(vm) },
      ],
      conditions: conditionsOf('ready', nowTimestamp),
      nodeInfo: {
        architecture: 'amd64',
        bootID: vm.providerID,
        containerRuntimeVersion: 'sim://1',
        kernelVersion: 'sim',
        kubeProxyVersion: '',
        kubeletVersion: 'v1.36.3',
        machineID: vm.providerID,
        operatingSystem: 'linux',
        osImage: 'sim',
        systemUUID: vm.providerID,
      },
    },
  };
}

/** The conditions of a Node in that state. */
export function conditionsOf(readiness: NodeReadiness, nowTimestamp: string): NodeCondition[] {
  const times = { lastHeartbeatTime: nowTimestamp, lastTransitionTime: nowTimestamp };
  if (readiness === 'unknown') {
    const unknown = { status: 'Unknown', reason: 'NodeStatusUnknown', message: 'Kubelet stopped posting node status.' };
    return [...PRESSURES, 'Ready'].map((type) => ({ type, ...unknown, ...times }));
  }
  const ready =
    readiness === 'ready'
      ? { status: 'True', reason: 'KubeletReady', message: 'kubelet is posting ready status' }
      : { status: 'False', reason: 'KubeletNotReady', message: 'container runtime is down' };
  const pressures = PRESSURES.map((type) => ({
    type,
    status: 'False',
    reason: 'KubeletHasNoProblem',
    message: 'no problem',
  }));
  return [...pressures.map((condition) => ({ ...condition, ...times })), { type: 'Ready', ...ready, ...times }];
}
