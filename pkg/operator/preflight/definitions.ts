import type { KubeObject } from '../../apis/meta.ts';
import type { Resource } from '../../apis/resource.ts';

/** The shipped file that defines a kind; undefined: Kubernetes itself does, or others. */
export function definitionFile({
  group,
  plural,
  shipped,
}: Pick<Resource<KubeObject>, 'group' | 'plural' | 'shipped'>): string | undefined {
  return shipped?.definitions === undefined ? undefined : `${shipped.definitions}/${group}_${plural}.yaml`;
}
