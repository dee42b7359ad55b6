import { CLUSTER_API_GROUP, CONTROL_PLANE_LABEL, OWNED_MACHINE_LABELS } from '../api/keys.ts';
import { controllerOf, type KubeObject, type OwnerReference } from '../../../apis/meta.ts';

/** Who owns the object of a provider until its Machine exists. */
const CREATORS = ['MachineSet', 'KubeadmControlPlane'];

/** The references that an object has to have so that a Machine owns it, and nobody else; or who owns it instead. */
export type Adoption =
  | { readonly references: readonly OwnerReference[] }
  | { readonly foreign: Pick<OwnerReference, 'kind' | 'name'> };

/** How a Machine comes to own an object that it names; `apiVersion`: as which Machines are served now. */
export function adoptionOf(object: KubeObject, machine: KubeObject, apiVersion: string): Adoption {
  const { name, uid } = machine.metadata;
  const controller = controllerOf(object);
  const isCreator = controller !== undefined && isOfClusterAPI(controller) && CREATORS.includes(controller.kind);
  if (controller !== undefined && controller.uid !== uid && !isCreator) return { foreign: controller };
  const others = (object.metadata.ownerReferences ?? []).filter(
    (reference) => reference.uid !== uid && !(isOfClusterAPI(reference) && CREATORS.includes(reference.kind)),
  );
  return {
    references: [...others, { apiVersion, kind: 'Machine', name, uid, controller: true, blockOwnerDeletion: true }],
  };
}

/**
 * The references of a Machine that its Cluster takes along; undefined: somebody else does, or it stands there already. `apiVersion`: as which
 * Clusters are served now.
 */
export function ownersOfMachine(
  machine: KubeObject,
  cluster: KubeObject,
  apiVersion: string,
): readonly OwnerReference[] | undefined {
  const { ownerReferences = [], labels = {} } = machine.metadata;
  const isMade = OWNED_MACHINE_LABELS.some((label) => labels[label] !== undefined);
  if (isMade || controllerOf(machine) !== undefined) return undefined;
  return withCluster(ownerReferences, cluster, apiVersion);
}

/** Adds the Cluster to the owners, or brings it up to date; undefined: it stands there already. */
export function withCluster(
  references: readonly OwnerReference[],
  { metadata: { name, uid } }: KubeObject,
  apiVersion: string,
): readonly OwnerReference[] | undefined {
  const known = references.find((reference) => reference.uid === uid);
  if (known?.apiVersion === apiVersion) return undefined;
  // The garbage collector does not find an owner in a version that is not served any more.
  if (known !== undefined) return references.map((one) => (one === known ? { ...one, apiVersion } : one));
  // Of a Cluster of this name that was there before: a Cluster is moved by its name.
  const others = references.filter((one) => !(isOfClusterAPI(one) && one.kind === 'Cluster' && one.name === name));
  return [...others, { apiVersion, kind: 'Cluster', name, uid }];
}

/** Whether a Cluster takes the Machine along when it goes. */
export function isOwnedBy(machine: KubeObject, cluster: KubeObject): boolean {
  return machine.metadata.ownerReferences?.some(({ uid }) => uid === cluster.metadata.uid) === true;
}

export function isOfControlPlane({ metadata }: KubeObject): boolean {
  return metadata.labels?.[CONTROL_PLANE_LABEL] !== undefined;
}

function isOfClusterAPI({ apiVersion }: Pick<OwnerReference, 'apiVersion'>): boolean {
  const group = apiVersion.split('/')[0] ?? '';
  return group === CLUSTER_API_GROUP || group.endsWith(`.${CLUSTER_API_GROUP}`);
}
