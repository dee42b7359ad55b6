import { API_VERSION } from '../../../apis/machine/v1alpha1/group.ts';
import { MADE_FOR_LABEL, PAUSED_BY_FRONT_END_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import type { MachineDeployment } from '../../../apis/machine/v1alpha1/machine-deployment.ts';
import type { AllowedLabel, NodeLabelPolicy } from '../../../apis/machine/v1alpha1/node-label-policy.ts';
import { CLUSTER_GROUP, MIRANTIS_CLUSTER_NAME_LABEL, CLUSTER_VERSION } from '../api/machine.ts';
import type { CloudCluster } from '../api/cluster.ts';
import type { KubeObject } from '../../../apis/meta.ts';
import type { New } from '../../../kube/client/client.ts';
import type { ClusterValue } from './cluster-value.ts';
import { isControlPlane, MADE_FOR } from './desired-machine.ts';

export function policyNameOf({ metadata: { name } }: CloudCluster): string {
  return `mcc-${name}`;
}

/** The NodeLabelPolicy of a Cluster: it concerns the Machines of that Cluster alone, and goes with it. */
export function policyFor(cluster: CloudCluster, allowed: readonly AllowedLabel[]): New<NodeLabelPolicy> {
  const { name, namespace = '', uid } = cluster.metadata;
  return {
    apiVersion: API_VERSION,
    kind: 'NodeLabelPolicy',
    metadata: {
      name: policyNameOf(cluster),
      namespace,
      labels: { [MADE_FOR_LABEL]: MADE_FOR },
      ownerReferences: [
        { apiVersion: `${CLUSTER_GROUP}/${CLUSTER_VERSION}`, kind: 'Cluster', name, uid, controller: true },
      ],
    },
    spec: { machineLabels: { [MIRANTIS_CLUSTER_NAME_LABEL]: name }, allowed },
  };
}

/** Annotation `update-order` of the MachineDeployment of a pool: the control plane first, then the workers. */
export function updateOrderFor(pool: KubeObject, clusterName: string, { dedicatedControlPlane }: ClusterValue): string {
  if (isControlPlane(pool)) return `${clusterName}/0`;
  return dedicatedControlPlane ? `${clusterName}/1/first` : `${clusterName}/1`;
}

/** What has to change of a MachineDeployment so that its rollouts are held, or go on. One that a user has paused stays paused. */
export function pauseChange(
  { metadata, spec }: MachineDeployment,
  isHeld: boolean,
): { readonly annotations: Record<string, string | null>; readonly spec: { readonly paused?: boolean } } {
  const isPausedHere = metadata.annotations?.[PAUSED_BY_FRONT_END_ANNOTATION] !== undefined;
  const isPaused = spec.paused === true;
  if (isHeld && !isPaused) return { annotations: { [PAUSED_BY_FRONT_END_ANNOTATION]: 'true' }, spec: { paused: true } };
  if (isHeld || !isPausedHere) return { annotations: {}, spec: {} };
  return { annotations: { [PAUSED_BY_FRONT_END_ANNOTATION]: null }, spec: { ...(isPaused && { paused: false }) } };
}
