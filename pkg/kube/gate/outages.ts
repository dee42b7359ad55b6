import { OutageDetector, type ClusterState, type ProbedCluster, type OutageDetectorDeps } from './outage-detector.ts';
import type { Cluster } from './gate.ts';
import { OUTAGE_REASONS, type OutageChange, type Outage } from './outage.ts';
import type { Interval } from './blind-times.ts';

/** Called when an outage begins, is better understood, or ends. */
export type OutageChangeListener = (change: OutageChange) => void;

/** How clusters are probed; `periodMs` and `timeoutMs` are `--machine-safety-apiserver-statuscheck-period` and `-timeout`. */
export interface OutagesOptions extends Omit<OutageDetectorDeps, 'changed'> {
  /** Clusters that others probe, too: their outages are these, and are reported here as well. */
  readonly shared?: Outages | undefined;
}

/**
 * Which clusters have an outage, shared by every leadership of the process. Each process probes for itself, leader or
 * not, from the moment a cluster is added. Nothing is persisted: after a restart a destroy needs a new proof of life, and a
 * cluster that does not answer the first probe has an outage at once.
 */
export class Outages {
  readonly #parts: OutagesOptions;
  readonly #clusters = new Map<Cluster, OutageDetector>();
  /** Those that not all work depends on. */
  readonly #apart = new Set<Cluster>();
  readonly #listeners = new Set<OutageChangeListener>();
  readonly #leaveShared: (() => void) | undefined;

  constructor(parts: OutagesOptions) {
    this.#parts = parts;
    this.#leaveShared = parts.shared?.onChange((change) => this.#changed(change));
    this.#showOutages();
  }

  /**
   * Starts to probe a cluster. One with a listener of its own stands apart: what concerns it is refused during its outages, and that is all; it
   * is neither reported nor shown with those that all work depends on. Throws when it is probed already.
   */
  add(probed: ProbedCluster, apart?: OutageChangeListener): void {
    const { cluster } = probed;
    if (this.#detector(cluster) !== undefined) throw new Error(`cluster ${cluster} is already probed`);
    if (apart !== undefined) this.#apart.add(cluster);
    const changed = apart ?? ((change: OutageChange) => this.#changed(change));
    const detector = new OutageDetector(probed, { ...this.#parts, changed });
    this.#clusters.set(cluster, detector);
    detector.start();
  }

  /** Stops to probe a cluster; what concerns it is refused from now on. */
  async remove(cluster: Cluster): Promise<void> {
    const detector = this.#clusters.get(cluster);
    this.#clusters.delete(cluster);
    this.#apart.delete(cluster);
    for (const result of ['up', 'down']) this.#parts.metrics.probes.remove({ cluster, result });
    this.#parts.metrics.outage.remove({ cluster });
    this.#parts.metrics.outageSince.remove({ cluster });
    for (const reason of OUTAGE_REASONS) this.#parts.metrics.outageReason.remove({ cluster, reason });
    this.#parts.metrics.setBacks.remove({ cluster });
    this.#showOutages();
    await detector?.stop();
  }

  /** Ends all probing of its own. */
  async stop(): Promise<void> {
    this.#leaveShared?.();
    await Promise.all([...this.#clusters.values()].map((detector) => detector.stop()));
  }

  /** Adds a listener for the beginning and end of outages, until the returned function is called. */
  onChange(listener: OutageChangeListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  sawLife(cluster: Cluster): void {
    this.#detector(cluster)?.sawLife();
  }

  /** Whether `cluster` lives, and its history is what we know: see OutageDetector. False for an unknown one. */
  async prove(cluster: Cluster, signal: AbortSignal): Promise<boolean> {
    return (await this.#detector(cluster)?.prove(signal)) ?? false;
  }

  /** Whether nothing is in doubt about `cluster`; waits a little for it. False for an unknown one. */
  async settled(cluster: Cluster, signal: AbortSignal): Promise<boolean> {
    return (await this.#detector(cluster)?.settled(signal)) ?? false;
  }

  /** Changes of `cluster` could not be seen in this time (monotonic). */
  wasBlind(cluster: Cluster, interval: Interval): void {
    this.#detector(cluster)?.sight.wasLost(interval);
  }

  /** The times (monotonic) in which changes of `cluster` could not be seen; an outage that lasts counts up to now. */
  timesWithoutSight(cluster: Cluster): readonly Interval[] {
    const detector = this.#detector(cluster);
    if (detector === undefined) return [];
    const { silentSinceMs } = detector.state;
    const toMs = this.#parts.clock.monotonicMs();
    return silentSinceMs === undefined
      ? detector.sight.lost
      : [...detector.sight.lost, { fromMs: silentSinceMs, toMs }];
  }

  /** State of one cluster; undefined when it is not probed. */
  state(cluster: Cluster): ClusterState | undefined {
    return this.#detector(cluster)?.state;
  }

  /** States of all clusters but those that stand apart: those that are shared, then in the order in which they were added. */
  states(): readonly ClusterState[] {
    const own = [...this.#clusters.values()].map((detector) => detector.state);
    return [...(this.#parts.shared?.states() ?? []), ...own.filter(({ cluster }) => !this.#apart.has(cluster))];
  }

  /** The outages of this moment, in the order in which they were added. */
  current(): readonly Outage[] {
    return this.states().flatMap(({ outage }) => outage ?? []);
  }

  #detector(cluster: Cluster): OutageDetector | undefined {
    const { shared } = this.#parts;
    return this.#clusters.get(cluster) ?? (shared === undefined ? undefined : shared.#detector(cluster));
  }

  #changed(change: OutageChange): void {
    this.#showOutages();
    for (const listener of this.#listeners) listener(change);
  }

  #showOutages(): void {
    this.#parts.metrics.anyOutage.set(this.states().some((state) => state.outage !== undefined) ? 1 : 0);
  }
}
