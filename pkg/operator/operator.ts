import type { Registry } from 'prom-client';

import type { ProcessClock } from '../base/clock/process-clock.ts';
import type { Logger } from '../base/log/logger.ts';
import type { Random } from '../base/random/random.ts';
import type { KubeObject } from '../apis/meta.ts';
import type { Resource } from '../apis/resource.ts';
import { type Checks, leadership as leadershipCheck } from '../health/checks.ts';
import type { HeldBack } from '../health/held-work.ts';
import type { Page } from '../health/page.ts';
import type { WorkInProgress } from '../health/work-in-progress.ts';
import { reachPresent } from '../kube/cache/reach-present.ts';
import type { Reader } from '../kube/client/client.ts';
import type { ApiError } from '../kube/client/errors.ts';
import { apiVersionOf } from '../kube/client/resource.ts';
import { EventRecorder, type Recorder } from '../kube/events/recorder.ts';
import { CONTROL } from '../kube/gate/gate.ts';
import type { Outage } from '../kube/gate/outage.ts';
import type { ClusterState } from '../kube/gate/outage-detector.ts';
import type { OutageChangeListener } from '../kube/gate/outages.ts';
import { MACHINE_LEASE } from '../kube/leader/names.ts';
import type { Controller } from '../work/reconcile/controller.ts';
import { AloneInNamespace } from './alone-in-namespace.ts';
import type { Caches } from './caches.ts';
import { type Cell, cellOfFlags } from './cell.ts';
import { OtherManagers } from './cells/other-managers.ts';
import type { SharedCache } from './cluster-caches.ts';
import { writerTo } from './clusters.ts';
import type { Config } from './config/config.ts';
import { DriverGreetings } from './driver-greetings.ts';
import { reportingGate } from './election.ts';
import { createLeadership, type Leadership, type OwnLeadership } from './leadership.ts';
import { ManagerProcess, type OperatorOptions } from './manager-process.ts';
import { connectionsMember, healthMember, probesMember, readinessOf, recorderMember } from './members.ts';
import type { OperatorMetrics } from './metrics.ts';
import { OutageReports } from './outage-reports.ts';
import { permissionsOf } from './preflight/permissions.ts';
import { workloadOf } from './preflight/workload.ts';
import { type LeaderWork, underLease } from './process/leadership.ts';
import type { Service } from './service.ts';
import type { SharedTarget } from './shared-target.ts';
import { StartCheck } from './start-check.ts';
import type { TargetClusters } from './target-clusters.ts';
import { Work } from './work.ts';

/**
 * What the controllers of one namespace of Machines are made of; `run` starts all of a process in the order in which data flows.
 *
 *  kube-apiserver ──watch──▶ cache ──key──▶ workqueue ──▶ reconcile ──▶ steps ──▶ gate ──▶ kube client (patch)
 *                               ▲ read-only ────────────────────────────┘   └──▶ activity ──▶ gate ──▶ driver ──▶ cloud
 */
export class Operator {
  readonly config: Config;
  readonly clock: ProcessClock;
  readonly random: Random;
  readonly log: Logger;
  readonly registry: Registry;
  readonly metrics: OperatorMetrics;
  readonly caches: Caches;
  readonly targets: TargetClusters;
  readonly #process: ManagerProcess;
  readonly #cell: Cell;
  #work: (() => WorkInProgress) | undefined;
  #makePage: ((checks: Checks) => Page) | undefined;
  readonly #recorders = new Map<string, EventRecorder>();
  readonly #leaderships = new Map<string, OwnLeadership>();
  /** Ends what the process would tell it when its own work has ended. */
  readonly #ending: (() => void)[] = [];

  constructor(process: ManagerProcess, cell: Cell) {
    this.config = cell.config;
    this.clock = process.options.clock;
    this.random = process.random;
    this.log = cell.log;
    this.registry = cell.registry;
    this.metrics = cell.metrics;
    this.caches = cell.caches;
    this.targets = cell.targets;
    this.#process = process;
    this.#cell = cell;
  }

  /** The process of one namespace: opens its clusters and declares the metrics; nothing is sent yet. Throws ConfigError for an unusable kubeconfig. */
  static async open(options: OperatorOptions): Promise<Operator> {
    const process = await ManagerProcess.open(options);
    return new Operator(process, cellOfFlags(process));
  }

  /** What other namespaces have to do with the Nodes of the target; undefined: nothing. */
  get sharedTarget(): SharedTarget | undefined {
    return this.#cell.sharedTarget;
  }

