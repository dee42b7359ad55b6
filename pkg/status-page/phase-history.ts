import { toTimestamp } from '../base/clock/clock.ts';
import type { PhaseSample } from './view.ts';

/** How often Machines are counted. */
export const SAMPLED_EVERY_MS = 15_000;
const KEPT_MS = 3_600_000;

/** How many Machines were in each phase over the last hour of this process. */
export class PhaseHistory {
  readonly #samples: { readonly sample: PhaseSample; readonly atMs: number }[] = [];

  /** Adds what was counted at `nowMs`, and forgets what is older than an hour. */
  add(phases: Readonly<Record<string, number>>, nowMs: number): void {
    this.#samples.push({ sample: { at: toTimestamp(nowMs), phases }, atMs: nowMs });
    // A clock that was set back leaves samples of the future.
    const isKept = ({ atMs }: { atMs: number }): boolean => atMs <= nowMs && nowMs - atMs <= KEPT_MS;
    this.#samples.splice(0, this.#samples.length, ...this.#samples.filter(isKept));
  }

  list(): readonly PhaseSample[] {
    return this.#samples.map(({ sample }) => sample);
  }
}
