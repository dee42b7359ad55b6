import type { KubeObject } from '../../../apis/meta.ts';
import type { ProviderCondition } from './machine.ts';

/** Group of what Mirantis Container Cloud added to the API of its Machines. */
export const KAAS_GROUP = 'kaas.mirantis.com';
/** Its only version. */
export const KAAS_VERSION = 'v1alpha1';

/** A number of equal Machines, as Mirantis Container Cloud has it. What its definition does not know is kept. */
export interface MachinePool extends KubeObject {
  /** Read member by member: anything may stand below it. */
  spec?: {
    readonly replicas?: unknown;
    readonly machineSpec?: { readonly providerSpec?: { readonly value?: Readonly<Record<string, unknown>> } };
  };
  status?: PoolStatus;
}

export interface PoolStatus {
  readonly observedGeneration?: number;
  /** Machines that there are. */
  readonly replicas?: number;
  /** Those whose Node is Ready. */
  readonly readyReplicas?: number;
  /** Those that are as the pool asks for. */
  readonly updatedReplicas?: number;
  readonly conditions?: readonly ProviderCondition[];
}
