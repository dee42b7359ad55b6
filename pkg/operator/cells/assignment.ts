import { createHash } from 'node:crypto';

/**
 * The replica that has to hold a shard, of those that live: the one of the highest weight for it (rendezvous hashing), so that one that
 * comes takes only its share, and one that goes leaves only its own. Undefined: none lives.
 */
export function replicaFor(shard: number, replicas: Iterable<string>): string | undefined {
  let best: { readonly replica: string; readonly weight: string } | undefined;
  for (const replica of replicas) {
    const weight = hashOf(`${shard}/${replica}`);
    if (best === undefined || weight > best.weight) best = { replica, weight };
  }
  return best?.replica;
}

/** The shard of a namespace, of so many. */
export function shardOf(namespace: string, shards: number): number {
  return Number(BigInt(`0x${hashOf(namespace).slice(0, 12)}`) % BigInt(shards));
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
