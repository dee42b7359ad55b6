import { randomBytes } from 'node:crypto';

import type { Connection } from '../../hack/control-plane/connection.ts';
import { MACHINE_FINALIZER, MACHINE_NAME_LABEL } from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import type { KubeObject } from '../../pkg/apis/meta.ts';
import type { Node } from '../../pkg/apis/wire.ts';
import type { Lister } from '../../pkg/kube/cache/lister.ts';
import { SystemClock } from '../../pkg/base/clock/system-clock.ts';
import type { Driver } from '../../pkg/driver/driver.ts';
import { Simulation } from '../../packages/providers/sim/simulation.ts';
import { ignoreNotFound, isNotFound } from '../../pkg/kube/client/errors.ts';
import { mergePatch } from '../../pkg/kube/client/patch.ts';
import { machineClasses, machines, secrets } from '../../pkg/kube/client/resource.ts';
import { silentLogger } from '../../pkg/base/log/logger.ts';
import { forCreation, machine, machineClass, secret } from '../builders.ts';
import { apiServer } from '../env/api-server.ts';
import { namespace } from '../env/environment.ts';
import { eventually } from '../expect/eventually.ts';
import { KubeSession } from './kube-session.ts';
import { OperatorSession } from './operator-session.ts';
import { grant, type RoleFile } from './shipped-roles.ts';

/** Other tests share the host. */
const PATIENCE = { timeoutMs: 120_000 };

/** How a world differs from the usual one. */
export interface MachineWorldOptions {
  /** Of the server; otherwise that of the test is drawn. */
  readonly connection?: Connection;
  readonly userData?: string;
  /** Only the machine controller, unless told otherwise. */
  readonly controllers?: string;
  /** Flags of the program. */
  readonly flags?: Readonly<Record<string, string>>;
  /** Whether the driver promises to find what it began; it does, unless told otherwise. */
  readonly idempotentCreate?: boolean;
  /** Further shipped roles. */
  readonly roles?: readonly RoleFile[];
  /** What stands between the controller and the simulated cloud. */
  readonly wrap?: (driver: Driver) => Driver;
}

/**
 * The machine controller on an API server, real or simulated, with the permissions that are shipped, over a simulated cloud whose VMs become
 * Nodes of the same server. Machines have names that no other test uses, because Nodes have no namespace.
 */
export class MachineWorld implements AsyncDisposable {
  readonly connection: Connection;
  readonly namespace: string;
  /** Does what users do. */
  readonly user: KubeSession;
  readonly cloud: Simulation;
  readonly #disposables: AsyncDisposableStack;
  readonly #serial = randomBytes(4).toString('hex');
  readonly #start: () => Promise<OperatorSession>;
  #session: OperatorSession | undefined;

  private constructor(
    { connection, namespace: ns, user, cloud }: Pick<MachineWorld, 'connection' | 'namespace' | 'user' | 'cloud'>,
    start: () => Promise<OperatorSession>,
    disposables: AsyncDisposableStack,
  ) {
    this.connection = connection;
    this.namespace = ns;
    this.user = user;
    this.cloud = cloud;
    this.#start = start;
    this.#disposables = disposables;
    disposables.defer(() => this.#session?.[Symbol.asyncDispose]());
  }

  /** What the controller has asked the server. */
  get session(): OperatorSession {
    if (this.#session === undefined) throw new Error('no controller runs');
    return this.#session;
  }

  /** The Machines and the Nodes that the controller sees. */
  get machines(): Lister<Machine> {
    return this.session.caches.machines;
  }

  get nodes(): Lister<Node> {
    const { nodes: seen } = this.session;
    if (seen === undefined) throw new Error('no Nodes are cached');
    return seen;
  }

  /** Ends the controller with all that it began and knew, and starts another on what the API server and the cloud have then. */
  async restart(meanwhile: () => Promise<void> = async () => undefined): Promise<void> {
    await this.#session?.[Symbol.asyncDispose]();
    await meanwhile();
    this.#session = await this.#start();
  }

  /** A running world; `await using world = await MachineWorld.open()`. */
  static async open(options: MachineWorldOptions = {}): Promise<MachineWorld> {
    await using opening = new AsyncDisposableStack();
    const { connection } = opening.use(await apiServer(options.connection));
    const api = connection.api();
    opening.defer(() => api.close());
    const ns = opening.use(await namespace(connection));
    await grant(api, 'control-machine-controller', ns.name);
    await grant(api, 'control-identity', ns.name);
    await grant(api, 'target', ns.name);
    for (const role of options.roles ?? []) await grant(api, role, ns.name);
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
    const start = (): Promise<OperatorSession> =>
      OperatorSession.start({
        connection,
        subject: { user: 'machinist' },
        namespace: ns.name,
        controllers: options.controllers ?? 'machine',
        flags: { driver: 'sim=unix:///in-process', ...options.flags },
        hooks: { openDriver: () => options.wrap?.(cloud.driver) ?? cloud.driver },
      });
    const world = new MachineWorld({ connection, namespace: ns.name, user, cloud }, start, opening.move());
    await world.#provideClass(options.userData ?? 'token: <<BOOTSTRAP_TOKEN>>');
    await world.restart();
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
      { ...PATIENCE, describe: () => `${name} to be ${phase}: ${JSON.stringify(seen?.status)}` },
    );
  }

  /** Resolves with the Machine when it is Running and its Node shows whose it is: nothing is left to be done for either. */
  async settled(name: string): Promise<Machine> {
    const running = await this.inPhase(name, 'Running');
    await eventually(() => this.nodes.get(name)?.metadata.labels?.[MACHINE_NAME_LABEL] === name, {
      ...PATIENCE,
      describe: `Node ${name} to show whose it is`,
    });
    return running;
  }

  /** Resolves when the Machine is gone. */
  async gone(name: string): Promise<void> {
    await eventually(() => this.isMissing(() => this.read(name)), {
      ...PATIENCE,
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
    // One that is on its way already may have gone since it was listed.
    for (const one of left) await this.delete(one.metadata.name).catch(ignoreNotFound);
    for (const one of left) await this.gone(one.metadata.name);
    await this.#disposables.disposeAsync();
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
