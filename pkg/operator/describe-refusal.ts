import type { Cluster } from '../kube/gate/gate.ts';
import type { KubeObject } from '../apis/meta.ts';
import type { ApiError } from '../kube/client/errors.ts';
import { definitionFile } from './preflight/definitions.ts';
import { versionsOf } from '../kube/client/resource.ts';
import type { Resource } from '../apis/resource.ts';
import { describeUnauthorized } from './cannot-start.ts';

/** `machines.cluster.k8s.io`: there are Machines of two groups. */
export function qualified({ group, plural }: Resource<KubeObject>): string {
  return `${plural}.${group === '' ? 'core' : group}`;
}

/** Which cluster refuses to let us read a kind, and what would help. `roleFile`: the shipped file that grants what is read. */
export function describeRefusal(cluster: Cluster, roleFile: string, kind: Resource<KubeObject>, err: ApiError): string {
  if (err.reason === 'NotServed') {
    const file = definitionFile(kind);
    const remedy = file === undefined ? 'is it an API server?' : `apply ${file}`;
    if (kind.older === undefined) return `the ${cluster} cluster does not serve ${qualified(kind)}: ${remedy}`;
    const versions = `${versionsOf(kind)} (${err.message})`;
    return `the ${cluster} cluster does not serve ${qualified(kind)} in ${versions}: ${remedy}, or upgrade the component that serves it`;
  }
  if (err.reason === 'Unauthorized') return describeUnauthorized(cluster, err);
  const file = kind.shipped?.roles ?? roleFile;
  return `missing permissions in the ${cluster} cluster: read ${qualified(kind)}: apply ${file} (${err.message})`;
}
