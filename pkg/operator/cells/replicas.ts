import { CELL_REPLICA_LABEL, CELL_REVISION_LABEL } from '../../apis/machine/v1alpha1/labels.ts';
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
  /** When the API server says that it came. */
  readonly since: string;
}

/** A Lease that nobody has renewed for so long is of a replica that is gone. */
const GONE_MS = 3_600_000;

/**
 * Which replicas live, by Leases that they renew: from when a renewal was first seen here, for the duration of the Lease. Clocks are not
 * compared.
 */
export class Replicas {
  readonly #clock: Clock;
  readonly #observations = new Map<string, Observation & { readonly seenMs: number }>();

  constructor(parts: { readonly clock: Clock; readonly leases: Informer<Lease> }) {
    this.#clock = parts.clock;
    parts.leases.onChange((old, lease) => {
      const { name } = (lease ?? old)?.metadata ?? { name: '' };
      if (lease === undefined) return void this.#observations.delete(name);
      const nowMs = this.#clock.monotonicMs();
      this.#observations.set(name, {
        ...observe(this.#observations.get(name) ?? nothingSeen, lease, nowMs),
        seenMs: nowMs,
      });
    });
  }

  /** Those that live. */
  get live(): readonly Replica[] {
    const nowMs = this.#clock.monotonicMs();
    return [...this.#observations.values()].flatMap(({ lease, heldUntilMs }) =>
      lease !== undefined && nowMs < heldUntilMs ? [replicaOf(lease)] : [],
    );
  }

  /** Leases of replicas that are gone for good. */
  get abandoned(): readonly Lease[] {
    const nowMs = this.#clock.monotonicMs();
    return [...this.#observations.values()].flatMap(({ lease, heldUntilMs, seenMs }) =>
      lease !== undefined && nowMs >= heldUntilMs && nowMs - seenMs >= GONE_MS ? [lease] : [],
    );
  }
}

function replicaOf(lease: Lease): Replica {
  const { labels = {}, creationTimestamp: since } = lease.metadata;
  const { [CELL_REPLICA_LABEL]: shards = '', [CELL_REVISION_LABEL]: revision = '' } = labels;
  return { identity: holderOf(lease), shards, revision, since };
}
