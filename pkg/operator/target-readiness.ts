import { reachPresent } from '../kube/cache/reach-present.ts';
import type { Clock } from '../base/clock/clock.ts';
import { untilAborted } from '../base/clock/deadline.ts';
import type { Outages } from '../kube/gate/outages.ts';
import type { Cluster } from '../kube/gate/gate.ts';
import type { HeldWork } from '../health/held-work.ts';
import type { Logger } from '../base/log/logger.ts';
import { requeue } from '../work/reconcile/result.ts';
import type { Reconcile } from '../work/reconcile/worker.ts';
import type { ClusterCaches } from './cluster-caches.ts';
import { retryUntilDone } from './retry-until-done.ts';
import type { Random } from '../base/random/random.ts';

/** What the readiness of a target is found out with. */
export interface TargetReadinessOptions {
  readonly clock: Clock;
  readonly random?: Random | undefined;
  readonly log: Logger;
  readonly outages: Outages;
  readonly held: HeldWork;
  /** Name of the Lease under which the work is done. */
  readonly work: string;
  /** The caches of a target cluster that is not the control cluster; undefined: there is nothing to wait for. */
  readonly target: Pick<ClusterCaches, 'cluster' | 'kinds'> | undefined;
  /** Where nobody has waited for its first lists before the work begins. */
  readonly firstRead?:
    | {
        /** Resolves when all are there; rejects with the signal's reason. */
        readonly until: (signal: AbortSignal) => Promise<void>;
        /** How long the work waits for them at most, whatever is wrong; without it until the target has an outage. */
        readonly longestMs?: number;
      }
    | undefined;
}

const RECHECK_MS = 5_000;

/**
 * Whether, since this leadership began, the caches of the target cluster have caught up with the present. A target that cannot
 * be reached does not keep a leader from beginning: what needs no target, the deletion of what is deleted by force above all,
 * goes on, and everything else waits here.
 */
export class TargetReadiness {
  readonly #options: TargetReadinessOptions;
  #isReady: boolean;

  constructor(options: TargetReadinessOptions) {
    this.#options = options;
    this.#isReady = options.target === undefined;
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
    const { clock, outages, log, target, firstRead } = this.#options;
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
    const { clock, log, random, held, work, firstRead } = this.#options;
    const hold = held.hold({ work, waitsFor: 'catch-up', of: target.cluster });
    const how = { clock, log, random, hold };
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
