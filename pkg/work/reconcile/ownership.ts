import { labelMatcher, type LabelMatcher } from '../../apis/label-selector.ts';
import {
  controllerOf,
  isBeingDeleted,
  type KubeObject,
  type LabelSelector,
  type ObjectMeta,
  type OwnerReference,
} from '../../apis/meta.ts';
import { mergePatchIfUnchanged, type Patch } from '../../kube/client/patch.ts';

/** An owner of objects that it selects by label: a MachineSet of Machines, a MachineDeployment of MachineSets. */
export interface SelectingOwner {
  readonly metadata: ObjectMeta;
  readonly spec: { readonly selector?: LabelSelector };
}

/** claimed: ours. adopt: to become ours. release: to be let go. skip: none of our business. */
export type Claim = 'claimed' | 'adopt' | 'release' | 'skip';

export interface Claims<T> {
  readonly claimed: readonly T[];
  readonly adopt: readonly T[];
  readonly release: readonly T[];
}

/**
 * What `owner` does with `object` of the same namespace:
 *
 * | object                                 | claim                                                  |
 * |----------------------------------------|--------------------------------------------------------|
 * | controlled by another UID              | skip                                                   |
 * | controlled by us, selected             | claimed, also while the owner is being deleted         |
 * | controlled by us, not selected         | release; skip while the owner is being deleted         |
 * | no controller, selected                | adopt; skip while the owner or the object is being     |
 * |                                        | deleted                                                |
 * | no controller, not selected            | skip                                                   |
 *
 * `isSelected` undefined means that the selector is missing or malformed: then nothing is adopted and nothing released.
 */
export function claimOf(owner: SelectingOwner, object: KubeObject, isSelected: LabelMatcher | undefined): Claim {
  const controller = controllerOf(object);
  const selected = isSelected?.(object.metadata.labels);
  if (controller !== undefined) {
    if (controller.uid !== owner.metadata.uid) return 'skip';
    if (selected !== false) return 'claimed';
    return isBeingDeleted(owner) ? 'skip' : 'release';
  }
  return selected === true && !isBeingDeleted(owner) && !isBeingDeleted(object) ? 'adopt' : 'skip';
}

/** Sorts `objects` by what `owner` does with them. Objects of other namespaces are skipped. */
export function sortByClaim<T extends KubeObject>(owner: SelectingOwner, objects: Iterable<T>): Claims<T> {
  const isSelected = usableMatcher(owner.spec.selector);
  const claims = { claimed: [] as T[], adopt: [] as T[], release: [] as T[] };
  for (const object of objects) {
    if (object.metadata.namespace !== owner.metadata.namespace) continue;
    const claim = claimOf(owner, object, isSelected);
    if (claim !== 'skip') claims[claim].push(object);
  }
  return claims;
}

function usableMatcher(selector: LabelSelector | undefined): LabelMatcher | undefined {
  if (selector === undefined) return undefined;
  try {
    return labelMatcher(selector);
  } catch {
    return undefined; // validation reports it on the owner's condition
  }
}

export function controllerReference(owner: SelectingOwner, apiVersion: string, kind: string): OwnerReference {
  const { name, uid } = owner.metadata;
  return { apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: true };
}

/** Makes the owner the first reference, where cluster-autoscalers look for it, and keeps foreign ones behind it. Fails (409) when the object changed meanwhile. */
export function adoptPatch(object: KubeObject, reference: OwnerReference): Patch {
  const others = (object.metadata.ownerReferences ?? []).filter((ref) => ref.uid !== reference.uid);
  return mergePatchIfUnchanged(object, { metadata: { ownerReferences: [reference, ...others] } });
}

/** Takes the references of the owner with this UID away, and only those. Fails (409) when the object changed meanwhile. */
export function releasePatch(object: KubeObject, ownerUID: string): Patch {
  const others = (object.metadata.ownerReferences ?? []).filter((ref) => ref.uid !== ownerUID);
  return mergePatchIfUnchanged(object, { metadata: { ownerReferences: others } });
}
