import type { MachineClass } from '../../../pkg/apis/machine/v1alpha1/machine-class.ts';
import { isQuantity, quantitiesEqual } from '../../../pkg/apis/quantity.ts';
import type { Node } from '../../../pkg/apis/wire.ts';
import type { New } from '../../../pkg/kube/client/client.ts';
import type { StrategicPatch } from '../../../pkg/kube/client/patch.ts';
import type { TaggedVM } from '../../../pkg/drivers/machine-identity.ts';
import type { KwokProviderSpec } from './provider-spec.ts';
import {
  KWOK_CLASS_ANNOTATION,
  KWOK_CLUSTER_ANNOTATION,
  KWOK_MACHINE_UID_ANNOTATION,
  KWOK_NAMESPACE_LABEL,
} from './tags.ts';

/** kwok keeps the Nodes that have it, as its own manifest is configured: `kwok.x-k8s.io/node=fake`. */
const KWOK_ANNOTATION = 'kwok.x-k8s.io/node';

/** Unless class or provider spec say more. */
const CAPACITY = { cpu: '4', memory: '16Gi', pods: '110' };

const FORM = 'kwok:///';

/** A new provider id: never used before, and the Node is found by it. */
export function kwokProviderID(nodeName: string, suffix: string): string {
  return `${FORM}${nodeName}/${suffix}`;
}

/** Name of the Node in a provider id; undefined when it is of another form. */
export function nodeNameIn(providerID: string): string | undefined {
  return providerID.startsWith(FORM) ? providerID.slice(FORM.length).split('/')[0] : undefined;
}

/**
 * The Node that is a VM. It is the only record of it: tags and Node come into being in one request, which the API server
 * accepts once for each name. What a kubelet would report of itself, kwok adds.
 */
export function kwokNode(vm: TaggedVM, machineClass: MachineClass, spec: KwokProviderSpec): New<Node> {
  const { capacity: ofClass = {}, ...template } = machineClass.nodeTemplate ?? {};
  const capacity = { ...CAPACITY, ...capacityOf(ofClass), ...spec.capacity };
  return {
    metadata: {
      name: vm.machineName,
      labels: {
        'kubernetes.io/hostname': vm.machineName,
        'kubernetes.io/os': 'linux',
        ...placeOf(template),
        ...spec.nodeLabels,
        [KWOK_NAMESPACE_LABEL]: vm.namespace,
      },
      annotations: {
        [KWOK_ANNOTATION]: 'fake',
        [KWOK_CLUSTER_ANNOTATION]: vm.cluster,
        [KWOK_CLASS_ANNOTATION]: vm.className,
        ...(vm.machineUID === undefined ? {} : { [KWOK_MACHINE_UID_ANNOTATION]: vm.machineUID }),
      },
    },
    spec: { providerID: vm.providerID },
    status: { capacity, allocatable: capacity },
  };
}

/** GPUs, which the class spells in its own way and sets to 0 where there are none, as Nodes do. */
function capacityOf(ofClass: Readonly<Record<string, string | number>>): Record<string, string> {
  const { gpu = '0', ...rest } = ofClass;
  const all = isQuantity(gpu) && !quantitiesEqual(gpu, 0) ? { ...rest, 'nvidia.com/gpu': gpu } : rest;
  return Object.fromEntries(Object.entries(all).map(([name, quantity]) => [name, String(quantity)]));
}

/** What a cloud says of a Node by labels, as far as the class does. */
function placeOf(template: Partial<NonNullable<MachineClass['nodeTemplate']>>): Record<string, string> {
  const labels = {
    'kubernetes.io/arch': template.architecture ?? 'amd64',
    'node.kubernetes.io/instance-type': template.instanceType ?? '',
    'topology.kubernetes.io/region': template.region ?? '',
    'topology.kubernetes.io/zone': template.zone ?? '',
  };
  return Object.fromEntries(Object.entries(labels).filter(([, value]) => value !== ''));
}

/** The VM that a Node is; undefined for every other Node. A tag that is missing was never there: another tool made it. */
export function vmOf({ metadata, spec }: Node): TaggedVM | undefined {
  const namespace = metadata.labels?.[KWOK_NAMESPACE_LABEL];
  const providerID = spec?.providerID ?? '';
  if (namespace === undefined || nodeNameIn(providerID) !== metadata.name) return undefined;
  const { annotations = {} } = metadata;
  return {
    providerID,
    cluster: annotations[KWOK_CLUSTER_ANNOTATION] ?? '',
    namespace,
    className: annotations[KWOK_CLASS_ANNOTATION] ?? '',
    machineName: metadata.name,
    machineUID: annotations[KWOK_MACHINE_UID_ANNOTATION],
  };
}

/** What makes a VM a mere Node: for one that is deleted and held by a finalizer. */
export const WITHOUT_VM: StrategicPatch<Node> = { metadata: { labels: { [KWOK_NAMESPACE_LABEL]: null } } };
