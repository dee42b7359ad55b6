import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineClass } from '../../apis/machine/v1alpha1/machine-class.ts';
import type { MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import type { NodeLabelPolicy } from '../../apis/machine/v1alpha1/node-label-policy.ts';
import { GROUP, VERSION } from '../../apis/machine/v1alpha1/group.ts';
import {
  normaliseMachine,
  normaliseMachineClass,
  normaliseMachineDeployment,
  normaliseMachineSet,
  normaliseNodeLabelPolicy,
} from '../../apis/machine/v1alpha1/normalise.ts';
import type { KubeObject, List } from '../../apis/meta.ts';
import type {
  ConfigMap,
  Event,
  Lease,
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  PodDisruptionBudget,
  Secret,
  VolumeAttachment,
} from '../../apis/wire.ts';
import { resourcesOf, type Resource } from '../../apis/resource.ts';
import { ApiError } from './errors.ts';

const ours = resourcesOf(GROUP, VERSION, { definitions: 'crds' });

export const machines = ours<Machine>('machines', 'Machine', { normalise: normaliseMachine });
export const machineSets = ours<MachineSet>('machinesets', 'MachineSet', { normalise: normaliseMachineSet });
export const machineDeployments = ours<MachineDeployment>('machinedeployments', 'MachineDeployment', {
  normalise: normaliseMachineDeployment,
});
export const machineClasses = ours<MachineClass>('machineclasses', 'MachineClass', {
  normalise: normaliseMachineClass,
});
export const nodeLabelPolicies = ours<NodeLabelPolicy>('nodelabelpolicies', 'NodeLabelPolicy', {
  normalise: normaliseNodeLabelPolicy,
});

const CLUSTER_WIDE = { namespaced: false };
const core = resourcesOf('', 'v1');
const policy = resourcesOf('policy', 'v1');
const storage = resourcesOf('storage.k8s.io', 'v1');
const coordination = resourcesOf('coordination.k8s.io', 'v1');
const rbac = resourcesOf('rbac.authorization.k8s.io', 'v1');
const apiExtensions = resourcesOf('apiextensions.k8s.io', 'v1');
const authorization = resourcesOf('authorization.k8s.io', 'v1');

export const configMaps = core<ConfigMap>('configmaps', 'ConfigMap');
export const secrets = core<Secret>('secrets', 'Secret');
export const events = core<Event>('events', 'Event');
export const namespaces = core('namespaces', 'Namespace', CLUSTER_WIDE);
export const nodes = core<Node>('nodes', 'Node', CLUSTER_WIDE);
export const pods = core<Pod>('pods', 'Pod');
export const persistentVolumes = core<PersistentVolume>('persistentvolumes', 'PersistentVolume', CLUSTER_WIDE);
export const persistentVolumeClaims = core<PersistentVolumeClaim>('persistentvolumeclaims', 'PersistentVolumeClaim');
export const podDisruptionBudgets = policy<PodDisruptionBudget>('poddisruptionbudgets', 'PodDisruptionBudget');
export const volumeAttachments = storage<VolumeAttachment>('volumeattachments', 'VolumeAttachment', CLUSTER_WIDE);
export const leases = coordination<Lease>('leases', 'Lease');
export const roleBindings = rbac('rolebindings', 'RoleBinding');
export const customResourceDefinitions = apiExtensions(
  'customresourcedefinitions',
  'CustomResourceDefinition',
  CLUSTER_WIDE,
);

// Both are asked by POST, and not stored: what we may do, and all that we may do in a namespace.
export const selfSubjectAccessReviews = authorization(
  'selfsubjectaccessreviews',
  'SelfSubjectAccessReview',
  CLUSTER_WIDE,
);
export const selfSubjectRulesReviews = authorization('selfsubjectrulesreviews', 'SelfSubjectRulesReview', CLUSTER_WIDE);

/** The kind of a provider, which is known only while the process runs. */
export function providerResource(where: {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
}): Resource<KubeObject> {
  return resourcesOf(where.group, where.version)(where.plural, where.kind);
}

export function apiVersionOf(r: Resource<KubeObject>): string {
  return r.group === '' ? r.version : `${r.group}/${r.version}`;
}

/** Versions in which a resource is understood, the newest first: `v1beta2 or v1beta1`. */
export function versionsOf(r: Resource<KubeObject>): string {
  return r.older === undefined ? r.version : `${r.version} or ${versionsOf(r.older)}`;
}

/** Name of a kind that is told from those of other groups: `Machine.cluster.k8s.io`; those of the core group have none. */
export function kindOf({ group, kind }: Pick<Resource<KubeObject>, 'group' | 'kind'>): string {
  return group === '' ? kind : `${kind}.${group}`;
}

/** Path of a collection, or of one object, or of its subresource. */
export function pathOf(r: Resource<KubeObject>, namespace?: string, name?: string, subresource?: string): string {
  const root = r.group === '' ? `/api/${r.version}` : `/apis/${r.group}/${r.version}`;
  const scope =
    r.namespaced && namespace !== undefined && namespace !== '' ? `/namespaces/${encodeURIComponent(namespace)}` : '';
  const object = name === undefined ? '' : `/${encodeURIComponent(name)}`;
  return `${root}${scope}/${r.plural}${object}${subresource === undefined ? '' : `/${subresource}`}`;
}

/** What the server has sent, if it is an object. Throws ApiError. */
export function received<T extends KubeObject>({ plural }: Resource<T>, answer: T): T {
  if (!hasText(metadataOf(answer), 'name')) throw nonsense(plural, 'an object');
  return answer;
}

/**
 * What the server has sent, if it is a page of a list. Some write `null` for no items; what has no items, or not the resourceVersion that
 * each list has, says nothing about what there is. Throws ApiError.
 */
export function receivedList<T extends KubeObject>(from: Resource<T>, answer: List<T>): List<T> {
  const items = (answer as { items?: unknown } | null | undefined)?.items;
  const isList = items === null || Array.isArray(items);
  if (!isList || !hasText(metadataOf(answer), 'resourceVersion')) throw nonsense(from.plural, 'a list');
  answer.items ??= [];
  for (const item of answer.items) received(from, item);
  return answer;
}

/** An object as the server has sent it, made what its type says. It may be changed in place. Throws ApiError when it is none. */
export function normalised<T extends KubeObject>(from: Resource<T>, answer: T): T {
  const object = received(from, answer);
  return from.normalise?.(object) ?? object;
}

/** The same for a page of a list. */
export function normalisedList<T extends KubeObject>(from: Resource<T>, answer: List<T>): List<T> {
  const list = receivedList(from, answer);
  for (const item of list.items) from.normalise?.(item);
  return list;
}

/** As if there had been no answer: what answered may have been something before the API server, and a mutation may have happened. */
function nonsense(plural: string, what: string): ApiError {
  return new ApiError(0, 'Unreachable', `the response to a request for ${plural} is not ${what}`);
}

function metadataOf(answer: unknown): unknown {
  return (answer as { metadata?: unknown } | null | undefined)?.metadata;
}

function hasText(members: unknown, name: string): boolean {
  const value = (members as Record<string, unknown> | null | undefined)?.[name];
  return typeof value === 'string' && value !== '';
}
