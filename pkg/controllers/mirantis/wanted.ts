import { createHash } from 'node:crypto';

import { API_VERSION } from '../../apis/machine/v1alpha1/group.ts';
import {
  DELETION_POLICY_ANNOTATION,
  MACHINE_FINALIZER,
  MADE_FOR_LABEL,
  MAINTENANCE_ANNOTATION,
  PREPARE_DELETION_ANNOTATION,
  UPGRADE_INDEX_ANNOTATION,
} from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineClass } from '../../apis/machine/v1alpha1/machine-class.ts';
import {
  CLUSTER_GROUP,
  CLUSTER_NAME_LABEL,
  CLUSTER_VERSION,
  CONTROL_PLANE_LABEL,
  FLOATING_IP_ANNOTATION,
  POOL_LABEL,
  type ClusterMachine,
} from '../../apis/mirantis/machine.ts';
import type { New } from '../../kube/client.ts';
import { replacing } from '../../kube/merge-change.ts';
import type { MergePatch } from '../../kube/patch.ts';
import type { ClusterSettings } from './cluster-settings.ts';
import type { ProviderValue, WantedServer } from './provider-value.ts';

/** Value of the label of what is made here. */
export const MADE_FOR = 'mirantis';
/** Name of the driver in the classes that are made here. */
export const PROVIDER = 'OpenStack';

const COPIED_LABELS = [CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL, POOL_LABEL];
/** Digits of the hash in the name of a class: two settings never share one in practice. */
const HASH_DIGITS = 16;

/** Name of the Cluster of a Machine, and so of the ConfigMap and the Secret of its settings; empty without one. */
export function clusterNameOf({ metadata }: Pick<ClusterMachine, 'metadata'>): string {
  return metadata.labels?.[CLUSTER_NAME_LABEL] ?? '';
}

/** Whether it is one of the control plane: the label may have any value. */
export function isControlPlane({ metadata }: Pick<ClusterMachine, 'metadata'>): boolean {
  return metadata.labels?.[CONTROL_PLANE_LABEL] !== undefined;
}

