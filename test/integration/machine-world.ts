import { randomBytes } from 'node:crypto';

import { Registry } from 'prom-client';

import type { Connection } from '../../hack/control-plane/connection.ts';
import { ActivityRegistry } from '../../pkg/activity/registry.ts';
import type { ActivityResults } from '../../pkg/controllers/machine/calls/results.ts';
import { MACHINE_FINALIZER } from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import type { MachineClass } from '../../pkg/apis/machine/v1alpha1/machine-class.ts';
import type { KubeObject } from '../../pkg/apis/meta.ts';
import type { Node, VolumeAttachment } from '../../pkg/apis/wire.ts';
import type { ReflectedInformer } from '../../pkg/cache/reflected-informer.ts';
import { SystemClock } from '../../pkg/clock/system-clock.ts';
import { CLASS_INDEX, classIndex } from '../../pkg/indexes/class-index.ts';
import { wakeMachineClasses } from '../../pkg/controllers/machine-class/wake.ts';
import { Fleet } from '../../pkg/controllers/machines/fleet.ts';
import { ReplacementPace } from '../../pkg/controllers/machines/pace.ts';
import { MachineController } from '../../pkg/controllers/machine/controller.ts';
import { SETTINGS } from '../fakes/machine-settings.ts';
import { MACHINE_EVENT_SOURCE } from '../../pkg/controllers/machines/events.ts';
import type { MachineSettings } from '../../pkg/controllers/machines/settings.ts';
import { wakeMachines } from '../../pkg/controllers/machine/wake.ts';
import { MACHINE_INDEXES, NODE_INDEXES, VOLUME_ATTACHMENT_INDEXES } from '../../pkg/indexes/machine-indexes.ts';
import { SecretContents } from '../../pkg/controllers/class-secrets/secret-contents.ts';
import { SECRET_INDEX, secretIndex } from '../../pkg/indexes/secret-references.ts';
import { createDrainer } from '../../pkg/drain/drainer.ts';
import { DrainLimits } from '../../pkg/drain/limits.ts';
import { podsOnNode } from '../../pkg/drain/node-pods.ts';
import { ConfiguredDrivers } from '../../pkg/driver/drivers.ts';
import { GatedDriver } from '../../pkg/driver/gated-driver.ts';
import { Simulation } from '../../pkg/drivers/sim/simulation.ts';
import { eventsAbout } from '../../pkg/events/event-sink.ts';
import { EventRecorder } from '../../pkg/events/recorder.ts';
import { isNotFound } from '../../pkg/kube/errors.ts';
import { HttpListWatch } from '../../pkg/kube/list-watch.ts';
import { mergePatch } from '../../pkg/kube/patch.ts';
import { machineClasses, machines, nodes, pods, secrets, volumeAttachments } from '../../pkg/kube/resource.ts';
import { silentLogger } from '../../pkg/log/logger.ts';
import { activityMetrics } from '../../pkg/metrics/activity.ts';
import { driverMetrics } from '../../pkg/metrics/driver.ts';
import { eventMetrics } from '../../pkg/metrics/events.ts';
import { machineMetrics } from '../../pkg/metrics/machine.ts';
import { queueMetrics } from '../../pkg/metrics/queue.ts';
import { reconcileMetrics } from '../../pkg/metrics/reconcile.ts';
import { makeLoop } from '../../pkg/parts/loop.ts';
import { singleTarget } from '../../pkg/targets/single-target.ts';
import { trimNode, trimVolumeAttachment } from '../../pkg/targets/trim.ts';
import type { KeyedQueue } from '../../pkg/workqueue/keyed-queue.ts';
import { forCreation, machine, machineClass, secret } from '../builders.ts';
import { connect, namespace } from '../env/environment.ts';
import { eventually } from '../expect/eventually.ts';
import { KubeSession, openGate } from './kube-session.ts';
import { asMachinist, grant } from './shipped-roles.ts';

/** How a world differs from the usual one. */
export interface MachineWorldOptions {
  readonly connection?: Connection;
  readonly userData?: string;
  readonly settings?: Partial<MachineSettings>;
  /** Whether the driver promises to find what it began; it does, unless told otherwise. */
  readonly idempotentCreate?: boolean;
}

/** What a controller reads beside Machines and Nodes; outlives it. */
interface Sources {
  readonly classes: ReflectedInformer<MachineClass>;
  readonly metadata: ReflectedInformer<KubeObject>;
  readonly attachments: ReflectedInformer<VolumeAttachment>;
}

/**
 * The machine controller on the real API server, with the permissions that are shipped, over a simulated cloud whose VMs become
 * Nodes of the same server. Machines have names that no other test uses, because Nodes have no namespace.
 */
export class MachineWorld implements AsyncDisposable {
  readonly namespace: string;
  /** Does what users do. */
  readonly user: KubeSession;
  /** What the controller has asked the server. */
  readonly session: KubeSession;
  readonly cloud: Simulation;
  readonly machines: ReflectedInformer<Machine>;
  readonly nodes: ReflectedInformer<Node>;
  readonly metrics = new Registry();
  readonly #disposables: AsyncDisposableStack;
  readonly #serial = randomBytes(4).toString('hex');
  readonly #settings: MachineSettings;
  readonly #sources: Sources;
  #end: () => Promise<void>;

