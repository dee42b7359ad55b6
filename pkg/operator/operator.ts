import type { Registry } from 'prom-client';

import type { Pod } from '../apis/wire.ts';
import type { SystemClock } from '../clock/system-clock.ts';
import type { Config } from '../config/config.ts';
import { podsOnNode } from '../drain/node-pods.ts';
import type { Drivers } from '../driver/drivers.ts';
import { EventRecorder, type Recorder } from '../events/recorder.ts';
import { Freezes, type FreezeListener } from '../gate/freeze.ts';
import { CONTROL, type Cluster, type Gate } from '../gate/gate.ts';
import type { Trust } from '../gate/leader-gate.ts';
import type { Outage } from '../gate/outage.ts';
import { Checks, cachesSynced, clustersReachable, leadership as leadershipCheck } from '../health/checks.ts';
import { HeldWork, workBegun } from '../health/held-work.ts';
import { HealthServer, HealthServerError } from '../health/server.ts';
import type { Reader, Writer } from '../kube/client.ts';
import type { Interceptor } from '../kube/interceptor.ts';
import { HttpListWatch, type ListWatch } from '../kube/list-watch.ts';
import { pods } from '../kube/resource.ts';
import type { RequestRecord } from '../kube/transport.ts';
import type { LeaseElector } from '../leader/elector.ts';
import { MACHINE_LEASE } from '../leader/names.ts';
import { LeaseThread } from '../leader/lease-thread.ts';
import type { Logger } from '../log/logger.ts';
import { heldWorkMetrics } from '../metrics/held-work.ts';
import { createRegistry } from '../metrics/registry.ts';
import { underLease } from '../process/leadership.ts';
import { CannotStartError, type HostProcess, Lifecycle, type Member } from '../process/lifecycle.ts';
import type { Controller } from '../reconcile/controller.ts';
import { singleTarget } from '../targets/single-target.ts';
import type { Targets } from '../targets/targets.ts';
import { Caches } from './caches.ts';
import { ClusterIdentity } from './cluster-identity.ts';
import { type Clusters, openClusters, writerTo } from './clusters.ts';
import { type DriverHooks, openDrivers } from './drivers.ts';
import { type ElectionOptions, type GateOptions, makeElection, reportingGate } from './election.ts';
import { operatorMetrics, type OperatorMetrics } from './metrics.ts';
import { OutageReports } from './outage-reports.ts';
import { probesOf } from './probes.ts';
import { startFields } from './start-line.ts';
import { Work } from './work.ts';

/** What a process is built from. */
export interface OperatorOptions {
  readonly config: Config;
  /** Host name and a random suffix: different for each start. */
  readonly identity: string;
  readonly version: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: SystemClock;
  readonly log: Logger;
  readonly host: HostProcess;
  readonly hooks?: OperatorHooks;
}

/** For tests and benchmarks. */
export interface OperatorHooks extends DriverHooks {
  readonly onRequest?: (record: RequestRecord) => void;
  readonly intercept?: Interceptor;
  /** Leases are renewed by the event loop and the clock of all else, not in a thread of their own: for clocks that jump. */
  readonly leasesInMainThread?: boolean;
  /** In place of the gate of each leadership. */
  readonly gate?: Gate & Trust;
  /** In place of the recorders of all components. */
  readonly recorder?: Recorder;
  /** Freezes what caches give, which finds those who write to it. */
  readonly freezeCached?: boolean;
}

/** What the controllers of one Lease act with: whatever it changes passes its gate. */
export interface Leadership {
  readonly gate: Gate & Trust;
  /** To the control cluster. */
  readonly writer: Writer;
  readonly targets: Targets;
  /** Connected to when first asked for. */
  readonly drivers: Drivers;
}

/** A leadership, and what the operator itself has to do with it. */
interface OwnLeadership extends Leadership {
  readonly lease: string;
  readonly elector: LeaseElector | undefined;
  readonly recorder: Recorder;
  /** Closes the connections to drivers. */
  close(): Promise<void>;
}

