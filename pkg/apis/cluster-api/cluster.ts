import type { KubeObject } from '../meta.ts';
import type { Condition } from './condition.ts';
import type { ContractReference } from './contract.ts';
import type { DeprecatedStatus } from './machine.ts';

/** A Cluster of Cluster API, as far as it is read or written. What its definition does not know is kept. */
export interface ClusterAPICluster extends KubeObject {
  spec?: {
    paused?: boolean;
    infrastructureRef?: ContractReference;
    controlPlaneRef?: ContractReference;
    controlPlaneEndpoint?: { host?: string; port?: number };
  };
  status?: ClusterAPIClusterStatus;
}

/** What is known of the Cluster. */
export interface ClusterAPIClusterStatus {
  conditions?: readonly Condition[];
  initialization?: { infrastructureProvisioned?: boolean; controlPlaneInitialized?: boolean };
  failureDomains?: readonly object[];
  phase?: 'Provisioning' | 'Provisioned' | 'Deleting';
  observedGeneration?: number;
  deprecated?: { v1beta1?: DeprecatedStatus };
}
