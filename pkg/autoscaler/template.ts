import type { ClassNodeTemplate, MachineClass } from '../apis/machine/v1alpha1/machine-class.ts';
import type { MachineDeployment } from '../apis/machine/v1alpha1/machine-deployment.ts';
import { RESERVED_RESOURCES_ANNOTATION } from '../apis/machine/v1alpha1/labels.ts';
import { isQuantity, quantitiesEqual, subtractQuantities } from '../apis/quantity.ts';
import type { AnnouncedTemplate } from '../controllers/announced-template.ts';
import type { TemplateNode } from './node-bytes.ts';

/** What real Nodes of a class were seen to have. */
export interface LearnedShape {
  readonly capacity: Readonly<Record<string, string>>;
  readonly allocatable: Readonly<Record<string, string>>;
  /** Of those that say where a Node is and what it is made of. */
  readonly labels: Readonly<Record<string, string>>;
}

export interface TemplateFacts {
  readonly id: string;
  readonly deployment: MachineDeployment;
  readonly machineClass: MachineClass | undefined;
  readonly learned: LearnedShape | undefined;
  /** For a class that says nothing itself. */
  readonly announced?: AnnouncedTemplate | undefined;
}

/** Why nobody knows what a Node would look like, and what would help. */
export interface NoTemplate {
  readonly reason: string;
}

const ARCH_LABEL = 'kubernetes.io/arch';
const OS_LABEL = 'kubernetes.io/os';
const HOSTNAME_LABEL = 'kubernetes.io/hostname';
export const INSTANCE_TYPE_LABEL = 'node.kubernetes.io/instance-type';

/** Keys of labels that say where a Node is and what it is made of, with their deprecated forms. */
const PLACE_LABELS = {
  architecture: [ARCH_LABEL, 'beta.kubernetes.io/arch'],
  os: [OS_LABEL, 'beta.kubernetes.io/os'],
  instanceType: [INSTANCE_TYPE_LABEL, 'beta.kubernetes.io/instance-type'],
  region: ['topology.kubernetes.io/region', 'failure-domain.beta.kubernetes.io/region'],
  zone: ['topology.kubernetes.io/zone', 'failure-domain.beta.kubernetes.io/zone'],
} as const;

const SHARED_LABELS: ReadonlySet<string> = new Set(Object.values(PLACE_LABELS).flat());
/** Where a Node is, as CSI drivers say it: volumes refer to these labels, such as topology.cinder.csi.openstack.org/zone. */
const VOLUME_TOPOLOGY_LABEL = /^topology\.[^/]+\/(zone|region)$/;

/** Whether all Nodes of a class share this label. */
export function isShared(label: string): boolean {
  return SHARED_LABELS.has(label) || VOLUME_TOPOLOGY_LABEL.test(label);
}

/** Pods that a Node takes unless something else is known: the kubelet's default. */
const DEFAULT_PODS = '110';
const NOTHING: ReadonlyMap<string, string> = new Map();
/** As the class spells GPUs, and as Nodes do. */
export const CLASS_GPU = 'gpu';
const NODE_GPU = 'nvidia.com/gpu';

/**
 * What the next Node of a group will look like. Labels and taints are those that its Machines ask for; resources are what Nodes of the class
 * were seen to have, or else what the class says that they have, or else what its provider announces.
 */
export function templateNode(facts: TemplateFacts): TemplateNode | NoTemplate {
  const { id, deployment, machineClass, learned, announced } = facts;
  const { template } = deployment.spec;
  const ofClass = machineClass?.nodeTemplate ?? announced?.nodeTemplate;
  const reserved = reservedIn(machineClass);
  if (typeof reserved === 'string' && learned === undefined) return { reason: reserved };
  const os = machineClass?.nodeTemplate === undefined ? announced?.os : undefined;
  const said = ofClass && saidBy(ofClass, typeof reserved === 'string' ? NOTHING : reserved, os);
  const resources = learned ?? said;
  if (resources === undefined) return { reason: missing(deployment, machineClass) };

  const { metadata = {}, spec = {} } = template.spec?.nodeTemplate ?? {};
  const name = `${id}-template`;
  const labels: Record<string, string> = {
    ...said?.labels,
    ...(learned && seenLabels(learned, metadata.labels)),
    ...metadata.labels,
    [HOSTNAME_LABEL]: name,
  };
  return {
    name,
    labels,
    annotations: metadata.annotations ?? {},
    taints: (spec.taints ?? []).map(({ key, value, effect }) => ({ key, effect, ...(value ? { value } : {}) })),
    capacity: resources.capacity,
    allocatable: resources.allocatable,
    os: labels[OS_LABEL] ?? 'linux',
    architecture: labels[ARCH_LABEL] ?? 'amd64',
  };
}

