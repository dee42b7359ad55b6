import { createHash } from 'node:crypto';

import { API_VERSION } from '../../../apis/machine/v1alpha1/group.ts';
import {
  DELETION_POLICY_ANNOTATION,
  MACHINE_FINALIZER,
  MADE_FOR_LABEL,
  MAINTENANCE_ANNOTATION,
  PREPARE_DELETION_ANNOTATION,
  UPGRADE_INDEX_ANNOTATION,
} from '../../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { MachineClass } from '../../../apis/machine/v1alpha1/machine-class.ts';
import { controllerOf, type KubeObject, type OwnerReference } from '../../../apis/meta.ts';
import {
  CLUSTER_GROUP,
  MIRANTIS_CLUSTER_NAME_LABEL,
  CLUSTER_VERSION,
  MIRANTIS_CONTROL_PLANE_LABEL,
  FLOATING_IP_ANNOTATION,
  MIRANTIS_POOL_LABEL,
  type ClusterMachine,
} from '../api/machine.ts';
import type { New } from '../../../kube/client/client.ts';
import { isEmptyChange, replacing } from '../../../kube/client/merge-change.ts';
import type { MergePatch } from '../../../kube/client/patch.ts';
import type { ClusterSettings } from './cluster-settings.ts';
import type { ProviderValue, DesiredServer } from './provider-value.ts';
import type { DeletionPolicy } from '../../../controllers/machine-facts/deletion-policy.ts';

/** Value of the label of what is made here. */
export const MADE_FOR = 'mirantis';
/** Name of the driver in the classes that are made here. */
const PROVIDER = 'OpenStack';

/** What the product does without a policy. */
const DEFAULT_POLICY: DeletionPolicy = 'unsafe';
const COPIED_LABELS = [MIRANTIS_CLUSTER_NAME_LABEL, MIRANTIS_CONTROL_PLANE_LABEL, MIRANTIS_POOL_LABEL];
/** Digits of the hash in the name of a class: two settings never share one in practice. */
const HASH_DIGITS = 16;

/** Name of the Cluster of a Machine or pool, and so of the ConfigMap and the Secret of its settings; empty without one. */
export function clusterNameOf({ metadata }: Pick<KubeObject, 'metadata'>): string {
  return metadata.labels?.[MIRANTIS_CLUSTER_NAME_LABEL] ?? '';
}

/** Whether it is one of the control plane: the label may have any value. */
export function isControlPlane({ metadata }: Pick<KubeObject, 'metadata'>): boolean {
  return metadata.labels?.[MIRANTIS_CONTROL_PLANE_LABEL] !== undefined;
}

/** Labels of a Machine or pool that the Machines of ours have too. */
export function copiedLabelsOf({ metadata: { labels = {} } }: Pick<KubeObject, 'metadata'>): Record<string, string> {
  return Object.fromEntries(
    COPIED_LABELS.flatMap((key) => (labels[key] === undefined ? [] : [[key, labels[key]] as const])),
  );
}

/** Whether a Machine was made here, to show one of ours that belongs to a pool. */
export function isOfPool(machine: ClusterMachine): boolean {
  const { apiVersion, kind } = controllerOf(machine) ?? {};
  return apiVersion === API_VERSION && kind === 'Machine';
}

/** Whether `machine` and `ours` are one: the first made the second, or shows it as one of a pool. */
export function areOne(machine: ClusterMachine, ours: Machine): boolean {
  const [owner, owned] = isOfPool(machine) ? [ours, machine] : [machine, ours];
  return controllerOf(owned)?.uid === owner.metadata.uid;
}

/** The MachineClass of a Machine or a pool. Its name is the hash of what it says, so that equal ones share it. */
export function classFor(holder: KubeObject, server: DesiredServer, settings: ClusterSettings): New<MachineClass> {
  const { namespace = '' } = holder.metadata;
  const content = {
    provider: PROVIDER,
    providerSpec: {
      apiVersion: 'openstack.machine.gardener.cloud/v1alpha1',
      kind: 'MachineProviderConfig',
      spec: providerSpecFor(holder, server, settings),
    },
    secretRef: { name: clusterNameOf(holder), namespace },
  };
  const hash = createHash('sha256').update(JSON.stringify(content)).digest('hex').slice(0, HASH_DIGITS);
  return {
    apiVersion: API_VERSION,
    kind: 'MachineClass',
    metadata: { name: `mcc-${hash}`, namespace, labels: { [MADE_FOR_LABEL]: MADE_FOR } },
    ...content,
  };
}

/** The members stand in one order always: they are hashed. */
function providerSpecFor(holder: KubeObject, server: DesiredServer, settings: ClusterSettings): object {
  const { network, subnetIDs, floatingNetwork } = settings;
  const { namespace = '', annotations = {} } = holder.metadata;
  const address = annotations[FLOATING_IP_ANNOTATION];
  const role = isControlPlane(holder) ? 'control-plane' : 'node';
  return {
    region: settings.region,
    availabilityZone: server.availabilityZone,
    flavorName: server.flavor,
    imageName: server.image,
    ...(settings.keyName !== undefined && { keyName: settings.keyName }),
    securityGroups: server.securityGroups,
    ...('id' in network ? { networkID: network.id } : { networks: [{ name: network.name, podNetwork: true }] }),
    ...(subnetIDs.length > 0 && { subnetIDs }),
    ...(settings.podNetworkCIDRs.length > 0 && { podNetworkCIDRs: settings.podNetworkCIDRs }),
    ...(server.rootDiskSize !== undefined && { rootDiskSize: server.rootDiskSize }),
    ...(floatingNetwork !== undefined && { floatingIP: { ...floatingNetwork, ...(address && { address }) } }),
    // Servers are found by these. Clusters of one name in two namespaces may share a project of the cloud; no namespace has a dot.
    tags: {
      [`kubernetes.io-cluster-${namespace}.${clusterNameOf(holder)}`]: '1',
      [`kubernetes.io-role-${role}`]: '1',
    },
  };
}

