import { reachPresent } from '../kube/cache/reach-present.ts';
import { CONTROL } from '../kube/gate/gate.ts';
import type { LeaderWork } from './process/leadership.ts';
import type { Controller } from '../work/reconcile/controller.ts';
import { type Reconcile, Worker } from '../work/reconcile/worker.ts';
import { Backoff } from '../work/workqueue/backoff.ts';
import { KeyedQueue } from '../work/workqueue/keyed-queue.ts';
import type { Cell } from './cell.ts';
import type { ClusterCaches } from './cluster-caches.ts';
import type { OwnLeadership } from './leadership.ts';
import type { ManagerProcess } from './manager-process.ts';
import type { OutageReports } from './outage-reports.ts';
import type { Service } from './service.ts';
import { retryUntilDone } from './retry-until-done.ts';
import { TargetReadiness } from './target-readiness.ts';

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
  readonly #process: ManagerProcess;
  readonly #cell: Cell;
  readonly #leadership: OwnLeadership;
  readonly #services: readonly Pick<Service, 'begin' | 'end'>[];
  readonly #reports: Pick<OutageReports, 'subscribe'>;
  /** What is cached of the control cluster. */
  readonly #awaited: readonly Pick<ClusterCaches, 'kinds'>[];
  readonly #readiness: TargetReadiness;
  readonly #queues: readonly { readonly controller: Controller; readonly queue: KeyedQueue }[];

  /** Of the controllers, those that the flags do not name run elsewhere: they get no keys. */
  constructor(
    process: ManagerProcess,
    cell: Cell,
    leadership: OwnLeadership,
    {
      controllers,
      services,
      reports,
    }: {
      readonly controllers: readonly Controller[];
      readonly services: readonly Pick<Service, 'begin' | 'end'>[];
      readonly reports: Pick<OutageReports, 'subscribe'>;
    },
  ) {
    const { ofControl, target } = cell;
    this.#process = process;
    this.#cell = cell;
    this.#leadership = leadership;
    this.#services = services;
    this.#reports = reports;
    const ofTarget = target?.caches;
    const isOneCluster = ofTarget?.cluster === ofControl.cluster;
    this.#awaited = isOneCluster ? [ofControl, ofTarget] : [ofControl];
    this.#readiness = new TargetReadiness(process, cell, leadership.lease, isOneCluster ? undefined : ofTarget);
    this.#queues = controllers.map((controller) => ({ controller, queue: this.#queueOf(controller) }));
  }

  async begin(signal: AbortSignal): Promise<void> {
    const { config, log, held } = this.#cell;
    const { random, options } = this.#process;
    const { clock } = options;
    const { lease: work } = this.#leadership;
    this.#reports.subscribe(this.#leadership);
    const hold = held.hold({ work, waitsFor: 'catch-up', of: CONTROL });
    const reach = (s: AbortSignal): Promise<void> =>
      reachPresent(
        this.#awaited.flatMap(({ kinds }) => kinds),
        s,
      );
    await retryUntilDone({ clock, log, random, hold }, 'reading the control cluster after an outage', reach, signal);
    await this.#readiness.begin(signal);
    for (const { controller, queue } of this.#queues) {
      if (config.controllers.has(controller.name)) for (const watch of controller.watches) watch(queue);
    }
    for (const service of this.#services) service.begin();
  }

  async end(graceMs: number): Promise<void> {
    await Promise.all([
      this.#leadership.endTurns(),
      ...this.#queues.map(({ controller, queue }) => controller.end?.(queue, graceMs) ?? queue.stop(graceMs)),
      ...this.#services.map((service) => service.end(graceMs)),
    ]);
    await this.#leadership.close();
  }

  #queueOf(controller: Controller): KeyedQueue {
    const { log, metrics } = this.#cell;
    const { random, options } = this.#process;
    const { clock } = options;
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