/** Labels of the Node that was seen. Where its volumes can be does not count for a group whose Nodes are to be elsewhere. */
function seenLabels({ labels }: LearnedShape, asked: Readonly<Record<string, string>> = {}): Record<string, string> {
  const isElsewhere = [...PLACE_LABELS.zone, ...PLACE_LABELS.region].some(
    (key) => asked[key] !== undefined && labels[key] !== undefined && asked[key] !== labels[key],
  );
  return Object.fromEntries(Object.entries(labels).filter(([key]) => !isElsewhere || SHARED_LABELS.has(key)));
}

export function isTemplate(found: TemplateNode | NoTemplate): found is TemplateNode {
  return !('reason' in found);
}

/** What the class keeps from pods, by resource; a text says what is wrong with it. */
function reservedIn(machineClass: MachineClass | undefined): ReadonlyMap<string, string> | string {
  const text = machineClass?.metadata.annotations?.[RESERVED_RESOURCES_ANNOTATION];
  if (text === undefined) return NOTHING;
  const entries = text.split(',').map((entry) => /^\s*([^=\s]+)=(\S+)\s*$/.exec(entry) ?? []);
  if (entries.every(([, key = '', quantity = '']) => key !== '' && isQuantity(quantity)))
    return new Map(entries.map(([, key = '', quantity = '']) => [key, quantity]));
  return (
    `annotation ${RESERVED_RESOURCES_ANNOTATION} of MachineClass ${machineClass?.metadata.name}: ${JSON.stringify(text)} is not valid, ` +
    'must be resources and quantities such as cpu=80m,memory=1Gi'
  );
}

/** What the class says: nothing when CPU or memory are missing. */
function saidBy(
  ofClass: ClassNodeTemplate,
  reserved: ReadonlyMap<string, string>,
  os = 'linux',
): LearnedShape | undefined {
  const { capacity, virtualCapacity, instanceType, region, zone, architecture } = ofClass;
  const resources: Record<string, string> = { pods: DEFAULT_PODS };
  for (const [key, quantity] of Object.entries({ ...capacity, ...virtualCapacity })) {
    if (!isQuantity(quantity)) continue;
    if (key !== CLASS_GPU) resources[key] = String(quantity);
    else if (!quantitiesEqual(quantity, 0)) resources[NODE_GPU] = String(quantity);
  }
  if (resources['cpu'] === undefined || resources['memory'] === undefined) return undefined;
  const values = { architecture: architecture || 'amd64', os, instanceType, region, zone };
  const labels = Object.entries(PLACE_LABELS).flatMap(([what, keys]) => {
    const value = values[what as keyof typeof values];
    return value ? keys.map((key) => [key, value] as const) : [];
  });
  const allocatable = Object.entries(resources).map(([key, quantity]) => {
    const kept = reserved.get(key);
    return [key, kept === undefined ? quantity : (subtractQuantities(quantity, kept) ?? quantity)] as const;
  });
  return { capacity: resources, allocatable: Object.fromEntries(allocatable), labels: Object.fromEntries(labels) };
}

function missing({ metadata, spec }: MachineDeployment, machineClass: MachineClass | undefined): string {
  const { kind = '', name = '' } = spec.template.spec?.class ?? {};
  if (machineClass === undefined)
    return `${kind || 'MachineClass'} ${name} of MachineDeployment ${metadata.name} does not exist`;
  return (
    `no Node of MachineClass ${name} has been observed yet; to scale from zero, set nodeTemplate.capacity of the class, ` +
    'with cpu and memory'
  );
}
