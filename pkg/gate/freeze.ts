import type { Clock } from '../clock/clock.ts';
import type { Logger } from '../log/logger.ts';
import type { GateMetrics } from '../metrics/gate.ts';
import { ClusterFreeze, type ClusterState, type ProbedCluster } from './cluster-freeze.ts';
import type { Cluster } from './gate.ts';
import type { FreezeChange, Outage } from './outage.ts';
import type { Interval } from './sight.ts';

/** Told after a cluster froze or unfroze. */
export type FreezeListener = (change: FreezeChange) => void;

/**
 * The freeze states of all clusters, shared by every leadership of the process. Each process probes for itself, leader or
 * not, from the moment a cluster is added. Nothing is persisted: after a restart a destroy needs a new proof of life, and a
 * cluster that does not answer the first probe is frozen at once.
 */
export class Freezes {
  readonly #parts: {
    readonly clock: Clock;
    readonly log: Logger;
    readonly metrics: GateMetrics;
    readonly periodMs: number;
    readonly timeoutMs: number;
  };
  readonly #clusters = new Map<Cluster, ClusterFreeze>();
  readonly #listeners: FreezeListener[] = [];

  /** `periodMs` and `timeoutMs` are `--machine-safety-apiserver-statuscheck-period` and `-timeout`. */
  constructor(parts: { clock: Clock; log: Logger; metrics: GateMetrics; periodMs: number; timeoutMs: number }) {
    this.#parts = parts;
    parts.metrics.controllerFrozen.set(0);
  }

  /** Starts to probe a cluster. Throws when it is probed already. */
  add(probed: ProbedCluster): void {
    const { cluster } = probed;
    if (this.#clusters.has(cluster)) throw new Error(`cluster ${cluster} is probed already`);
    const changed: FreezeListener = (change) => {
      this.#showFrozen();
      for (const listener of this.#listeners) listener(change);
    };
    const freeze = new ClusterFreeze(probed, { ...this.#parts, changed });
    this.#clusters.set(cluster, freeze);
    freeze.start();
  }

  /** Stops to probe a cluster; what concerns it is refused from now on. */
  async remove(cluster: Cluster): Promise<void> {
    const freeze = this.#clusters.get(cluster);
    this.#clusters.delete(cluster);
    this.#parts.metrics.frozen.remove({ cluster });
    this.#parts.metrics.frozenSince.remove({ cluster });
    this.#parts.metrics.setBacks.remove({ cluster });
    this.#showFrozen();
    await freeze?.stop();
  }

  /** Ends all probing. */
  async stop(): Promise<void> {
    await Promise.all([...this.#clusters.values()].map((freeze) => freeze.stop()));
  }

  /** Adds a listener for freezes and unfreezes. */
  onChange(listener: FreezeListener): void {
    this.#listeners.push(listener);
  }

  /** A watch event or bookmark of `cluster` arrived. */
  sawLife(cluster: Cluster): void {
    this.#clusters.get(cluster)?.sawLife();
  }

  /** Whether `cluster` lives, and its history is what we know: see ClusterFreeze. False for an unknown one. */
  async prove(cluster: Cluster, signal: AbortSignal): Promise<boolean> {
    return (await this.#clusters.get(cluster)?.prove(signal)) ?? false;
  }

  /** Whether nothing is in doubt about `cluster`; waits a little for it. False for an unknown one. */
  async settled(cluster: Cluster, signal: AbortSignal): Promise<boolean> {
    return (await this.#clusters.get(cluster)?.settled(signal)) ?? false;
  }

  /** Changes of `cluster` could not be seen in this time (monotonic). */
  wasBlind(cluster: Cluster, interval: Interval): void {
    this.#clusters.get(cluster)?.sight.wasLost(interval);
  }

  /** The times (monotonic) in which changes of `cluster` could not be seen; an outage that lasts counts up to now. */
  timesWithoutSight(cluster: Cluster): readonly Interval[] {
    const freeze = this.#clusters.get(cluster);
    if (freeze === undefined) return [];
    const { silentSinceMs } = freeze.state;
    const toMs = this.#parts.clock.monotonicMs();
    return silentSinceMs === undefined ? freeze.sight.lost : [...freeze.sight.lost, { fromMs: silentSinceMs, toMs }];
  }

  /** State of one cluster; undefined when it is not probed. */
  state(cluster: Cluster): ClusterState | undefined {
    return this.#clusters.get(cluster)?.state;
  }

  /** States of all clusters, in the order in which they were added. */
  states(): readonly ClusterState[] {
    return [...this.#clusters.values()].map((freeze) => freeze.state);
  }

  /** Clusters that are frozen now, in the order in which they were added. */
  outages(): readonly Outage[] {
    return this.states().flatMap(({ outage }) => outage ?? []);
  }

  #showFrozen(): void {
    this.#parts.metrics.controllerFrozen.set(this.states().some((state) => state.frozen) ? 1 : 0);
  }
}
