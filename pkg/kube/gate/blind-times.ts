/** A time, monotonic. */
export interface Interval {
  readonly fromMs: number;
  readonly toMs: number;
}

/** So many intervals are remembered; the oldest are forgotten first. */
const MAX_REMEMBERED = 256;
/** Shorter ones change no verdict. */
const SHORTEST_MS = 1_000;

/** When changes of one cluster could not be seen: its API server did not answer, or a watch had stalled or broken. Kept in memory only. */
export class BlindTimes {
  #lost: readonly Interval[] = [];

  /** What happened in this time was only seen afterwards. */
  wasLost(interval: Interval): void {
    if (interval.toMs - interval.fromMs >= SHORTEST_MS) this.#lost = [...this.#lost, interval].slice(-MAX_REMEMBERED);
  }

  get lost(): readonly Interval[] {
    return this.#lost;
  }
}

/** How much of `within` the intervals cover together; where several cover the same time, it counts once. */
export function coveredMs(intervals: readonly Interval[], within: Interval): number {
  let coveredToMs = within.fromMs;
  let sum = 0;
  for (const { fromMs, toMs } of intervals.toSorted((a, b) => a.fromMs - b.fromMs)) {
    const beginMs = Math.max(fromMs, coveredToMs);
    const endMs = Math.min(toMs, within.toMs);
    if (endMs <= beginMs) continue;
    sum += endMs - beginMs;
    coveredToMs = endMs;
  }
  return sum;
}