  private constructor(
    parts: { namespace: string; user: KubeSession; session: KubeSession; cloud: Simulation },
    options: MachineWorldOptions,
    disposables: AsyncDisposableStack,
  ) {
    this.namespace = parts.namespace;
    this.user = parts.user;
    this.session = parts.session;
    this.cloud = parts.cloud;
    this.#disposables = disposables;
    const { session } = parts;
    this.machines = session.informer(
      machines,
      { namespace: parts.namespace },
      { indexes: { ...MACHINE_INDEXES, [CLASS_INDEX]: classIndex } },
    );
    this.nodes = session.informer(nodes, {}, { indexes: NODE_INDEXES, transform: trimNode, cluster: 'target' });
    this.#settings = { ...SETTINGS, ...options.settings };
    this.#sources = this.#watch();
    this.#end = this.#run();
    disposables.defer(() => this.#end());
  }

  /** Ends the controller with all that it began and knew, and starts another on what the API server and the cloud have. */
  async restart(): Promise<void> {
    await this.#end();
    this.#end = this.#run();
  }

  /** A running world; `await using world = await MachineWorld.open()`. */
  static async open(options: MachineWorldOptions = {}): Promise<MachineWorld> {
    const { connection = connect() } = options;
    await using opening = new AsyncDisposableStack();
    const api = connection.api();
    opening.defer(() => api.close());
    const ns = opening.use(await namespace(connection));
    await grant(api, 'control-machine-controller', ns.name);
    await grant(api, 'target', ns.name);
    const cloud = opening.use(
      await Simulation.start({
        clock: new SystemClock(),
        log: silentLogger,
        seed: 'machine-world',
        settings: {
          latencyMs: { create: 20, initialize: 5, status: 5, delete: 20, list: 5, join: 100 },
          quota: Number.POSITIVE_INFINITY,
        },
        capabilities: { idempotentCreate: options.idempotentCreate ?? true },
        // A kube-controller-manager calls Nodes unhealthy that renew no Lease, which slow tests would live to see.
        cluster: { kubeconfig: connection.kubeconfig, nodeLeases: true, podStopMs: 10 },
      }),
    );
    const user = opening.use(new KubeSession(connection));
    const endpoint = await asMachinist(connection);
    const session = opening.use(new KubeSession(connection, { transport: { endpoint } }));
    const world = new MachineWorld({ namespace: ns.name, user, session, cloud }, options, opening.move());
    await world.#provideClass(options.userData ?? 'token: <<BOOTSTRAP_TOKEN>>');
    await session.informers.waitForSync(AbortSignal.timeout(20_000));
    return world;
  }

  /** Creates a Machine as a MachineSet does, and returns its name. */
  async create(change: (m: ReturnType<typeof machine>) => void = () => undefined): Promise<string> {
    const made = machine((m) => {
      m.metadata.namespace = this.namespace;
      m.metadata.name = `${this.prefix}${randomBytes(3).toString('hex')}`;
      m.metadata.labels = {};
      m.metadata.finalizers = [MACHINE_FINALIZER];
      m.spec = { class: { kind: 'MachineClass', name: 'class-1' } };
      change(m);
    });
    await this.user.writer.create('create', machines, forCreation(made));
    return made.metadata.name;
  }

  /** What the names of all Machines of this world begin with. */
  get prefix(): string {
    return `m-${this.#serial}-`;
  }

  /** Reads a Machine live. */
  read(name: string): Promise<Machine> {
    return this.user.reader.get(machines, { namespace: this.namespace, name });
  }

  /** Asks for the deletion of a Machine. */
  async delete(name: string): Promise<void> {
    const { uid } = (await this.read(name)).metadata;
    await this.user.writer.delete('destroy', machines, { namespace: this.namespace, name }, { uid });
  }

  /** Changes a Machine in a way that means nothing to anybody. */
  async touch(name: string): Promise<void> {
    const patch = mergePatch(await this.read(name), {
      metadata: { labels: { touched: randomBytes(4).toString('hex') } },
    });
    await this.user.writer.patch('change', machines, { namespace: this.namespace, name }, patch);
  }

  /** Resolves with the Machine when it is in that phase. */
  inPhase(name: string, phase: string): Promise<Machine> {
    let seen: Machine | undefined;
    return eventually(
      async () => {
        seen = await this.read(name);
        if (seen.status?.currentStatus?.phase !== phase) throw new Error(`not ${phase} yet`);
        return seen;
      },
      { timeoutMs: 20_000, describe: () => `${name} to be ${phase}: ${JSON.stringify(seen?.status)}` },
    );
  }

  /** Resolves when the Machine is gone. */
  async gone(name: string): Promise<void> {
    await eventually(() => this.isMissing(() => this.read(name)), {
      timeoutMs: 20_000,
      describe: () => `${name} to go: ${JSON.stringify(this.machines.get(`${this.namespace}/${name}`)?.status)}`,
    });
  }

  /** Whether a live read says NotFound. */
  async isMissing(get: () => Promise<KubeObject>): Promise<boolean> {
    try {
      await get();
      return false;
    } catch (err) {
      if (isNotFound(err)) return true;
      throw err;
    }
  }

  /** What the controller has asked for since the last call, reads by informers left out, as `verb resource`. */
  takeRequests(): string[] {
    const sent = this.session.requests.splice(0).filter(({ verb }) => verb !== 'watch' && verb !== 'list');
    return sent.map(({ verb, resource, code }) => `${verb} ${resource} ${code}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const left = (await this.user.reader.list(machines, { namespace: this.namespace })).items;
    for (const one of left) await this.delete(one.metadata.name);
    for (const one of left) await this.gone(one.metadata.name);
    await this.#disposables.disposeAsync();
  }

  #watch(): Sources {
    const { session } = this;
    const selection = { namespace: this.namespace };
    const classes = session.informer(machineClasses, selection, { indexes: { [SECRET_INDEX]: secretIndex } });
    const metadata = session.informer<KubeObject>(secrets, { ...selection, metadataOnly: true });
    const attachments = session.informer(
      volumeAttachments,
      {},
      { indexes: { ...VOLUME_ATTACHMENT_INDEXES, persistentVolume: () => [] }, transform: trimVolumeAttachment },
    );
    return { classes, metadata, attachments };
  }

  /** Starts a controller; returns what ends it. */
  #run(): () => Promise<void> {
    const { session, metrics } = this;
    metrics.clear();
    const { clock, reader, writer, transport } = session;
    const { classes, metadata, attachments } = this.#sources;
    const settings = this.#settings;
    const recorder = new EventRecorder({
      source: { component: MACHINE_EVENT_SOURCE },
      writer,
      clock,
      log: silentLogger,
      metrics: eventMetrics(metrics),
    });
    const queues: KeyedQueue[] = [];
    const activities = new ActivityRegistry<ActivityResults>({
      clock,
      log: silentLogger,
      metrics: activityMetrics(metrics),
      limits: { create: 50, initialize: 50, status: 50, delete: 50, drain: 50 },
      enqueue: (key) => queues[0]?.add(key),
    });
    const driver = new GatedDriver({
      provider: 'sim',
      driver: this.cloud.driver,
      gate: openGate,
      clustersOf: () => [],
      clusterID: 'cluster-1',
      clock,
      metrics: driverMetrics(metrics),
    });
    const controller = new MachineController({
      machines: this.machines,
      fleet: new Fleet({ machines: this.machines }),
      pace: new ReplacementPace({ clock }),
      classes,
      secrets: new SecretContents({ reader, secrets: metadata, classes, clock }),
      reader,
      writer,
      targets: singleTarget({ cluster: 'target', reader, writer, nodes: this.nodes, volumeAttachments: attachments }),
      activities,
      drivers: new ConfiguredDrivers([driver]),
      drain: createDrainer({
        clock,
        log: silentLogger,
        limits: new DrainLimits(),
        podsOf: (_target, nodeName) =>
          new HttpListWatch({ transport, resource: pods, selection: { fieldSelector: podsOnNode(nodeName) } }),
      }),
      gate: openGate,
      trust: { trustedForMs: () => Number.POSITIVE_INFINITY, graceLeftMs: () => 0, blindMs: () => 0 },
      outages: () => [],
      recorder: eventsAbout(machines, recorder),
      metrics: machineMetrics(metrics, this.machines),
      clock,
      settings,
    });
    const loop = makeLoop(
      {
        clock,
        log: silentLogger,
        queueMetrics: queueMetrics(metrics),
        reconcileMetrics: reconcileMetrics(metrics),
      },
      {
        controller: 'machine',
        queue: 'machine',
        concurrency: 10,
        reconcile: (key, signal, log) => controller.reconcile(key, signal, log),
      },
    );
    queues.push(loop);
    const { machines: all } = this;
    wakeMachines({ machines: all, nodes: [this.nodes], queue: loop, activities, controller });
    const ignored = { add: () => undefined, addAfter: () => undefined };
    wakeMachineClasses({ classes, machines: all, queue: ignored, machineQueue: loop });
    return async () => {
      await Promise.all([loop.stop(1_000), activities.stop(1_000)]);
      await recorder.stop(1_000);
    };
  }

  async #provideClass(userData: string): Promise<void> {
    const { namespace: ns, user } = this;
    await user.writer.create(
      'create',
      secrets,
      forCreation(
        secret((s) => {
          s.metadata.namespace = ns;
          s.data['userData'] = Buffer.from(userData).toString('base64');
        }),
      ),
    );
    await user.writer.create(
      'create',
      machineClasses,
      forCreation(
        machineClass((c) => {
          c.metadata.namespace = ns;
          c.metadata.finalizers = [MACHINE_FINALIZER];
          // The zone is part of provider ids: two worlds share the Nodes of one server, and each begins to count its VMs at one.
          c.providerSpec = { zone: ns };
          c.secretRef = { name: 'secret-1', namespace: ns };
        }),
      ),
    );
  }
}