const RECORDER_STOP_MS = 2_000;

/**
 * The process: opens the clusters, and gives controllers what they are made of; `run` starts all of it in the order in which data flows.
 *
 *  kube-apiserver ──watch──▶ cache ──key──▶ workqueue ──▶ reconcile ──▶ steps ──▶ gate ──▶ kube client (patch)
 *                               ▲ read-only ────────────────────────────┘   └──▶ activity ──▶ gate ──▶ driver ──▶ cloud
 */
export class Operator {
  readonly config: Config;
  readonly clock: SystemClock;
  readonly log: Logger;
  readonly registry: Registry;
  readonly metrics: OperatorMetrics;
  readonly caches: Caches;
  readonly #options: OperatorOptions;
  readonly #clusters: Clusters;
  readonly #userAgent: string;
  readonly #freezes: Freezes;
  readonly #held: HeldWork;
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
    this.log = log;
    this.registry = registry;
    this.metrics = metrics;
    this.#options = options;
    this.#clusters = clusters;
    this.#userAgent = userAgentOf(options);
    const { statusCheckPeriodMs: periodMs, statusCheckTimeoutMs: timeoutMs } = config.safety;
    this.#freezes = new Freezes({ clock, log, metrics: metrics.gate, periodMs, timeoutMs });
    this.#held = new HeldWork({ clock });
    heldWorkMetrics(registry, () => this.#held.list());
    this.#identity = new ClusterIdentity({ clock, log, held: this.#held, reader: clusters.control.reader });
    this.caches = new Caches(clusters, {
      clock,
      log,
      metrics: metrics.kube,
      freezes: this.#freezes,
      held: this.#held,
      freeze: hooks?.freezeCached ?? false,
      namespace: config.clusters.namespace,
      leases: config.leases,
    });
    this.#lifecycle = new Lifecycle(options);
    this.#thread = this.#makeLeaseThread();
  }

  /** Opens the clusters and declares the metrics; nothing is sent yet. Throws ConfigError for an unusable kubeconfig. */
  static async open(options: OperatorOptions): Promise<Operator> {
    const { config, clock, env, log, hooks } = options;
    const registry = createRegistry();
    const metrics = operatorMetrics(registry);
    const clusters = await openClusters(config.clusters, {
      userAgent: userAgentOf(options),
      env,
      ...config.api,
      clock,
      log,
      metrics: metrics.kube,
      clockMetrics: metrics.clock,
      onRequest: hooks?.onRequest,
    });
    return new Operator({ ...options, registry, metrics }, clusters);
  }

  /** Live reads of the control cluster. */
  get reader(): Reader {
    return this.#clusters.control.reader;
  }

  /** Clusters that are frozen now. */
  get outages(): readonly Outage[] {
    return this.#freezes.outages();
  }

  /** Whether the target cluster cannot be reached at present. */
  get isTargetFrozen(): boolean {
    const { target } = this.#clusters;
    return target !== undefined && this.#freezes.state(target.cluster)?.frozen === true;
  }

  /** Adds a listener for freezes and unfreezes of clusters. */
  onOutage(listener: FreezeListener): void {
    this.#freezes.onChange(listener);
  }

  /** Calls `run` each time the control cluster turned out to have been set back, when all of it has been read anew and before work goes on. */
  onSetBack(run: () => void): void {
    this.onOutage(({ cluster, frozen, isSetBack }) => {
      if (cluster === CONTROL && !frozen && isSetBack) run();
    });
  }

  /** Reports Events under the name of `component`. */
  recorder(component: string): Recorder {
    const { hooks, clock, log } = this.#options;
    if (hooks?.recorder !== undefined) return hooks.recorder;
    const known = this.#recorders.get(component);
    if (known !== undefined) return known;
    const writer = this.#writerToControl(reportingGate(this.#gateOptions()));
    const recorder = new EventRecorder({ source: { component }, writer, clock, log, metrics: this.metrics.event });
    this.#recorders.set(component, recorder);
    return recorder;
  }