/** The MachineClass of a Machine. Its name is the hash of what it says, so that equal Machines share it. */
export function classFor(machine: ClusterMachine, server: WantedServer, settings: ClusterSettings): New<MachineClass> {
  const { namespace = '' } = machine.metadata;
  const content = {
    provider: PROVIDER,
    providerSpec: {
      apiVersion: 'openstack.machine.gardener.cloud/v1alpha1',
      kind: 'MachineProviderConfig',
      spec: providerSpecFor(machine, server, settings),
    },
    secretRef: { name: clusterNameOf(machine), namespace },
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
function providerSpecFor(machine: ClusterMachine, server: WantedServer, settings: ClusterSettings): object {
  const { network, subnetIDs, floatingNetwork } = settings;
  const { namespace = '', annotations = {} } = machine.metadata;
  const address = annotations[FLOATING_IP_ANNOTATION];
  const role = isControlPlane(machine) ? 'control-plane' : 'node';
  return {
    region: settings.region,
    availabilityZone: server.availabilityZone,
    flavorName: server.flavor,
    imageName: server.image,
    keyName: settings.keyName,
    securityGroups: server.securityGroups,
    ...('id' in network ? { networkID: network.id } : { networks: [{ name: network.name, podNetwork: true }] }),
    ...(subnetIDs.length > 0 && { subnetIDs }),
    podNetworkCIDRs: settings.podNetworkCIDRs,
    ...(server.rootDiskSize !== undefined && { rootDiskSize: server.rootDiskSize }),
    ...(floatingNetwork !== undefined && { floatingIP: { ...floatingNetwork, ...(address && { address }) } }),
    // Servers are found by these. Clusters of one name in two namespaces may share a project of the cloud; no namespace has a dot.
    tags: {
      [`kubernetes.io-cluster-${namespace}.${clusterNameOf(machine)}`]: '1',
      [`kubernetes.io-role-${role}`]: '1',
    },
  };
}

/** Our Machine of a Machine. It carries the finalizer from the first moment, as those of MachineSets do. */
export function machineFor(machine: ClusterMachine, value: ProviderValue, className: string): New<Machine> {
  const { name, namespace = '', uid, labels = {} } = machine.metadata;
  const copied = COPIED_LABELS.flatMap((key) => (labels[key] === undefined ? [] : [[key, labels[key]] as const]));
  return {
    apiVersion: API_VERSION,
    kind: 'Machine',
    metadata: {
      name,
      namespace,
      labels: Object.fromEntries(copied),
      annotations: annotationsFor(value),
      finalizers: [MACHINE_FINALIZER],
      ownerReferences: [
        { apiVersion: `${CLUSTER_GROUP}/${CLUSTER_VERSION}`, kind: 'Machine', name, uid, controller: true },
      ],
    },
    spec: {
      class: { kind: 'MachineClass', name: className },
      nodeTemplate: { metadata: { labels: { ...value.nodeLabels } } },
    },
  };
}

/** Every annotation of our Machines that follows from the value: those of the list below that are not here must not be there. */
function annotationsFor({
  maintenance,
  upgradeIndex,
  deletionPolicy,
  delete: isToGo,
}: ProviderValue): Record<string, string> {
  return {
    [DELETION_POLICY_ANNOTATION]: deletionPolicy,
    ...(maintenance && { [MAINTENANCE_ANNOTATION]: 'true' }),
    ...(isToGo && { [PREPARE_DELETION_ANNOTATION]: 'true' }),
    ...(upgradeIndex !== undefined && { [UPGRADE_INDEX_ANNOTATION]: String(upgradeIndex) }),
  };
}

const OWN_ANNOTATIONS = [
  DELETION_POLICY_ANNOTATION,
  MAINTENANCE_ANNOTATION,
  PREPARE_DELETION_ANNOTATION,
  UPGRADE_INDEX_ANNOTATION,
];

/** What has to change of our Machine; undefined: nothing. Of one that is being deleted only the policy still follows. */
export function changeFor(ours: Machine, value: ProviderValue, className: string): MergePatch<Machine> | undefined {
  const isGoing = ours.metadata.deletionTimestamp !== undefined;
  const keys = isGoing ? [DELETION_POLICY_ANNOTATION] : OWN_ANNOTATIONS;
  const picked = (from: Readonly<Record<string, string>> = {}): Record<string, string> =>
    Object.fromEntries(keys.flatMap((key) => (from[key] === undefined ? [] : [[key, from[key]]])));
  const annotations = replacing(picked(ours.metadata.annotations), picked(annotationsFor(value)));
  const labels = isGoing ? {} : replacing(ours.spec.nodeTemplate?.metadata?.labels ?? {}, { ...value.nodeLabels });
  const isOfClass = isGoing || ours.spec.class?.name === className;
  if (isEmpty(annotations) && isEmpty(labels) && isOfClass) return undefined;
  return {
    ...(!isEmpty(annotations) && { metadata: { annotations } }),
    ...((!isEmpty(labels) || !isOfClass) && {
      spec: {
        ...(!isOfClass && { class: { name: className } }),
        ...(!isEmpty(labels) && { nodeTemplate: { metadata: { labels } } }),
      },
    }),
  };
}

function isEmpty(change: object | null): boolean {
  return change === null || Object.keys(change).length === 0;
}

/** Members of the document by those of the class that hold them. */
const FIXED: Readonly<Record<string, string>> = {
  availabilityZone: 'availabilityZone',
  flavorName: 'flavor',
  imageName: 'image',
  securityGroups: 'securityGroups',
  rootDiskSize: 'bootFromVolume',
};

/** Fields that say something else than the class that the server was made by: they cannot change any more. */
export function fixedFieldsChanged(
  server: WantedServer,
  { providerSpec }: Pick<MachineClass, 'providerSpec'>,
): readonly string[] {
  const was = (providerSpec as { readonly spec?: Readonly<Record<string, unknown>> } | undefined)?.spec ?? {};
  const now: Readonly<Record<string, unknown>> = {
    availabilityZone: server.availabilityZone,
    flavorName: server.flavor,
    imageName: server.image,
    securityGroups: server.securityGroups,
    rootDiskSize: server.rootDiskSize,
  };
  return Object.entries(FIXED).flatMap(([member, field]) =>
    JSON.stringify(was[member]) === JSON.stringify(now[member]) ? [] : [field],
  );
}
