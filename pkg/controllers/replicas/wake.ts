import { labelMatcher } from '../../apis/label-selector.ts';
import { API_VERSION } from '../../apis/machine/v1alpha1/group.ts';
import { controllerOf, keyBeside, type KubeObject, type LabelSelector } from '../../apis/meta.ts';
import type { Informer } from '../../kube/cache/lister.ts';
import type { Priority } from '../../work/workqueue/queue.ts';

/** The owner that controls `object`, if the cache shows it under that very UID. */
export function cachedOwnerOf<T extends KubeObject>(
  owners: Informer<T>,
  kind: string,
  object: KubeObject | undefined,
): T | undefined {
  const reference = object && controllerOf(object);
  if (object === undefined || reference?.kind !== kind || reference.apiVersion !== API_VERSION) return undefined;
  const owner = owners.get(keyBeside(object, reference.name));
  return owner?.metadata.uid === reference.uid ? owner : undefined;
}

/** The owners beside `object` that could adopt it. */
export function ownersSelecting<T extends KubeObject & { readonly spec: { readonly selector?: LabelSelector } }>(
  owners: Informer<T>,
  object: KubeObject,
): T[] {
  return owners.list().filter(({ metadata, spec: { selector } }) => {
    if (metadata.namespace !== object.metadata.namespace) return false;
    if (Object.keys(selector?.matchLabels ?? {}).length + (selector?.matchExpressions ?? []).length === 0) return false;
    try {
      return labelMatcher(selector)(object.metadata.labels);
    } catch {
      return false; // an invalid selector selects nothing; a condition says so
    }
  });
}

/** The first list must not delay what users do; deletions go first. */
export function priorityFor({ hasSynced }: { readonly hasSynced: boolean }, isDeletion: boolean): Priority {
  return isDeletion ? 'high' : hasSynced ? 'normal' : 'low';
}