  /** Of the process: host name and a random suffix. */
  get identity(): string {
    return this.#process.options.identity;
  }

  get version(): string {
    return this.#process.options.version;
  }

  /** Live reads of the control cluster. */
  get reader(): Reader {
    return this.#cell.control.reader;
  }

  /** `apiVersion` under which the control cluster serves a kind, as far as that is known. */
  servedAs(resource: Resource<KubeObject>): string {
    return apiVersionOf(this.#process.clusters.control.transport.served.current(resource));
  }

  /** Calls `run` each time the control cluster turned out to serve a kind in another version than before. */
  onServedChange(run: () => void): void {
    this.#ending.push(this.#process.clusters.control.transport.served.onChange(run));
  }

  /** How the clusters are at this moment. */
  get clusterStates(): readonly ClusterState[] {
    return this.#cell.outages.states();
  }

  /** The outages of this moment. */
  get outages(): readonly Outage[] {
    return this.#cell.outages.current();
  }

  /** What has begun and still waits until the clusters were read, and may be used, at this moment. */
  get catchingUp(): readonly HeldBack[] {
    return this.#cell.held.list().filter(({ waitsFor }) => waitsFor === 'catch-up' || waitsFor === 'claim');
  }

  /** Whether the target cluster cannot be reached at present. */
  get hasTargetOutage(): boolean {
    const { target, outages } = this.#cell;
    return target !== undefined && outages.state(target.access.cluster)?.outage !== undefined;
  }

  /** Adds a listener for the beginning and end of outages. */
  onOutage(listener: OutageChangeListener): void {
    this.#cell.outages.onChange(listener);
  }

  /** Calls `run` each time the control cluster turned out to have been set back, when all of it has been read anew and before work goes on. */
  onSetBack(run: () => void): void {
    this.onOutage(({ cluster, isOver, isSetBack }) => {
      if (cluster === CONTROL && isOver && isSetBack) run();
    });
  }

  /** Reports Events under the name of `component`. */
  recorder(component: string): Recorder {
    const { options } = this.#process;
    const { intercept, recorder: given } = options.hooks ?? {};
    if (given !== undefined) return given;
    const known = this.#recorders.get(component);
    if (known !== undefined) return known;
    const { clock, random, log, metrics, config } = this;
    const { outages, control, ofControl } = this.#cell;
    const gate = reportingGate({ clock, outages, metrics: metrics.gate, graceMs: config.safety.graceMs });
    const writer = writerTo(control, { gate, observer: ofControl.ownWrites, intercept });
    const recorder = new EventRecorder({ source: { component }, writer, clock, random, log, metrics: metrics.event });
    this.#recorders.set(component, recorder);
    return recorder;
  }

  /** Fills a cache of a kind of the control cluster that is known only now, until it is closed. */
  openCache(
    resource: Resource<KubeObject>,
    options: { readonly namespace?: string; readonly refused: (err: ApiError) => void },
  ): SharedCache {
    return this.#cell.openCache(resource, options);
  }

  /** Resolves when the cache of a kind of the control cluster shows the present; rejects with the signal's reason, and ApiError. */
  async untilPresent({ group, plural }: Resource<KubeObject>, signal: AbortSignal): Promise<void> {
    const kinds = this.#cell.ofControl.kinds.filter(
      ({ resource }) => resource.plural === plural && resource.group === group,
    );
    await reachPresent(kinds, signal);
  }

