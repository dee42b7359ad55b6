import { createHash } from 'node:crypto';

import type { Endpoint } from '../../kube/client/endpoint.ts';

/** A pod of a ReplicaSet, whose name ends with a hash of the template and a random suffix, both in the alphabet of Kubernetes. */
const POD = /^(?<replicaSet>.+-[bcdfghjklmnpqrstvwxz2456789]{6,10})-[bcdfghjklmnpqrstvwxz2456789]{5}_/;

/** To an API server. */
type Way = Pick<Endpoint, 'url' | 'way'>;

/**
 * What the replicas of one version have in common, as the value of a label: the ReplicaSet of their pods, which is another one after each change
 * of the Deployment, a restart included, the version of the program, and the way to the target cluster of all
 * cells, if they have one. `identity` begins with the name of the host.
 */
export function revisionOf(identity: string, version: string, target: Way | undefined): string {
  const { replicaSet = '' } = POD.exec(identity)?.groups ?? {};
  return hashOf(target === undefined ? `${version}/${replicaSet}` : `${version}/${replicaSet}/${wayTo(target)}`);
}

/** Which target cluster all cells of a replica have, as the value of a label. */
export function targetServerOf(target: Way | undefined): string {
  return target === undefined ? 'own' : hashOf(wayTo(target));
}

/** Behind one server, a path, a proxy or a server name may lead to another cluster. */
function wayTo({ url, way = url }: Way): string {
  return way;
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}
