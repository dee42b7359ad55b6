import type { KubeObject } from '../../../apis/meta.ts';

/** The API of Cluster API before its v1alpha2, which Mirantis Container Cloud kept. */
export const CLUSTER_GROUP = 'cluster.k8s.io';
/** Its only version. */
export const CLUSTER_VERSION = 'v1alpha1';

/** On Machines: whose they are; we look after those of `openstack`. */
export const PROVIDER_LABEL = 'kaas.mirantis.com/provider';
/** On Machines: region of the Cluster; releases since 2.26 have none. */
export const REGION_LABEL = 'kaas.mirantis.com/region';
/** On Machines: the pool that they belong to, if any. */
export const MIRANTIS_POOL_LABEL = 'kaas.mirantis.com/machinepool-name';
export const MIRANTIS_CLUSTER_NAME_LABEL = 'cluster.sigs.k8s.io/cluster-name';
/** On Machines: with any value those of the control plane have it. */
export const MIRANTIS_CONTROL_PLANE_LABEL = 'cluster.sigs.k8s.io/control-plane';
/** On Machines: the floating IP of the server. */
export const FLOATING_IP_ANNOTATION = 'openstack-floating-ip-address';

/** `apiVersion` of `spec.providerSpec.value` and `status.providerStatus`. */
export const PROVIDER_API_VERSION = 'openstackproviderconfig.k8s.io/v1alpha1';

/** A Machine as Mirantis Container Cloud has it. What its definition does not know is kept. */
export interface ClusterMachine extends KubeObject {
  /** Below `value` anything may stand: it is read member by member. */
  spec?: { readonly providerSpec?: { readonly value?: Readonly<Record<string, unknown>> } };
  status?: { readonly providerStatus?: ProviderStatus };
}

export type ProviderState = 'Provision' | 'Uninitialized' | 'Pending' | 'Deploy' | 'Ready' | 'Maintenance';

/** A condition of the provider status, which is none of Kubernetes' usual form. */
export interface ProviderCondition {
  readonly type: string;
  readonly ready: boolean;
  readonly message: string;
}

export interface ProviderStatus {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly conditions?: readonly ProviderCondition[];
  readonly providerInstanceState?: { readonly id: string; readonly ready: boolean; readonly state?: string };
  /** `ram` in GB. */
  readonly hardware?: { readonly cpu: number; readonly ram: number };
  readonly privateIp?: string;
  readonly maintenance?: boolean;
  readonly upgradeIndex?: number;
  readonly status?: ProviderState;
  readonly delete?: boolean;
  readonly prepareDeletionPhase?: string;
}
