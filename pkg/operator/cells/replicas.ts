import {
  CELL_REPLICA_LABEL,
  CELL_REVISION_LABEL,
  CELL_TARGET_SERVER_LABEL,
} from '../../apis/machine/v1alpha1/labels.ts';
import type { Lease } from '../../apis/wire.ts';
import type { Clock } from '../../base/clock/clock.ts';
import type { Informer } from '../../kube/cache/lister.ts';
import { holderOf, nothingSeen, observe, type Observation } from '../../kube/leader/lease.ts';

/** A process that manages cells. */
export interface Replica {
  readonly identity: string;
  /** Number of shards by its flags. */
  readonly shards: string;
  /** See revisionOf. */
  readonly revision: string;
  /** See targetServerOf; '' of one that does not tell. */
  readonly target: string;
  /** When the API server says that it came; of a Lease that was deleted and made again, as it said at first. */
  readonly since: string;
}

/** A Lease that nobody has renewed for so long is of a replica that is gone. */
const GONE_MS = 3_600_000;

interface Seen extends Observation {
  readonly lease: Lease;
  readonly since: string;
  readonly firstSeenMs: number;
  readonly seenMs: number;
  readonly isDeleted: boolean;
}

/**
 * Which replicas live, by Leases that they renew: from when a renewal was first seen here, for the duration of the Lease, also if the Lease is
 * deleted meanwhile: whoever lives makes it again, and has not come last by that. Clocks are not compared.
 */
export class Replicas {
  readonly #clock: Clock;
  readonly #observations = new Map<string, Seen>();

  constructor(parts: { readonly clock: Clock; readonly leases: Informer<Lease> }) {
    this.#clock = parts.clock;
    parts.leases.onChange((old, lease) => {
      this.#forgetDeleted();
      const { name } = (lease ?? old)?.metadata ?? { name: '' };
      const before = this.#observations.get(name);
      if (lease === undefined) {
        if (before !== undefined) this.#observations.set(name, { ...before, isDeleted: true });
        return;
      }
      const nowMs = this.#clock.monotonicMs();
      const isSame = before !== undefined && holderOf(before.lease) === holderOf(lease);
      this.#observations.set(name, {
        ...observe(before ?? nothingSeen, lease, nowMs),
        lease,
        since: isSame ? before.since : lease.metadata.creationTimestamp,
        firstSeenMs: before?.firstSeenMs ?? nowMs,
        seenMs: nowMs,
        isDeleted: false,
      });
    });
  }

  /** Those that live. */
  get live(): readonly Replica[] {
    const nowMs = this.#clock.monotonicMs();
    return [...this.#observations.values()].flatMap((seen) => (nowMs < seen.heldUntilMs ? [replicaOf(seen)] : []));
  }

  /** Those that do not live, and may have lived until a moment ago, for all that is known: their Leases were first seen not so long ago. */
  endedWithin(ms: number): readonly Replica[] {
    const nowMs = this.#clock.monotonicMs();
    return [...this.#observations.values()].flatMap((seen) =>
      nowMs >= seen.heldUntilMs && nowMs - seen.firstSeenMs < ms ? [replicaOf(seen)] : [],
    );
  }

  /** Leases of replicas that are gone for good. */
  get abandoned(): readonly Lease[] {
    const nowMs = this.#clock.monotonicMs();
    return [...this.#observations.values()].flatMap(({ lease, heldUntilMs, seenMs, isDeleted }) =>
      !isDeleted && nowMs >= heldUntilMs && nowMs - seenMs >= GONE_MS ? [lease] : [],
    );
  }

  #forgetDeleted(): void {
    const nowMs = this.#clock.monotonicMs();
    for (const [name, { isDeleted, heldUntilMs }] of this.#observations)
      if (isDeleted && nowMs >= heldUntilMs) this.#observations.delete(name);
  }
}

function replicaOf({ lease, since }: Seen): Replica {
  const { labels = {} } = lease.metadata;
  const { [CELL_REPLICA_LABEL]: shards = '', [CELL_REVISION_LABEL]: revision = '' } = labels;
  const { [CELL_TARGET_SERVER_LABEL]: target = '' } = labels;
  return { identity: holderOf(lease), shards, revision, target, since };
}
