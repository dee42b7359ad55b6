import { createHash } from 'node:crypto';

/** A pod of a ReplicaSet, whose name ends with a hash of the template and a random suffix, both in the alphabet of Kubernetes. */
const POD = /^(?<replicaSet>.+-[bcdfghjklmnpqrstvwxz2456789]{6,10})-[bcdfghjklmnpqrstvwxz2456789]{5}_/;

/**
 * What the replicas of one version have in common, as the value of a label: the ReplicaSet of their pods, which is another one after each change
 * of the Deployment, a restart included, and the version of the program. `identity` begins with the name of the host.
 */
export function revisionOf(identity: string, version: string): string {
  const { replicaSet = '' } = POD.exec(identity)?.groups ?? {};
  return createHash('sha256').update(`${version}/${replicaSet}`).digest('hex').slice(0, 16);
}
