import type { Clock } from '../../clock/clock.ts';

/** So many machines of a zone that become unhealthy together share a cause. */
export const BURST_MACHINES = 3;

/** What the pace of replacing one machine follows from. */
export interface PaceFacts {
  readonly uid: string;
  /** The MachineDeployment, or the MachineSet without one, and how many of its machines are unhealthy, this one included. */
  readonly pool: { readonly key: string; readonly unhealthy: number };
  /** Its zone, and how many of the zone's machines became unhealthy together with this one, itself included. */
  readonly zone: { readonly name: string; readonly together: number };
  /** How many may be replaced within one health timeout: as many as may be replaced at once. */
  readonly limit: number;
  readonly healthTimeoutMs: number;
}

/**
 * How fast machines are replaced that are unhealthy together. A machine that fails alone is replaced as soon as the limit of
 * replacements allows; of several only as many begin within one health timeout as may be replaced at once, so that an outage
 * which ends by itself costs few machines however long it lasts. Counted for each MachineDeployment, and for a zone of which
 * several machines became unhealthy at the same time.
 *
 * Kept in memory: the health timeouts begin anew with each leadership, so that a successor waits longer anyway.
 */
export class ReplacementPace {
  readonly #clock: Clock;
  /** When (monotonic) the replacement of which machine began, by what it was counted for. */
  readonly #begun = new Map<string, Map<string, number>>();
  #longestMs = 0;

  constructor({ clock }: { readonly clock: Clock }) {
    this.#clock = clock;
  }

  /** Milliseconds until the replacement of this machine may begin; 0: now. One that has begun goes on. */
  waitMs(facts: PaceFacts): number {
    return Math.max(0, ...groupsOf(facts).map((group) => this.#waitIn(group, facts)));
  }

  /** The replacement of this machine begins. */
  begin({ uid, pool, zone, healthTimeoutMs }: PaceFacts): void {
    this.#longestMs = Math.max(this.#longestMs, healthTimeoutMs);
    this.#forgetOld();
    // Counted even while it is the only one: more may follow.
    for (const group of [keyOfPool(pool), keyOfZone(zone)]) {
      const begun = this.#begun.get(group) ?? new Map<string, number>();
      if (!begun.has(uid)) begun.set(uid, this.#clock.monotonicMs());
      this.#begun.set(group, begun);
    }
  }

  #waitIn(group: string, { uid, limit, healthTimeoutMs }: PaceFacts): number {
    const nowMs = this.#clock.monotonicMs();
    const begun = this.#begun.get(group);
    if (begun === undefined || begun.has(uid)) return 0;
    const recent = [...begun.values()].filter((atMs) => nowMs - atMs < healthTimeoutMs).toSorted((a, b) => a - b);
    const decisive = limit > 0 ? recent.at(-limit) : undefined;
    return recent.length < limit || decisive === undefined ? 0 : decisive + healthTimeoutMs - nowMs;
  }

  #forgetOld(): void {
    const nowMs = this.#clock.monotonicMs();
    for (const [group, begun] of this.#begun) {
      for (const [uid, atMs] of begun) if (nowMs - atMs >= this.#longestMs) begun.delete(uid);
      if (begun.size === 0) this.#begun.delete(group);
    }
  }
}

/** Where this machine is one of several. */
function groupsOf({ pool, zone }: PaceFacts): string[] {
  return [
    ...(pool.unhealthy > 1 ? [keyOfPool(pool)] : []),
    ...(zone.together >= BURST_MACHINES ? [keyOfZone(zone)] : []),
  ];
}

function keyOfPool({ key }: PaceFacts['pool']): string {
  return `pool ${key}`;
}

function keyOfZone({ name }: PaceFacts['zone']): string {
  return `zone ${name}`;
}
