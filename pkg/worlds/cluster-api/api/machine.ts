import type { KubeObject } from '../../../apis/meta.ts';
import type { ClusterAPICondition } from './condition.ts';
import type { ContractReference } from './contract.ts';
import type { MachineAddress } from './infrastructure.ts';

/** A Machine of Cluster API, as far as it is read or written. What its definition does not know is kept. */
export interface ClusterAPIMachine extends KubeObject {
  spec?: ClusterAPIMachineSpec;
  status?: ClusterAPIMachineStatus;
}

export interface ClusterAPIMachineSpec {
  clusterName?: string;
  bootstrap?: { configRef?: ContractReference; dataSecretName?: string };
  infrastructureRef?: ContractReference;
  version?: string;
  providerID?: string;
  failureDomain?: string;
  minReadySeconds?: number;
  readinessGates?: readonly { conditionType: string; polarity?: 'Positive' | 'Negative' }[];
  deletion?: {
    nodeDrainTimeoutSeconds?: number;
    nodeVolumeDetachTimeoutSeconds?: number;
    nodeDeletionTimeoutSeconds?: number;
  };
  taints?: readonly MachineTaint[];
}

/** A taint that the Node is to have: always, or only when it joins. */
export interface MachineTaint {
  key: string;
  value?: string;
  effect: 'NoSchedule' | 'PreferNoSchedule' | 'NoExecute';
  propagation: 'Always' | 'OnInitialization';
}

export type ClusterAPIPhase = 'Pending' | 'Provisioning' | 'Provisioned' | 'Running' | 'Updating' | 'Deleting';

export interface ClusterAPIMachineStatus {
  conditions?: readonly ClusterAPICondition[];
  initialization?: { infrastructureProvisioned?: boolean; bootstrapDataSecretCreated?: boolean };
  nodeRef?: { name: string };
  nodeInfo?: Readonly<Record<string, unknown>>;
  lastUpdated?: string;
  addresses?: readonly MachineAddress[];
  failureDomain?: string;
  /** Of Machines of control planes. */
  certificatesExpiryDate?: string;
  phase?: ClusterAPIPhase;
  observedGeneration?: number;
  deletion?: {
    nodeDrainStartTime?: string;
    waitForNodeVolumeDetachStartTime?: string;
    waitForPreDrainHookStartTime?: string;
    waitForPreTerminateHookStartTime?: string;
  };
  deprecated?: { v1beta1?: DeprecatedStatus };
}

/** What providers of the older contract read. */
export interface DeprecatedStatus {
  conditions?: readonly DeprecatedCondition[];
  failureReason?: string;
  failureMessage?: string;
}

export interface DeprecatedCondition {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly severity?: 'Error' | 'Warning' | 'Info';
  readonly reason?: string;
  readonly message?: string;
  readonly lastTransitionTime?: string;
}
