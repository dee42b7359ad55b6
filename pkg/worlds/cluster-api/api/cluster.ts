import type { KubeObject } from '../../../apis/meta.ts';
import type { ClusterAPICondition } from './condition.ts';
import type { ContractReference } from './contract.ts';
import type { DeprecatedStatus } from './machine.ts';

/** A Cluster of Cluster API, as far as it is read or written. What its definition does not know is kept. */
export interface ClusterAPICluster extends KubeObject {
  spec?: {
    paused?: boolean;
    infrastructureRef?: ContractReference;
    controlPlaneRef?: ContractReference;
    /** Of which class it is to be made: that is nobody's here. */
    topology?: object;
    controlPlaneEndpoint?: { host?: string; port?: number };
    /** Conditions of others that it has to have to be available. */
    availabilityGates?: readonly { conditionType: string; polarity?: 'Positive' | 'Negative' }[];
  };
  status?: ClusterAPIClusterStatus;
}

export interface ClusterAPIClusterStatus {
  conditions?: readonly ClusterAPICondition[];
  initialization?: { infrastructureProvisioned?: boolean; controlPlaneInitialized?: boolean };
  failureDomains?: readonly object[];
  phase?: 'Pending' | 'Provisioning' | 'Provisioned' | 'Deleting';
  observedGeneration?: number;
  deprecated?: { v1beta1?: DeprecatedStatus };
}