  /** What the controllers of `lease` act with. */
  under(lease: string): Leadership {
    const known = this.#leaderships.get(lease);
    if (known !== undefined) return known;
    const { clock, log, config, metrics } = this;
    const { identity, options } = this.#process;
    const { held, openDriver } = this.#cell;
    const { hooks } = options;
    const driverHooks = openDriver === undefined ? hooks : { ...hooks, openDriver };
    // It is announced under the name of its Lease.
    const recorder = this.recorder(lease);
    const leadership = createLeadership(lease, recorder, this.#cell, {
      drivers: { addresses: config.drivers, identity, held, clock, log, metrics: metrics.driver, hooks: driverHooks },
      intercept: hooks?.intercept,
      gate: hooks?.gate,
    });
    this.#leaderships.set(lease, leadership);
    return leadership;
  }

  /** Those of its Leases that were asked for. */
  get leaderships(): readonly Pick<OwnLeadership, 'lease' | 'elector'>[] {
    return [...this.#leaderships.values()];
  }

  /** What is being done about single machines, for the port of probes and metrics; to be called before `run`. */
  showWork(work: () => WorkInProgress): void {
    this.#work = work;
  }

  /** What is shown of it at this moment; undefined: nothing is ever done about Machines. */
  get workInProgress(): WorkInProgress | undefined {
    return this.#work?.();
  }

  /** What makes pages for people, for the same port, of the checks of /readyz too; to be called before `run`. */
  showPage(make: (checks: Checks) => Page): void {
    this.#makePage = make;
  }

  /** Runs the process with these controllers and services to its end and resolves with the exit code. */
  run(controllers: readonly Controller[], services: readonly Service[] = []): Promise<number> {
    const { config, clock, random, log, leaderships } = this;
    const { ofControl, clusters, identity, lifecycle, options } = this.#process;
    const { outages, target } = this.#cell;
    const caches = [ofControl, ...(target === undefined ? [] : [target.caches])];
    const elected = leaderships.flatMap(({ lease, elector }) => (elector === undefined ? [] : [{ lease, elector }]));
    const leases = elected.map(({ lease }) => lease);
    lifecycle.add(connectionsMember(this.#process, leases));
    if (options.hooks?.health !== 'none') {
      const checks = readinessOf(this.#process, caches);
      checks.add(...elected.map(({ lease, elector }) => leadershipCheck(lease, elector)));
      lifecycle.add(healthMember(this.#process, { checks, work: this.#work, page: this.#makePage?.(checks) }));
    }
    lifecycle.add(probesMember(clusters, caches, outages));
    lifecycle.add(this.targets);
    // First of all that asks for more than a sign of life: what is missing is told once, by the one who knows all of it.
    lifecycle.add(this.#startCheck());
    lifecycle.add(
      ...caches,
      ...(this.#callsDrivers
        ? [identity, new DriverGreetings({ drivers: this.under(MACHINE_LEASE).drivers.all(), clock, random, log })]
        : []),
    );
    lifecycle.add(...[...this.#recorders].map(([component, recorder]) => recorderMember(component, recorder)));
    lifecycle.add(...services);
    // Where the Leases are with the Machines, they keep others away.
    if (config.leader.namespace !== config.clusters.namespace) lifecycle.add(this.#alone());
    const works = this.#works(controllers, services);
    lifecycle.add(...works.map(({ leadership, work }) => underLease(leadership.lease, leadership.elector, work)));
    return lifecycle.run();
  }

  /** The work of these controllers and services, for a process in which somebody else holds their Leases; afterwards nothing of it is left. */
  work(controllers: readonly Controller[], services: readonly Service[] = []): LeaderWork {
    const works = this.#works(controllers, services);
    return {
      begin: async (signal) => void (await Promise.all(works.map(({ work }) => work.begin(signal)))),
      end: async (graceMs) => {
        for (const end of this.#ending) end();
        await Promise.all(works.map(({ work }) => work.end(graceMs)));
        await Promise.all(
          [...this.#recorders].map(([component, recorder]) => recorderMember(component, recorder).stop(graceMs)),
        );
      },
    };
  }

  get #callsDrivers(): boolean {
    return this.config.drivers.length > 0;
  }

  #alone(): AloneInNamespace {
    const { config, clock, log, reader } = this;
    const { leases, clusters } = config;
    return new AloneInNamespace({
      others: new OtherManagers({ reader, leases, clock }),
      namespace: clusters.namespace,
      clock,
      log,
      held: this.#cell.held,
      lost: (reason) => this.#process.lifecycle.fatal(reason),
    });
  }

  #startCheck(): StartCheck {
    const { config, clock, random, log } = this;
    const { clusters, options } = this.#process;
    const { outages, held } = this.#cell;
    const hasTarget = clusters.target !== undefined;
    const workload = workloadOf(config, { hasTarget, callsDrivers: this.#callsDrivers });
    const permissions = permissionsOf(workload, options.worlds);
    return new StartCheck({ clusters, permissions, clock, random, log, outages, held });
  }

  /** What is done under each leadership. */
  #works(
    controllers: readonly Controller[],
    services: readonly Service[],
  ): readonly { readonly leadership: OwnLeadership; readonly work: Work }[] {
    const { outages, subject } = this.#cell;
    const reports = new OutageReports({ clock: this.clock, outages, subject });
    return [...this.#leaderships.values()].map((leadership) => {
      const isOurs = ({ lease }: Controller | Service): boolean => lease === leadership.lease;
      const work = new Work(this.#process, this.#cell, leadership, {
        controllers: controllers.filter(isOurs),
        services: services.filter(isOurs),
        reports,
      });
      return { leadership, work };
    });
  }
}