/** Our Machine of a Machine. It carries the finalizer from the first moment, as those of MachineSets do. */
export function desiredMachine(machine: ClusterMachine, value: ProviderValue, className: string): New<Machine> {
  const { name, namespace = '' } = machine.metadata;
  return {
    apiVersion: API_VERSION,
    kind: 'Machine',
    metadata: {
      name,
      namespace,
      labels: copiedLabelsOf(machine),
      annotations: annotationsFor(value),
      finalizers: [MACHINE_FINALIZER],
      ownerReferences: [ownershipBy(machine)],
    },
    spec: {
      class: { kind: 'MachineClass', name: className },
      nodeTemplate: { metadata: { labels: { ...value.nodeLabels } } },
    },
  };
}

/** By which our Machine belongs to a Machine. */
export function ownershipBy({ metadata: { name, uid } }: ClusterMachine): OwnerReference {
  return { apiVersion: `${CLUSTER_GROUP}/${CLUSTER_VERSION}`, kind: 'Machine', name, uid, controller: true };
}

/** Every annotation of our Machines that follows from the value: those of the list below that are not here must not be there. */
function annotationsFor(value: ProviderValue): Record<string, string> {
  const { maintenance, upgradeIndex, deletionPolicy = DEFAULT_POLICY, delete: isToGo } = value;
  return {
    [DELETION_POLICY_ANNOTATION]: deletionPolicy,
    ...(maintenance && { [MAINTENANCE_ANNOTATION]: 'true' }),
    ...(isToGo && { [PREPARE_DELETION_ANNOTATION]: 'true' }),
    ...(upgradeIndex !== undefined && { [UPGRADE_INDEX_ANNOTATION]: String(upgradeIndex) }),
  };
}

/** Of a Machine of a pool; its deletion policy, its class and its labels are those of the MachineDeployment. */
const OF_POOL = [MAINTENANCE_ANNOTATION, PREPARE_DELETION_ANNOTATION, UPGRADE_INDEX_ANNOTATION];
const OWN_ANNOTATIONS = [DELETION_POLICY_ANNOTATION, ...OF_POOL];

/** What has to change of our Machine; undefined: nothing. Of one that is being deleted only the policy still follows. */
export function changeFor(ours: Machine, value: ProviderValue, className: string): MergePatch<Machine> | undefined {
  const isGoing = ours.metadata.deletionTimestamp !== undefined;
  const annotations = annotationChange(ours, value, isGoing ? [DELETION_POLICY_ANNOTATION] : OWN_ANNOTATIONS);
  const labels = isGoing ? {} : replacing(ours.spec.nodeTemplate?.metadata?.labels ?? {}, { ...value.nodeLabels });
  const isOfClass = isGoing || ours.spec.class?.name === className;
  if (isEmptyChange(annotations) && isEmptyChange(labels) && isOfClass) return undefined;
  return {
    ...(!isEmptyChange(annotations) && { metadata: { annotations } }),
    ...((!isEmptyChange(labels) || !isOfClass) && {
      spec: {
        ...(!isOfClass && { class: { name: className } }),
        ...(!isEmptyChange(labels) && { nodeTemplate: { metadata: { labels } } }),
      },
    }),
  };
}

/** What has to change of our Machine of a pool; undefined: nothing. */
export function changeOfPooled(ours: Machine, value: ProviderValue): MergePatch<Machine> | undefined {
  const annotations = annotationChange(ours, value, ours.metadata.deletionTimestamp === undefined ? OF_POOL : []);
  return isEmptyChange(annotations) ? undefined : { metadata: { annotations } };
}

function annotationChange(
  ours: Machine,
  value: ProviderValue,
  keys: readonly string[],
): MergePatch<Record<string, string>> | null {
  const picked = (from: Readonly<Record<string, string>> = {}): Record<string, string> =>
    Object.fromEntries(keys.flatMap((key) => (from[key] === undefined ? [] : [[key, from[key]]])));
  return replacing(picked(ours.metadata.annotations), picked(annotationsFor(value)));
}

/** Each as a member of the class, as one of the server, and as a field of the document. */
const FIXED = [
  ['availabilityZone', 'availabilityZone', 'availabilityZone'],
  ['flavorName', 'flavor', 'flavor'],
  ['imageName', 'image', 'image'],
  ['securityGroups', 'securityGroups', 'securityGroups'],
  ['rootDiskSize', 'rootDiskSize', 'bootFromVolume'],
] as const;

/** Fields that say something else than the class that the server was made by: they cannot change any more. */
export function fixedFieldsChanged(
  server: DesiredServer,
  { providerSpec }: Pick<MachineClass, 'providerSpec'>,
): readonly string[] {
  const was = (providerSpec as { readonly spec?: Readonly<Record<string, unknown>> } | undefined)?.spec ?? {};
  return FIXED.flatMap(([member, now, field]) =>
    JSON.stringify(was[member]) === JSON.stringify(server[now]) ? [] : [field],
  );
}
