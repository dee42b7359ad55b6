import type { Clock } from '../../base/clock/clock.ts';
import type { GateMetrics } from '../../base/metrics/gate.ts';
import type { Fence } from './fence.ts';
import type { Outages } from './outages.ts';
import { CONTROL, GateClosedError } from './gate.ts';
import type { Admission, Cluster, Gate, GateClosedReason, Intent } from './gate.ts';
import { coveredMs } from './blind-times.ts';

/** For how long what we see has been trustworthy; verdicts on machines (health timeout) wait for it. */
export interface Trust {
  /**
   * Milliseconds since leadership began or the last outage of one of `clusters`, whichever is later; 0 when not leading,
   * while one of them has an outage, and for an unknown one. Health clocks start no earlier than this.
   */
  trustedForMs(clusters: readonly Cluster[]): number;
  /** How much of the time since `sinceMs` (monotonic) went by in which changes of one of `clusters` could not be seen. */
  blindMs(clusters: readonly Cluster[], sinceMs: number): number;
  /** What is left of `--machine-safety-grace`; no machine becomes Failed before it is 0. */
  graceLeftMs(clusters: readonly Cluster[]): number;
}

export interface LeaderGateDeps {
  readonly clock: Clock;
  readonly fence: Fence;
  /** Shared by all leaderships of the process. */
  readonly outages: Outages;
  readonly metrics: GateMetrics;
  /** `--machine-safety-grace`. */
  readonly graceMs: number;
}

/**
 * The gate of one leadership: its own fence, and the outages of all clusters. Whatever is to pass waits while it is in doubt whether
 * a cluster goes on where it was, and is refused when that lasts. Whatever cluster is changed, that is for what the control cluster says:
 * it is always concerned.
 *
 * | intent         | fence | during outage  | proof of life                              |
 * |----------------|-------|----------------|--------------------------------------------|
 * | report         | open  | passes         | not asked                                  |
 * | create, change | open  | refused        | not asked                                  |
 * | destroy        | open  | refused        | younger than the statuscheck timeout, or a |
 * |                |       |                | good probe now; none after a failed probe; |
 * |                |       |                | and etcd has the last changes that we know |
 */
export class LeaderGate implements Gate, Trust {
  readonly #deps: LeaderGateDeps;

  constructor(deps: LeaderGateDeps) {
    this.#deps = deps;
  }

  async admit(intent: Intent, concerned: readonly Cluster[], signal: AbortSignal): Promise<Admission> {
    const { fence } = this.#deps;
    const clusters = [...new Set([CONTROL, ...concerned])];
    this.#requireOpenFence(intent);
    if (intent !== 'report') {
      this.#requireNoOutage(intent, clusters);
      await this.#requireSettled(intent, clusters, signal);
      this.#requireOpenFence(intent);
      this.#requireNoOutage(intent, clusters);
    }
    if (intent === 'destroy') {
      await this.#requireProof(clusters, signal);
      // A probe takes time: leadership may have ended meanwhile, an outage may have begun.
      this.#requireOpenFence(intent);
      this.#requireNoOutage(intent, clusters);
    }
    const { openSinceMs: admittedSinceMs = -Infinity } = fence;
    // Renewed, it is still the same; opened anew, somebody else may have led in between.
    const leftMs = (): number => ((fence.openSinceMs ?? Infinity) <= admittedSinceMs ? fence.remainingMs : 0);
    return { remainingMs: fence.remainingMs, fencingToken: fence.token, leftMs };
  }

  trustedForMs(clusters: readonly Cluster[]): number {
    const { clock, fence, outages } = this.#deps;
    let sinceMs = fence.openSinceMs;
    if (sinceMs === undefined) return 0;
    for (const cluster of clusters) {
      const state = outages.state(cluster);
      if (state === undefined || state.outage !== undefined) return 0;
      sinceMs = Math.max(sinceMs, state.recoveredMs ?? sinceMs);
    }
    return clock.monotonicMs() - sinceMs;
  }

  blindMs(clusters: readonly Cluster[], sinceMs: number): number {
    const { clock, outages } = this.#deps;
    const lost = clusters.flatMap((cluster) => outages.timesWithoutSight(cluster));
    return coveredMs(lost, { fromMs: sinceMs, toMs: clock.monotonicMs() });
  }

  graceLeftMs(clusters: readonly Cluster[]): number {
    return Math.max(0, this.#deps.graceMs - this.trustedForMs(clusters));
  }

  #requireOpenFence(intent: Intent): void {
    if (this.#deps.fence.remainingMs > 0) return;
    this.#refuse(intent, 'fenced', undefined, 'leadership may have been lost');
  }

  #requireNoOutage(intent: Intent, clusters: readonly Cluster[]): void {
    for (const cluster of clusters) {
      const state = this.#deps.outages.state(cluster);
      if (state === undefined) this.#refuse(intent, 'unproven', cluster, `cluster ${cluster} is not probed`);
      else if (state.outage !== undefined)
        this.#refuse(intent, 'outage', cluster, `cluster ${cluster} could not be reached`);
    }
  }

  async #requireSettled(intent: Intent, clusters: readonly Cluster[], signal: AbortSignal): Promise<void> {
    const settled = await Promise.all(clusters.map((cluster) => this.#deps.outages.settled(cluster, signal)));
    const doubted = clusters.find((_cluster, i) => settled[i] !== true);
    if (doubted !== undefined) {
      this.#refuse(
        intent,
        'unproven',
        doubted,
        `a watch on cluster ${doubted} broke, and it is not yet known whether the cluster is reachable`,
      );
    }
  }

  async #requireProof(clusters: readonly Cluster[], signal: AbortSignal): Promise<void> {
    const { outages } = this.#deps;
    const proofs = await Promise.all(clusters.map((cluster) => outages.prove(cluster, signal)));
    const unproven = clusters.find((_cluster, i) => proofs[i] !== true);
    if (unproven !== undefined) {
      this.#refuse(
        'destroy',
        'unproven',
        unproven,
        `cluster ${unproven} has not responded recently, or its state is not confirmed`,
      );
    }
  }

  #refuse(intent: Intent, reason: GateClosedReason, cluster: Cluster | undefined, message: string): never {
    this.#deps.metrics.refusals.inc({ intent, reason });
    throw new GateClosedError(reason, cluster, message);
  }
}
