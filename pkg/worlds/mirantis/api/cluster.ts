import type { KubeObject } from '../../../apis/meta.ts';
import type { ProviderCondition } from './machine.ts';

/** A Cluster as Mirantis Container Cloud has it. What its definition does not know is kept. */
export interface CloudCluster extends KubeObject {
  /** Read member by member: anything may stand below it. */
  spec?: { readonly providerSpec?: { readonly value?: Readonly<Record<string, unknown>> } };
  status?: { readonly providerStatus?: CloudClusterStatus };
}

export interface CloudClusterStatus {
  readonly conditions?: readonly ProviderCondition[];
  /** Whether its rollouts are held, so that its Machines may be taken into maintenance. */
  readonly maintenance?: boolean;
  /** Of others: `current.allowedNodeLabels` says which labels Nodes may be given. */
  readonly releaseRef?: { readonly current?: { readonly allowedNodeLabels?: unknown } };
}
