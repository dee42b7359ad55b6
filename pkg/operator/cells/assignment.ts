import { createHash } from 'node:crypto';

import type { Replica } from './replicas.ts';

/**
 * The replica that has to hold a shard, of those that live: the one of the highest weight for it (rendezvous hashing), so that one that
 * comes takes only its share, and one that goes leaves only its own. Undefined: none lives.
 */
export function replicaFor(shard: number, replicas: Iterable<string>): string | undefined {
  return winnerOf(`${shard}`, replicas);
}

/** The namespace that acts on a Node which no Machine has, of the cells that have one target. Undefined: there are none. */
export function judgeOf(nodeName: string, cells: Iterable<string>): string | undefined {
  return winnerOf(nodeName, cells);
}

function winnerOf(what: string, candidates: Iterable<string>): string | undefined {
  let best: { readonly candidate: string; readonly weight: string } | undefined;
  for (const candidate of candidates) {
    const weight = hashOf(`${what}/${candidate}`);
    if (best === undefined || weight > best.weight) best = { candidate, weight };
  }
  return best?.candidate;
}

/** A replica that lives, see Replica. */
type Candidate = Pick<Replica, 'identity' | 'revision' | 'since'>;

/**
 * Those that apply for shards: all, or, while there are several revisions, those of the one to which the last that came belongs. So what the
 * former revision leaves in an upgrade goes to the one that stays, and is divided anew once no other is left: each shard moves once or twice.
 */
export function applicantsAmong(live: readonly Candidate[]): readonly string[] {
  const [newest] = live.toSorted((a, b) =>
    a.since === b.since ? order(b.identity, a.identity) : order(b.since, a.since),
  );
  return live.filter(({ revision }) => revision === newest?.revision).map(({ identity }) => identity);
}

/**
 * A replica that divides the namespaces otherwise, and that has come before another one or in the same second: while it lives, that one takes no
 * shard.
 */
export function inTheWayOf<T extends Pick<Replica, 'shards' | 'since'>>(
  { shards, since }: Pick<Replica, 'shards' | 'since'>,
  live: readonly T[],
): T | undefined {
  return live.find((other) => other.shards !== shards && other.since <= since);
}

/** Whether replicas of several revisions live, as in an upgrade. */
export function isMixed(live: readonly Pick<Candidate, 'revision'>[]): boolean {
  return new Set(live.map(({ revision }) => revision)).size > 1;
}

/** The shard of a namespace, of so many. */
export function shardOf(namespace: string, shards: number): number {
  return Number(BigInt(`0x${hashOf(namespace).slice(0, 12)}`) % BigInt(shards));
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function order(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