  /** The pods of a Node, past the caches: only a drain asks for them. */
  podsOn(cluster: Cluster, nodeName: string): ListWatch<Pod> {
    const { target } = this.#clusters;
    if (target?.cluster !== cluster) throw new Error(`no way to the pods of cluster ${cluster}`);
    const selection = { fieldSelector: podsOnNode(nodeName) };
    return new HttpListWatch({ transport: target.transport, resource: pods, selection });
  }

  /** What the controllers of `lease` act with. */
  under(lease: string): Leadership {
    const known = this.#leaderships.get(lease);
    if (known !== undefined) return known;
    const leadership = this.#makeLeadership(lease);
    this.#leaderships.set(lease, leadership);
    return leadership;
  }

  /** Runs the process with these controllers to its end and resolves with the exit code. */
  run(controllers: readonly Controller[]): Promise<number> {
    const { config } = this;
    const reports = new OutageReports({ clock: this.clock, freezes: this.#freezes });
    const work = [...this.#leaderships.values()].map((leadership) => this.#memberOf(leadership, controllers, reports));
    const callsDrivers = config.drivers.length > 0 && config.leases.has(MACHINE_LEASE);
    const lifecycle = this.#lifecycle;
    lifecycle.add(this.#connections());
    lifecycle.add(this.#health());
    lifecycle.add(this.#probes());
    lifecycle.add(...this.caches.all, ...(callsDrivers ? [this.#identity] : []));
    lifecycle.add(...[...this.#recorders].map(([component, recorder]) => memberOf(component, recorder)));
    lifecycle.add(...work);
    return lifecycle.run();
  }

  #makeLeadership(lease: string): OwnLeadership {
    const { hooks } = this.#options;
    // Each leadership is announced under the name of its Lease.
    const recorder = this.recorder(lease);
    const { gate: ownGate, elector } = makeElection(lease, recorder, this.#electionOptions());
    const gate = hooks?.gate ?? ownGate;
    let opened: ReturnType<typeof openDrivers> | undefined;
    const open = (): ReturnType<typeof openDrivers> => this.#openDrivers(lease, gate, elector);
    return {
      lease,
      elector,
      recorder,
      gate,
      writer: this.#writerToControl(gate),
      targets: this.#targets(gate),
      get drivers() {
        opened ??= open();
        return opened.drivers;
      },
      async close() {
        await opened?.close();
      },
    };
  }

  #memberOf(leadership: OwnLeadership, controllers: readonly Controller[], reports: OutageReports): Member {
    const { lease, elector } = leadership;
    const work = new Work({
      lease,
      controllers: controllers.filter((controller) => controller.lease === lease),
      running: this.config.controllers,
      caches: this.caches,
      freezes: this.#freezes,
      held: this.#held,
      clock: this.clock,
      log: this.log,
      metrics: this.metrics,
    });
    return underLease(lease, elector, {
      async begin(signal) {
        reports.subscribe(leadership);
        await work.begin(signal);
      },
      async end(graceMs) {
        await work.end(graceMs);
        await leadership.close();
      },
    });
  }

  #writerToControl(gate: Gate): Writer {
    const { control } = this.#clusters;
    const { intercept } = this.#options.hooks ?? {};
    return writerTo(control, { gate, observer: this.caches.ofControl.ownWrites, intercept });
  }

  #targets(gate: Gate): Targets {
    const { target } = this.#clusters;
    const { caches } = this;
    if (target === undefined || caches.ofTarget === undefined || caches.nodes === undefined)
      return singleTarget(undefined);
    const { intercept } = this.#options.hooks ?? {};
    return singleTarget({
      cluster: target.cluster,
      reader: target.reader,
      writer: writerTo(target, { gate, observer: caches.ofTarget.ownWrites, intercept }),
      nodes: caches.nodes,
      get volumeAttachments() {
        return caches.volumeAttachments;
      },
    });
  }

  #openDrivers(work: string, gate: Gate, elector: LeaseElector | undefined): ReturnType<typeof openDrivers> {
    const { clock, log } = this;
    return openDrivers({
      addresses: this.config.drivers,
      work,
      gate,
      elector,
      identity: this.#identity,
      target: this.#clusters.target?.cluster,
      held: this.#held,
      clock,
      log,
      metrics: this.metrics.driver,
      hooks: this.#options.hooks,
    });
  }

  #gateOptions(): GateOptions {
    const { clock, config, metrics } = this;
    return { clock, freezes: this.#freezes, metrics: metrics.gate, graceMs: config.safety.graceMs };
  }

  #electionOptions(): ElectionOptions {
    const { clock, log, config, metrics } = this;
    const { identity } = this.#options;
    const lost = (reason: string): void => this.#lifecycle.fatal(reason);
    return {
      elector: { identity, clock, log, metrics: metrics.leader, lost },
      transport: this.#clusters.control.transport,
      namespace: config.clusters.namespace,
      leader: config.leader,
      thread: this.#thread,
      gate: this.#gateOptions(),
    };
  }

  /** The thread in which the electors run; undefined without leader election, and where tests move the clock. */
  #makeLeaseThread(): LeaseThread | undefined {
    const { config, clock, log } = this;
    const { identity, hooks } = this.#options;
    if (!config.leader.enabled || hooks?.leasesInMainThread === true) return undefined;
    const { endpoint, transport } = this.#clusters.control;
    return new LeaseThread({
      endpoint,
      namespace: config.clusters.namespace,
      identity,
      userAgent: this.#userAgent,
      timing: config.leader,
      clock,
      log,
      onRequest: (record) => transport.note(record),
    });
  }

  /** Starts first, so that connections are closed when everything else has ended. */
  #connections(): Member {
    const leases = [...this.#leaderships.values()].flatMap(({ lease, elector }) =>
      elector === undefined ? [] : lease,
    );
    const { control, target } = this.#clusters;
    return {
      name: 'connections',
      start: () => {
        this.log.info(startFields(this.#options, this.#clusters, leases), 'started the process');
        return Promise.resolve();
      },
      stop: async () => {
        await this.#thread?.close();
        for (const access of new Set([control, target])) await access?.transport.close();
      },
    };
  }

  #health(): Member {
    const { config, registry, log, clock } = this;
    const freezes = this.#freezes;
    const checks = new Checks();
    checks.add(cachesSynced(() => this.caches.all.flatMap(({ synced }) => [...synced])));
    checks.add(
      clustersReachable(
        () => freezes.states(),
        () => clock.monotonicMs(),
      ),
    );
    checks.add(
      workBegun(
        () => this.#held.list(),
        (cluster) => freezes.state(cluster)?.frozen === true,
      ),
    );
    for (const { lease, elector } of this.#leaderships.values()) {
      if (elector !== undefined) checks.add(leadershipCheck(lease, elector));
    }
    const server = new HealthServer({ ...config.server, checks, registry, log });
    return {
      name: 'health server',
      async start() {
        try {
          await server.start();
        } catch (err) {
          throw err instanceof HealthServerError ? new CannotStartError(err.message, { cause: err }) : err;
        }
      },
      stop: () => server.stop(),
    };
  }

  /** Probing begins before anything else is done, and a cluster that comes back is caught up with before it counts as alive. */
  #probes(): Member {
    const { control, target } = this.#clusters;
    return {
      name: 'cluster probes',
      start: async () => {
        const clusters = [control, ...(target === undefined ? [] : [target])];
        for (const probed of probesOf(clusters, this.caches.all)) this.#freezes.add(probed);
      },
      stop: () => this.#freezes.stop(),
    };
  }
}

/** `machinist/<version> <program>`. */
function userAgentOf({ version, config }: OperatorOptions): string {
  return `machinist/${version} ${config.program.replaceAll(' ', '-')}`;
}

function memberOf(component: string, recorder: EventRecorder): Member {
  return {
    name: `events of ${component}`,
    start: () => Promise.resolve(),
    stop: () => recorder.stop(RECORDER_STOP_MS),
  };
}
