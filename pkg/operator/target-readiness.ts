import { reachPresent } from '../kube/cache/reach-present.ts';
import { untilAborted } from '../base/clock/deadline.ts';
import type { Outages } from '../kube/gate/outages.ts';
import type { Cluster } from '../kube/gate/gate.ts';
import { requeue } from '../work/reconcile/result.ts';
import type { Reconcile } from '../work/reconcile/worker.ts';
import type { Cell } from './cell.ts';
import type { ClusterCaches } from './cluster-caches.ts';
import type { ManagerProcess } from './manager-process.ts';
import { retryUntilDone } from './retry-until-done.ts';

const RECHECK_MS = 5_000;

/**
 * Whether, since this leadership began, the caches of the target cluster have caught up with the present. A target that cannot
 * be reached does not keep a leader from beginning: what needs no target, the deletion of what is deleted by force above all,
 * goes on, and everything else waits here.
 */
export class TargetReadiness {
  readonly #process: ManagerProcess;
  readonly #cell: Cell;
  readonly #lease: string;
  readonly #target: Pick<ClusterCaches, 'cluster' | 'kinds'> | undefined;
  #isReady: boolean;

  /** The work is done under `lease`. Without `target`, which is a cluster of its own, there is nothing to wait for. */
  constructor(process: ManagerProcess, cell: Cell, lease: string, target: ClusterCaches | undefined) {
    this.#process = process;
    this.#cell = cell;
    this.#lease = lease;
    this.#target = target;
    this.#isReady = target === undefined;
  }

  /** Whether decisions may be based on what the caches show of the target. */
  get isReady(): boolean {
    return this.#isReady;
  }

  /**
   * Resolves when the caches have caught up, or the target has an outage; then catching up goes on for as long as it takes, until
   * the signal is aborted, whatever the target answers meanwhile. Rejects with the signal's reason, and with errors of our own.
   */
  async begin(signal: AbortSignal): Promise<void> {
    const { outages, log, firstRead } = this.#cell;
    const { clock } = this.#process.options;
    const target = this.#target;
    if (target === undefined) return;
    const catchingUp = this.#catchUp(target, signal);
    await Promise.race([
      catchingUp,
      untilAborted(untilOutage(outages, target.cluster), signal),
      ...(firstRead?.longestMs === undefined ? [] : [clock.sleep(firstRead.longestMs, signal)]),
    ]);
    if (this.#isReady) return;

    const isAway = outages.state(target.cluster)?.outage !== undefined;
    const left = isAway ? 'only forced deletions are possible' : 'what needs it waits';
    log.warn({ cluster: target.cluster }, `started without the target cluster: ${left}`);
    catchingUp.then(
      () => log.info({ cluster: target.cluster }, 'read the target cluster completely'),
      (err: unknown) => {
        if (!signal.aborted) log.error({ cluster: target.cluster, err }, 'stopped reading the target cluster');
      },
    );
  }

  /** `reconcile`, which for keys that need the target waits until it is ready. */
  holding(reconcile: Reconcile, needsTarget: (key: string) => boolean): Reconcile {
    return (key, signal, log) =>
      this.#isReady || !needsTarget(key)
        ? reconcile(key, signal, log)
        : Promise.resolve(requeue(RECHECK_MS, 'the target cluster to respond'));
  }

  async #catchUp(target: Pick<ClusterCaches, 'cluster' | 'kinds'>, signal: AbortSignal): Promise<void> {
    const { log, held, firstRead } = this.#cell;
    const { random, options } = this.#process;
    const hold = held.hold({ work: this.#lease, waitsFor: 'catch-up', of: target.cluster });
    const how = { clock: options.clock, log, random, hold };
    await retryUntilDone(
      how,
      'reading the target cluster after an outage',
      async (s) => {
        await firstRead?.until(s);
        await reachPresent(target.kinds, s);
      },
      signal,
    );
    this.#isReady = true;
  }
}

/** Resolves when the cluster has an outage; never rejects. */
export function untilOutage(outages: Outages, cluster: Cluster): Promise<void> {
  return new Promise((resolve) => {
    outages.onChange((change) => {
      if (change.cluster === cluster && !change.isOver) resolve();
    });
    if (outages.state(cluster)?.outage !== undefined) resolve();
  });
}
