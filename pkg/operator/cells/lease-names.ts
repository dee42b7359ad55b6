const SHARD = /^machinist-shard-(\d+)$/;

/** Name of the Lease of a shard. */
export function shardLeaseName(index: number): string {
  return `machinist-shard-${index}`;
}

/** The shard whose Lease has this name; undefined: it is none. */
export function shardOfLease(name: string): number | undefined {
  const [, index] = SHARD.exec(name) ?? [];
  return index === undefined ? undefined : Number(index);
}

/** Name of the Lease of a target cluster, by the UID of its Namespace kube-system. */
export function targetLeaseName(uid: string): string {
  return `machinist-target-${uid.toLowerCase()}`;
}
