import { CLUSTER_API_GROUP } from '../apis/cluster-api/keys.ts';
import { COMPUTE_GROUP, NETWORKING_GROUP, STORAGE_GROUP } from '../apis/ironcore/group.ts';
import { GROUP } from '../apis/machine/v1alpha1/group.ts';
import { CLUSTER_GROUP } from '../apis/mirantis/machine.ts';
import { KAAS_GROUP } from '../apis/mirantis/pool.ts';

/** Where definitions of kinds are, by group. */
const FOLDERS: ReadonlyMap<string, string> = new Map([
  [GROUP, 'crds'],
  [CLUSTER_GROUP, 'crds/mirantis'],
  [KAAS_GROUP, 'crds/mirantis'],
  [CLUSTER_API_GROUP, 'crds/cluster-api'],
  [COMPUTE_GROUP, 'crds/ironcore'],
  [STORAGE_GROUP, 'crds/ironcore'],
  [NETWORKING_GROUP, 'crds/ironcore'],
]);

/** The shipped file that defines a kind; undefined: Kubernetes itself does. */
export function definitionFile({
  group,
  plural,
}: {
  readonly group: string;
  readonly plural: string;
}): string | undefined {
  const folder = FOLDERS.get(group);
  return folder === undefined ? undefined : `${folder}/${group}_${plural}.yaml`;
}
