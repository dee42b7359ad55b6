import type { Registry } from 'prom-client';

import type { KubeObject } from '../apis/meta.ts';
import { reachPresent } from '../kube/cache/reach-present.ts';
import type { ProcessClock } from '../base/clock/process-clock.ts';
import type { Config } from './config/config.ts';
import { EventRecorder, type Recorder } from '../kube/events/recorder.ts';
import { Outages, type OutageChangeListener } from '../kube/gate/outages.ts';
import { CONTROL, type Cluster, type Gate } from '../kube/gate/gate.ts';
import type { Trust } from '../kube/gate/leader-gate.ts';
import type { Outage } from '../kube/gate/outage.ts';
import { HeldWork } from '../health/held-work.ts';
import type { Page } from '../health/page.ts';
import type { WorkInProgress } from '../health/work-in-progress.ts';
import type { Reader } from '../kube/client/client.ts';
import type { Interceptor } from '../kube/gate/interceptor.ts';
import type { ApiError } from '../kube/client/errors.ts';
import { apiVersionOf } from '../kube/client/resource.ts';
import type { Resource } from '../apis/resource.ts';
import type { RequestRecord } from '../kube/client/transport.ts';
import { MACHINE_LEASE } from '../kube/leader/names.ts';
import type { LeaseThread } from '../kube/leader/lease-thread.ts';
import type { Logger } from '../base/log/logger.ts';
import { buildInfo } from '../base/metrics/build.ts';
import { heldWorkMetrics } from '../base/metrics/held-work.ts';
import { logMetrics } from '../base/metrics/log.ts';
import { createRegistry } from '../base/metrics/registry.ts';
import { permissionsOf, roleFiles } from './preflight/permissions.ts';
import { workloadOf } from './preflight/workload.ts';
import { underLease } from './process/leadership.ts';
import { type HostProcess, Lifecycle, type Member } from './process/lifecycle.ts';
import type { Controller } from '../work/reconcile/controller.ts';
import { addCaches, alsoReadBy, type Caches } from './caches.ts';
import { ClusterCaches } from './cluster-caches.ts';
import { ClusterIdentity } from './cluster-identity.ts';
import { type Clusters, openClusters, writerTo } from './clusters.ts';
import { DriverGreetings } from './driver-greetings.ts';
import type { DriverHooks } from './drivers.ts';
import { type ElectionOptions, type GateOptions, createLeaseThread, reportingGate } from './election.ts';
import { type Leadership, type LeadershipOptions, createLeadership, type OwnLeadership } from './leadership.ts';
import { connectionsMember, healthMember, type ObservedProcess, probesMember, recorderMember } from './members.ts';
import { operatorMetrics, type OperatorMetrics } from './metrics.ts';
import { OutageReports } from './outage-reports.ts';
import type { Service } from './service.ts';
import { StartCheck } from './start-check.ts';
import { Work } from './work.ts';
import { TargetClusters } from './target-clusters.ts';
import type { TargetCluster } from './target-cluster.ts';
import type { World } from './world.ts';
import { type Random, secureRandom } from '../base/random/random.ts';
import type { OpenDispatcher } from '../kube/client/dispatchers.ts';
import type { OpenEndpoint } from '../kube/client/endpoint.ts';

export interface OperatorOptions {
  readonly config: Config;
  /** The APIs that it can serve beside ours, see pkg/worlds. */
  readonly worlds: readonly World[];
  /** Host name and a random suffix: different for each start. */
  readonly identity: string;
  readonly version: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: ProcessClock;
  readonly log: Logger;
  readonly host: HostProcess;
  readonly hooks?: OperatorHooks;
}

/** For tests, benchmarks and simulations. */
export interface OperatorHooks extends DriverHooks {
  readonly onRequest?: (record: RequestRecord) => void;
  readonly intercept?: Interceptor;
  /** Leases are renewed by the event loop and the clock of all else, not in a thread of their own: for clocks that jump. */
  readonly leasesInMainThread?: boolean;
  /** In place of the gate of each leadership. */
  readonly gate?: Gate & Trust;
  /** In place of the recorders of all components. */
  readonly recorder?: Recorder;
  /** Whether probes and metrics are served on the port of the flags; true unless told otherwise. */
  readonly servesHealth?: boolean;
  /** In place of connections to API servers. */
  readonly openDispatcher?: OpenDispatcher;
  /** In place of reading kubeconfigs, which takes the host's time. */
  readonly openEndpoint?: OpenEndpoint;
  /** In place of the source of production; a seed's makes a run repeatable. */
  readonly random?: Random;
  /** Freezes what caches give, which finds those who write to it. */
  readonly freezeCached?: boolean;
}

