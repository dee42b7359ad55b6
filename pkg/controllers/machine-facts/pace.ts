import type { Clock } from '../../base/clock/clock.ts';
import { BURST_MACHINES } from './zones.ts';

export interface PaceFacts {
  readonly uid: string;
  /**
   * The MachineDeployment, or the MachineSet without one; whether no other of its machines is unwell; and how many may be replaced within
   * one health timeout: as many as may be replaced at once.
   */
  readonly pool: { readonly key: string; readonly isAlone: boolean; readonly limit: number };
  /** Its zone, and how many of the zone's machines became unhealthy together with this one, itself included, up to BURST_MACHINES. */
  readonly zone: { readonly key: string; readonly together: number };
  readonly healthTimeoutMs: number;
}

interface Begun {
  /** Monotonic. */
  readonly atMs: number;
  /** Of its pool. */
  readonly limit: number;
  readonly healthTimeoutMs: number;
}

interface Counted {
  readonly limit: number;
  readonly endMs: number;
}

/**
 * How fast machines are replaced that are unhealthy together, or not well after their updates in place. A machine that fails alone is replaced as soon as the limit of
 * replacements allows; of several only as many begin within one health timeout as may be replaced at once, so that an outage
 * which ends by itself costs few machines however long it lasts.
 *
 * | of                                                         | begin within one health timeout at most                    |
 * |------------------------------------------------------------|------------------------------------------------------------|
 * | a pool of which several machines are unwell                | as many as its limit                                       |
 * | a zone of which several became unhealthy at the same time  | as many as the greatest limit among pools that begin there |
 *
 * The pools of a zone share one cause, and a zone has no limit of its own: what one pool begins counts for all of them, against the
 * greatest of their limits, and never for pools elsewhere. Where health timeouts differ, the shorter one counts.
 *
 * Kept in memory: the health timeouts begin anew with each leadership, so that a successor waits longer anyway.
 */
export class ReplacementPace {
  readonly #clock: Clock;
  /** The replacement of which machine began, by what it was counted for. */
  readonly #begun = new Map<string, Map<string, Begun>>();

  constructor({ clock }: { readonly clock: Clock }) {
    this.#clock = clock;
  }

  /** Milliseconds until the replacement of this machine may begin; 0: now. One that has begun goes on. */
  waitMs(facts: PaceFacts): number {
    const { pool, zone } = facts;
    if (pool.limit === 0) return 0; // nothing is replaced at any pace
    const ofPool = pool.isAlone ? [] : this.#counted(keyOfPool(facts), facts);
    const ofZone = zone.together >= BURST_MACHINES ? this.#counted(keyOfZone(facts), facts) : [];
    const limitOfZone = Math.max(pool.limit, ...ofZone.map(({ limit }) => limit));
    return Math.max(this.#untilFewer(ofPool, pool.limit), this.#untilFewer(ofZone, limitOfZone));
  }

  begin(facts: PaceFacts): void {
    this.#forgetOld();
    const { uid, pool, healthTimeoutMs } = facts;
    // Counted even while it is the only one: more may follow.
    for (const group of [keyOfPool(facts), keyOfZone(facts)]) {
      const begun = this.#begun.get(group) ?? new Map<string, Begun>();
      if (!begun.has(uid)) begun.set(uid, { atMs: this.#clock.monotonicMs(), limit: pool.limit, healthTimeoutMs });
      this.#begun.set(group, begun);
    }
  }

  /** What has begun within one health timeout, in the order in which it ceases to count; nothing for one that has begun itself. */
  #counted(group: string, { uid, healthTimeoutMs }: PaceFacts): readonly Counted[] {
    const begun = this.#begun.get(group);
    if (begun === undefined || begun.has(uid)) return [];
    const nowMs = this.#clock.monotonicMs();
    return [...begun.values()]
      .map((one) => ({ limit: one.limit, endMs: one.atMs + Math.min(one.healthTimeoutMs, healthTimeoutMs) }))
      .filter(({ endMs }) => endMs > nowMs)
      .toSorted((a, b) => a.endMs - b.endMs);
  }

  #untilFewer(counted: readonly Counted[], limit: number): number {
    const decisive = counted.at(-limit);
    return counted.length < limit || decisive === undefined ? 0 : decisive.endMs - this.#clock.monotonicMs();
  }

  #forgetOld(): void {
    const nowMs = this.#clock.monotonicMs();
    for (const [group, begun] of this.#begun) {
      for (const [uid, { atMs, healthTimeoutMs }] of begun) if (nowMs - atMs >= healthTimeoutMs) begun.delete(uid);
      if (begun.size === 0) this.#begun.delete(group);
    }
  }
}

function keyOfPool({ pool }: PaceFacts): string {
  return `pool ${pool.key}`;
}

function keyOfZone({ zone }: PaceFacts): string {
  return `zone ${zone.key}`;
}
