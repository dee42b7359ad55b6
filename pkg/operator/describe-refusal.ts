import type { Cluster } from '../gate/gate.ts';
import { CLUSTER_GROUP } from '../apis/mirantis/machine.ts';
import { KAAS_GROUP } from '../apis/mirantis/pool.ts';
import type { ApiError } from '../kube/errors.ts';
import { definitionFile } from '../preflight/definitions.ts';
import { MIRANTIS_ROLES } from '../preflight/permissions.ts';
import { describeUnauthorized } from './cannot-start.ts';

/** What is read, as far as it can be told by. */
interface Kind {
  readonly group: string;
  readonly plural: string;
}

/** `machines.cluster.k8s.io`: there are Machines of two groups. */
export function qualified({ group, plural }: Kind): string {
  return `${plural}.${group === '' ? 'core' : group}`;
}

/** Which cluster refuses to let us read a kind, and what would help. `roleFile`: the shipped file that grants what is read. */
export function describeRefusal(cluster: Cluster, roleFile: string, kind: Kind, err: ApiError): string {
  if (err.reason === 'NotServed') {
    const file = definitionFile(kind);
    const remedy = file === undefined ? 'is it an API server?' : `apply ${file}`;
    return `the ${cluster} cluster does not serve ${qualified(kind)}: ${remedy}`;
  }
  if (err.reason === 'Unauthorized') return describeUnauthorized(cluster, err);
  const isForeign = kind.group === CLUSTER_GROUP || kind.group === KAAS_GROUP;
  return `the ${cluster} cluster does not let us read ${qualified(kind)}: apply ${isForeign ? MIRANTIS_ROLES : roleFile} (${err.message})`;
}
