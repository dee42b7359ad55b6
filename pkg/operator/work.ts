import { reachPresent } from '../kube/cache/reach-present.ts';
import type { Clock } from '../base/clock/clock.ts';
import { CONTROL } from '../kube/gate/gate.ts';
import type { EventSubject } from '../kube/events/correlator.ts';
import type { Outages } from '../kube/gate/outages.ts';
import type { HeldWork } from '../health/held-work.ts';
import type { Logger } from '../base/log/logger.ts';
import type { LeaderWork } from './process/leadership.ts';
import type { Controller } from '../work/reconcile/controller.ts';
import { type Reconcile, Worker } from '../work/reconcile/worker.ts';
import { Backoff } from '../work/workqueue/backoff.ts';
import { KeyedQueue } from '../work/workqueue/keyed-queue.ts';
import type { ClusterCaches } from './cluster-caches.ts';
import type { OwnLeadership } from './leadership.ts';
import type { OperatorMetrics } from './metrics.ts';
import type { OutageReports } from './outage-reports.ts';
import type { Service } from './service.ts';
import { retryUntilDone } from './retry-until-done.ts';
import { TargetReadiness, type TargetReadinessOptions } from './target-readiness.ts';
import type { Random } from '../base/random/random.ts';

export interface WorkOptions extends Pick<TargetReadinessOptions, 'firstRead'> {
  readonly leadership: Pick<OwnLeadership, 'lease' | 'elector' | 'recorder' | 'endTurns' | 'close'>;
  readonly controllers: readonly Controller[];
  readonly services: readonly Pick<Service, 'begin' | 'end'>[];
  /** Those that run here: one that runs elsewhere gets no keys. */
  readonly running: ReadonlySet<string>;
  readonly ofControl: Pick<ClusterCaches, 'cluster' | 'kinds'>;
  /** Of the same cluster when both are one; undefined without a target. */
  readonly ofTarget: Pick<ClusterCaches, 'cluster' | 'kinds'> | undefined;
  readonly outages: Outages;
  readonly reports: Pick<OutageReports, 'subscribe'>;
  /** What outages are reported on in place of the Lease. */
  readonly subject?: EventSubject | undefined;
  readonly held: HeldWork;
  readonly clock: Clock;
  readonly random?: Random | undefined;
  readonly log: Logger;
  readonly metrics: Pick<OperatorMetrics, 'queue' | 'reconcile'>;
}

/** A pass never waits for a driver or a drain, so one that takes this long hangs. */
const PASS_TIMEOUT_MS = 120_000;
const FIRST_RETRY_MS = 200;
const LONGEST_RETRY_MS = 60_000;

/**
 * The controllers and services of one leadership at work: first the caches of the control cluster, and of the target when it can be
 * reached, are brought up to the present, then the watches fill the queues and the services answer; at the end everything that may still
 * mutate is stopped, and then what was opened to act with is closed.
 */
export class Work implements LeaderWork {
  readonly #options: WorkOptions;
  /** What is cached of the control cluster. */
  readonly #awaited: readonly Pick<ClusterCaches, 'kinds'>[];
  readonly #readiness: TargetReadiness;
  readonly #queues: readonly { readonly controller: Controller; readonly queue: KeyedQueue }[];

  constructor(options: WorkOptions) {
    const { controllers, leadership, ofControl, ofTarget } = options;
    this.#options = options;
    const isOneCluster = ofTarget?.cluster === ofControl.cluster;
    this.#awaited = isOneCluster ? [ofControl, ofTarget] : [ofControl];
    this.#readiness = new TargetReadiness({
      ...options,
      work: leadership.lease,
      target: isOneCluster ? undefined : ofTarget,
    });
    this.#queues = controllers.map((controller) => ({ controller, queue: this.#queueOf(controller) }));
  }

  async begin(signal: AbortSignal): Promise<void> {
    const { leadership, services, reports, subject, clock, log, random, held, running } = this.#options;
    const { lease: work, elector, recorder } = leadership;
    reports.subscribe({ elector, recorder, subject });
    const hold = held.hold({ work, waitsFor: 'catch-up', of: CONTROL });
    const reach = (s: AbortSignal): Promise<void> =>
      reachPresent(
        this.#awaited.flatMap(({ kinds }) => kinds),
        s,
      );
    await retryUntilDone({ clock, log, random, hold }, 'reading the control cluster after an outage', reach, signal);
    await this.#readiness.begin(signal);
    for (const { controller, queue } of this.#queues) {
      if (running.has(controller.name)) for (const watch of controller.watches) watch(queue);
    }
    for (const service of services) service.begin();
  }

  async end(graceMs: number): Promise<void> {
    const { leadership, services } = this.#options;
    await Promise.all([
      leadership.endTurns(),
      ...this.#queues.map(({ controller, queue }) => controller.end?.(queue, graceMs) ?? queue.stop(graceMs)),
      ...services.map((service) => service.end(graceMs)),
    ]);
    await leadership.close();
  }

  #queueOf(controller: Controller): KeyedQueue {
    const { clock, log, metrics, random } = this.#options;
    const { name, queue, concurrency, restMs, groupOf, mostOfGroup } = controller;
    const reconcile = this.#reconcileOf(controller);
    const timeoutMs = PASS_TIMEOUT_MS;
    const worker = new Worker({
      controller: name,
      reconcile,
      timeoutMs,
      clock,
      random,
      log,
      metrics: metrics.reconcile,
    });
    return new KeyedQueue({
      name: queue,
      concurrency,
      clock,
      backoff: new Backoff({ baseMs: FIRST_RETRY_MS, maxMs: LONGEST_RETRY_MS, random }),
      metrics: metrics.queue,
      ...(restMs && { restMs }),
      ...(groupOf && { groupOf }),
      ...(mostOfGroup !== undefined && { mostOfGroup }),
      work: worker.work,
    });
  }

  #reconcileOf({ reconcile, requiresTarget = () => false, report }: Controller): Reconcile {
    const held = this.#readiness.holding(reconcile, requiresTarget);
    if (report === undefined) return held;
    return async (key, signal, log) => {
      await report(key, signal);
      return held(key, signal, log);
    };
  }
}