/** What is done under Leases. */
interface LeaseWork {
  readonly controllers: readonly Controller[];
  readonly services: readonly Service[];
}

/**
 * The process: opens the clusters, and gives controllers what they are made of; `run` starts all of it in the order in which data flows.
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
  readonly #options: OperatorOptions;
  readonly #clusters: Clusters;
  readonly #ofControl: ClusterCaches;
  /** That of the flags, which may be the control cluster. */
  readonly #target: TargetCluster | undefined;
  readonly #outages: Outages;
  readonly #held: HeldWork;
  #work: (() => WorkInProgress) | undefined;
  #makePage: ((process: ObservedProcess) => Page) | undefined;
  readonly #identity: ClusterIdentity;
  readonly #lifecycle: Lifecycle;
  readonly #thread: LeaseThread | undefined;
  readonly #recorders = new Map<string, EventRecorder>();
  readonly #leaderships = new Map<string, OwnLeadership>();

  private constructor(
    options: OperatorOptions & { readonly registry: Registry; readonly metrics: OperatorMetrics },
    clusters: Clusters,
  ) {
    const { config, clock, log, registry, metrics, hooks } = options;
    this.config = config;
    this.clock = clock;
    this.random = hooks?.random ?? secureRandom;
    this.log = log;
    this.registry = registry;
    this.metrics = metrics;
    this.#options = options;
    this.#clusters = clusters;
    const { statusCheckPeriodMs: periodMs, statusCheckTimeoutMs: timeoutMs } = config.safety;
    this.#outages = new Outages({ clock, log, metrics: metrics.gate, periodMs, timeoutMs });
    this.#held = new HeldWork({ clock });
    heldWorkMetrics(registry, () => this.#held.list());
    this.#identity = new ClusterIdentity({
      clock,
      random: this.random,
      log,
      held: this.#held,
      reader: clusters.control.reader,
      endpoint: clusters.control.endpoint,
      lost: (reason, err) => this.#lifecycle.fatal(reason, err),
    });
    const itself = {
      namespace: config.clusters.namespace,
      leaseNamespace: config.leader.namespace,
      leases: config.leases,
      isAutoscaled: config.autoscaler !== undefined,
      controllers: config.controllers,
      of: config.of,
    };
    const { worlds } = options;
    const process = { ...itself, alsoRead: alsoReadBy(worlds, itself) };
    const files = roleFiles(itself, worlds);
    const cached = {
      clock,
      random: this.random,
      log,
      metrics: metrics.kube,
      outages: this.#outages,
      held: this.#held,
      freeze: hooks?.freezeCached ?? false,
    };
    this.#ofControl = new ClusterCaches(clusters.control, { ...cached, roleFile: files.control });
    this.targets = new TargetClusters({
      ...config.api,
      ...cached,
      process,
      userAgent: userAgentOf(options),
      clockMetrics: metrics.clock,
      intercept: hooks?.intercept,
      onRequest: hooks?.onRequest,
      openDispatcher: hooks?.openDispatcher,
    });
    this.#target = clusters.target && this.targets.add(clusters.target, files.target);
    this.caches = addCaches(this.#ofControl, { process, worlds });
    this.#lifecycle = new Lifecycle(options);
    this.#thread = createLeaseThread(this.#clusters.control, { ...options, userAgent: userAgentOf(options) });
  }

  /** Opens the clusters and declares the metrics; nothing is sent yet. Throws ConfigError for an unusable kubeconfig. */
  static async open(options: OperatorOptions): Promise<Operator> {
    const { config, clock, env, log, hooks } = options;
    const registry = createRegistry();
    const metrics = operatorMetrics(registry);
    buildInfo(registry, { version: options.version, program: config.program });
    logMetrics(registry, () => log.lostLines?.() ?? 0);
    let moved: ((cluster: Cluster) => void) | undefined;
    const clusters = await openClusters(config, options.worlds, {
      moved: (cluster) => moved?.(cluster),
      userAgent: userAgentOf(options),
      env,
      ...config.api,
      clock,
      log,
      metrics: metrics.kube,
      clockMetrics: metrics.clock,
      onRequest: hooks?.onRequest,
      openDispatcher: hooks?.openDispatcher,
      openEndpoint: hooks?.openEndpoint,
    });
    const operator = new Operator({ ...options, registry, metrics }, clusters);
    moved = (cluster) => {
      if (cluster === CONTROL) operator.#identity.check();
    };
    return operator;
  }

  /** Live reads of the control cluster. */
  get reader(): Reader {
    return this.#clusters.control.reader;
  }

  /** `apiVersion` under which the control cluster serves a kind, as far as that is known. */
  servedAs(resource: Resource<KubeObject>): string {
    return apiVersionOf(this.#clusters.control.transport.served.current(resource));
  }

  /** Calls `run` each time the control cluster turned out to serve a kind in another version than before. */
  onServedChange(run: () => void): void {
    this.#clusters.control.transport.served.onChange(run);
  }

  /** The outages of this moment. */
  get outages(): readonly Outage[] {
    return this.#outages.current();
  }

  /** Whether the target cluster cannot be reached at present. */
  get hasTargetOutage(): boolean {
    const { target } = this.#clusters;
    return target !== undefined && this.#outages.state(target.cluster)?.outage !== undefined;
  }

  /** Adds a listener for the beginning and end of outages. */
  onOutage(listener: OutageChangeListener): void {
    this.#outages.onChange(listener);
  }

  /** Calls `run` each time the control cluster turned out to have been set back, when all of it has been read anew and before work goes on. */
  onSetBack(run: () => void): void {
    this.onOutage(({ cluster, isOver, isSetBack }) => {
      if (cluster === CONTROL && isOver && isSetBack) run();
    });
  }

  /** Reports Events under the name of `component`. */
  recorder(component: string): Recorder {
    const { hooks, clock, log } = this.#options;
    if (hooks?.recorder !== undefined) return hooks.recorder;
    const known = this.#recorders.get(component);
    if (known !== undefined) return known;
    const writer = writerTo(this.#clusters.control, {
      gate: reportingGate(this.#gateOptions()),
      observer: this.#ofControl.ownWrites,
      intercept: hooks?.intercept,
    });
    const recorder = new EventRecorder({
      source: { component },
      writer,
      clock,
      random: this.random,
      log,
      metrics: this.metrics.event,
    });
    this.#recorders.set(component, recorder);
    return recorder;
  }

  /** Fills a cache of a kind of the control cluster that is known only now, until it is closed. */
  openCache(
    resource: Resource<KubeObject>,
    options: { readonly namespace?: string; readonly refused: (err: ApiError) => void },
  ): ReturnType<ClusterCaches['open']> {
    return this.#ofControl.open(resource, options);
  }

  /** Resolves when the cache of a kind of the control cluster shows the present; rejects with the signal's reason, and ApiError. */
  async untilPresent({ group, plural }: Resource<KubeObject>, signal: AbortSignal): Promise<void> {
    const kinds = this.#ofControl.kinds.filter(
      ({ resource }) => resource.plural === plural && resource.group === group,
    );
    await reachPresent(kinds, signal);
  }

  /** What the controllers of `lease` act with. */
  under(lease: string): Leadership {
    const known = this.#leaderships.get(lease);
    if (known !== undefined) return known;
    // It is announced under the name of its Lease.
    const leadership = createLeadership(lease, this.recorder(lease), this.#leadershipOptions());
    this.#leaderships.set(lease, leadership);
    return leadership;
  }

  /** What is being done about single machines, for the port of probes and metrics; to be called before `run`. */
  showWork(work: () => WorkInProgress): void {
    this.#work = work;
  }

  /** What makes pages for people, for the same port; to be called before `run`. */
  showPage(make: (process: ObservedProcess) => Page): void {
    this.#makePage = make;
  }

  /** Runs the process with these controllers and services to its end and resolves with the exit code. */
  run(controllers: readonly Controller[], services: readonly Service[] = []): Promise<number> {
    const { config, registry, clock, random, log } = this;
    const caches = [this.#ofControl, ...(this.#target === undefined ? [] : [this.#target.caches])];
    const leaderships = [...this.#leaderships.values()];
    const leases = leaderships.flatMap(({ lease, elector }) => (elector === undefined ? [] : [lease]));
    const reports = new OutageReports({ clock, outages: this.#outages });
    const health = {
      server: config.server,
      registry,
      caches,
      outages: this.#outages,
      held: this.#held,
      work: this.#work,
      makePage: this.#makePage,
      identity: this.#options.identity,
      version: this.#options.version,
      leaderships,
      clusters: this.#clusters,
      renewDeadlineMs: config.leader.renewDeadlineMs,
    };
    const lifecycle = this.#lifecycle;
    lifecycle.add(connectionsMember(this.#clusters, this.#thread, { ...this.#options, leases }));
    if (this.#options.hooks?.servesHealth !== false) lifecycle.add(healthMember({ ...health, clock, log }));
    lifecycle.add(probesMember(this.#clusters, caches, this.#outages));
    lifecycle.add(this.targets);
    // First of all that asks for more than a sign of life: what is missing is told once, by the one who knows all of it.
    lifecycle.add(this.#startCheck());
    lifecycle.add(
      ...caches,
      ...(this.#callsDrivers
        ? [
            this.#identity,
            new DriverGreetings({ drivers: this.under(MACHINE_LEASE).drivers.all(), clock, random, log }),
          ]
        : []),
    );
    lifecycle.add(...[...this.#recorders].map(([component, recorder]) => recorderMember(component, recorder)));
    lifecycle.add(...services);
    lifecycle.add(
      ...leaderships.map((leadership) =>
        this.#memberOf(leadership, { controllers, services }, { reports, clusters: caches }),
      ),
    );
    return lifecycle.run();
  }

  get #callsDrivers(): boolean {
    const { drivers, leases } = this.config;
    return drivers.length > 0 && leases.has(MACHINE_LEASE);
  }

  #startCheck(): StartCheck {
    const { config, clock, random, log } = this;
    const clusters = this.#clusters;
    const hasTarget = clusters.target !== undefined;
    const workload = workloadOf(config, { hasTarget, callsDrivers: this.#callsDrivers });
    const permissions = permissionsOf(workload, this.#options.worlds);
    return new StartCheck({ clusters, permissions, clock, random, log, outages: this.#outages, held: this.#held });
  }

  #memberOf(
    leadership: OwnLeadership,
    all: LeaseWork,
    { reports, clusters }: { readonly reports: OutageReports; readonly clusters: readonly ClusterCaches[] },
  ): Member {
    const { lease, elector } = leadership;
    const services = all.services.filter((service) => service.lease === lease);
    const work = new Work({
      lease,
      controllers: all.controllers.filter((controller) => controller.lease === lease),
      running: this.config.controllers,
      clusters,
      outages: this.#outages,
      held: this.#held,
      clock: this.clock,
      random: this.random,
      log: this.log,
      metrics: this.metrics,
    });
    return underLease(lease, elector, {
      async begin(signal) {
        reports.subscribe(leadership);
        await work.begin(signal);
        for (const service of services) service.begin();
      },
      async end(graceMs) {
        await Promise.all([
          leadership.endTurns(),
          work.end(graceMs),
          ...services.map((service) => service.end(graceMs)),
        ]);
        await leadership.close();
      },
    });
  }

  #leadershipOptions(): LeadershipOptions {
    const { clock, log, config, metrics } = this;
    const { hooks } = this.#options;
    const held = this.#held;
    const identity = this.#identity;
    return {
      control: this.#clusters.control,
      ofControl: this.#ofControl,
      target: this.#target,
      election: this.#electionOptions(),
      drivers: { addresses: config.drivers, identity, held, clock, log, metrics: metrics.driver, hooks },
      intercept: hooks?.intercept,
      gate: hooks?.gate,
    };
  }

  #gateOptions(): GateOptions {
    const { clock, config, metrics } = this;
    return { clock, outages: this.#outages, metrics: metrics.gate, graceMs: config.safety.graceMs };
  }

  #electionOptions(): ElectionOptions {
    const { clock, random, log, config, metrics } = this;
    const { identity } = this.#options;
    const lost = (reason: string): void => this.#lifecycle.fatal(reason);
    return {
      elector: { identity, clock, random, log, metrics: metrics.leader, lost },
      transport: this.#clusters.control.transport,
      namespace: config.leader.namespace,
      leader: config.leader,
      thread: this.#thread,
      gate: this.#gateOptions(),
    };
  }
}

/** `machinist/<version> <program>`. */
function userAgentOf({ version, config }: OperatorOptions): string {
  return `machinist/${version} ${config.program.replaceAll(' ', '-')}`;
}
