import { POOL_UIDS_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import type { Lease } from '../../../apis/wire.ts';

/** So many are noted; the oldest are forgotten, and their machines kept until somebody says whose they were. */
const MOST = 50;

/**
 * UIDs of MachinePools that a Lease was renewed for, oldest first. It begins with the UID of the Lease itself: one that was copied, with a
 * backup of another cluster, says nothing about the pools of this one.
 */
export function recordedPoolUIDs({ metadata }: Pick<Lease, 'metadata'>): readonly string[] {
  const [own, ...uids] = metadata.annotations?.[POOL_UIDS_ANNOTATION]?.split(' ') ?? [];
  return own === metadata.uid ? uids : [];
}

/** The value of the annotation when the Lease is renewed for this pool, too; undefined: it has it already. */
export function poolUIDsNote(lease: Pick<Lease, 'metadata'>, uid: string): string | undefined {
  const noted = recordedPoolUIDs(lease);
  if (noted.includes(uid)) return undefined;
  return [lease.metadata.uid, ...[...noted, uid].slice(-MOST)].join(' ');
}

/** UIDs that the MachinePools of this process have had, as their Leases have it. */
export class PoolUIDs {
  readonly #noted = new Map<string, readonly string[]>();

  noted(pool: string, uids: readonly string[]): void {
    this.#noted.set(pool, uids);
  }

  /** All of a pool by name, that of the present one among them. */
  of(pool: string): readonly string[] {
    return this.#noted.get(pool) ?? [];
  }
}
