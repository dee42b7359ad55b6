import { ServerCredentials } from '@grpc/grpc-js';

import { vmClassNameOf } from '../apis/machine/v1alpha1/defaults.ts';
import { LEARNED_NODE_ANNOTATION } from '../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../apis/machine/v1alpha1/machine.ts';
import type { MachineClass } from '../apis/machine/v1alpha1/machine-class.ts';
import type { MachineDeployment } from '../apis/machine/v1alpha1/machine-deployment.ts';
import { keyBeside, keyOf, refOf } from '../apis/meta.ts';
import type { Node } from '../apis/wire.ts';
import type { AutoscalerConfig } from '../operator/config/autoscaler.ts';
import type { AnnouncedTemplate, ReadAnnounced } from '../controllers/announced-template.ts';
import { MACHINE_DEPLOYMENT_EVENT_SOURCE } from '../controllers/machine-deployment/events.ts';
import type { ServedWorld } from '../controllers/world.ts';
import { nodeAccess } from '../controllers/machine-facts/node-access.ts';
import { ReloadedServerCredentials, TlsFileError } from '../driver/grpc/reloaded-server-credentials.ts';
import { eventsAbout, type ObjectEvents } from '../kube/events/event-sink.ts';
import { CONTROL } from '../kube/gate/gate.ts';
import { machinesOfNode } from '../operator/indexes/machines-of-node.ts';
import { isForbiddenOrNotServed } from '../kube/client/errors.ts';
import { mergePatchIfUnchanged } from '../kube/client/patch.ts';
import { machineClasses, machineDeployments } from '../kube/client/resource.ts';
import { MANAGER_LEASE } from '../kube/leader/names.ts';
import type { Operator } from '../operator/operator.ts';
import type { Service } from '../operator/service.ts';
import { hexOf } from '../base/random/random.ts';
import { roleFiles } from '../operator/preflight/permissions.ts';
import { CannotStartError } from '../operator/process/lifecycle.ts';
import type { Target } from '../kube/targets/targets.ts';
import { answering, type Unavailable, whyUnavailable } from './answer.ts';
import { CloudProvider } from './cloud-provider.ts';
import { GrpcServer, type GrpcServerOptions } from './grpc-server.ts';
import { NodeGroups } from './groups.ts';
import { LearnedShapes } from './learned.ts';
import { MachineControllers } from './machine-controllers.ts';
import { Membership } from './membership.ts';
import { autoscalerMetrics } from './metrics.ts';
import { mutations } from './mutations/index.ts';
import { Places } from './places.ts';
import { ownOptions } from './options.ts';
import { RunningChanges } from './running-changes.ts';

/** Of names that two processes must not give alike. */
const EPOCH_DIGITS = 8;

export type OpenPort = Pick<GrpcServer, 'address' | 'drop' | 'close'>;
/** Opens it: simulations have no sockets. */
export type ListenForAutoscalers = (options: GrpcServerOptions) => Promise<OpenPort>;

const overGrpc: ListenForAutoscalers = (options) => GrpcServer.listen(options);

/** What serves cluster-autoscalers in this process: nothing unless flag `--autoscaler-grpc-address` is set. */
export function autoscaler(
  operator: Operator,
  worlds: readonly ServedWorld[],
  listen: ListenForAutoscalers = overGrpc,
): readonly Service[] {
  const { autoscaler: config } = operator.config;
  if (config === undefined) return [];
  const [target] = operator.under(MANAGER_LEASE).targets.all();
  const announcing = worlds.flatMap(({ announced }) => announced ?? []);
  return target === undefined ? [] : [new AutoscalerPort(operator, { config, target, announcing, listen })];
}

interface PortOptions {
  readonly config: AutoscalerConfig;
  /** Whose Nodes autoscalers look at. */
  readonly target: Target;
  readonly announcing: readonly ReadAnnounced[];
  readonly listen: ListenForAutoscalers;
}

/**
 * The port for cluster-autoscalers. It is open in every replica; the one that holds the Lease of the owner controllers answers, once its
 * caches have caught up and while no cluster has an outage. The others answer UNAVAILABLE and let the client connect anew, so that it finds
 * the leader behind a Service.
 */
class AutoscalerPort implements Service {
  readonly name = "the autoscaler's port";
  readonly lease = MANAGER_LEASE;
  readonly #operator: Operator;
  readonly #options: PortOptions;
  readonly #groups: NodeGroups;
  readonly #learned = new LearnedShapes();
  readonly #provider: CloudProvider;
  /** Undefined without leader election: a Lease that is there nobody may have renewed for years. */
  readonly #machineControllers: MachineControllers | undefined;
  readonly #changes = new RunningChanges();
  readonly #events: ObjectEvents<MachineDeployment>;
  /** What was last told of a MachineDeployment, by key. */
  readonly #reported = new Map<string, string>();
  /** Classes that are being written to, or may not be, by key. */
  readonly #storing = new Set<string>();
  readonly #metrics: ReturnType<typeof autoscalerMetrics>;
  #credentials: ReloadedServerCredentials | undefined;
  #server: OpenPort | undefined;
  #works = false;

  constructor(operator: Operator, options: PortOptions) {
    const {
      config,
      target: { nodes },
    } = options;
    const { caches, clock, registry } = operator;
    const { targets, writer } = operator.under(MANAGER_LEASE);
    const nodesOf = (machine: Machine): readonly Node[] => {
      const target = targets.of(machine);
      return target === undefined ? [] : nodeAccess(target, caches.machines).ofMachine(machine);
    };
    const { machines, machineSets, machineDeployments: deployments } = caches;
    this.#operator = operator;
    this.#options = options;
    this.#events = eventsAbout(machineDeployments, operator.recorder(MACHINE_DEPLOYMENT_EVENT_SOURCE));
    const { leader, clusters } = operator.config;
    if (leader.enabled) {
      this.#machineControllers = new MachineControllers({
        reader: operator.reader,
        namespace: leader.namespace,
        clock,
      });
    }
    this.#groups = new NodeGroups({ deployments, namespace: clusters.namespace, listed: config.nodes });
    const membership = new Membership({ machines, machineSets, machineDeployments: deployments, nodes, nodesOf });
    const places = new Places(hexOf(operator.random, EPOCH_DIGITS));
    deployments.onChange((old, current) => {
      if (old !== undefined && current === undefined) places.forget(old.metadata.uid);
    });
    const deps = { machines, machineSets, machineDeployments: deployments, targets, clock, writer, membership, places };
    this.#provider = new CloudProvider({
      groups: this.#groups,
      membership,
      machineDeployments: deployments,
      machineClasses: caches.classes,
      learned: this.#learned,
      announced: (machineClass, signal) => this.#announced(machineClass, signal),
      mutations: this.#changes.of(mutations({ ...deps, reader: operator.reader, recorder: this.#events })),
      places,
      catchUp: (signal) => this.#catchUp(signal),
      gpu: config,
      clock,
    });
    this.#metrics = autoscalerMetrics(registry, () => (this.#works ? this.#provider.sizes() : []));
    caches.classes.onChange((old, current) => this.#learned.changed(old, current, clock.now()));
    nodes.onChange((_old, node) => node && this.#learnFrom(node));
  }

  async start(): Promise<void> {
    const { clock, log } = this.#operator;
    const { listen, tls, clientNames } = this.#options.config;
    const { leases, clusters, leader } = this.#operator.config;
    try {
      const onAuthority = (): void => this.#server?.drop();
      const port = "the autoscaler's port";
      this.#credentials =
        tls &&
        (await ReloadedServerCredentials.load({ files: tls, port, rejectsStrangers: false, clock, log, onAuthority }));
      const answer = answering({
        rpcs: this.#provider,
        clientNames: tls && clientNames,
        unavailable: () => this.#unavailable(),
        drop: () => this.#server?.drop(),
        roleFile: roleFiles(
          { leases, namespace: clusters.namespace, leaseNamespace: leader.namespace, hasCells: false },
          [],
        ).control,
        metrics: this.#metrics,
        clock,
        log,
      });
      const credentials = this.#credentials ?? ServerCredentials.createInsecure();
      this.#server = await this.#options.listen({ listen, credentials, answer, clock });
    } catch (err) {
      const flag = err instanceof TlsFileError ? '--autoscaler-tls-*' : '--autoscaler-grpc-address';
      throw new CannotStartError(`${flag}: ${err instanceof Error ? err.message : String(err)}`, { cause: err });
    }
    log.info({ listen: this.#server.address }, 'listening for autoscalers');
  }

  begin(): void {
    const { caches, log } = this.#operator;
    for (const name of this.#groups.missing()) {
      log.warn({ key: name }, 'flag --nodes lists a MachineDeployment that does not exist');
    }
    caches.machineDeployments.onChange((old, current) => this.#report(old, current));
    this.#works = true;
    // Some were seen before their Machines and classes were.
    for (const node of this.#options.target.nodes.list()) this.#learnFrom(node);
  }

  async end(): Promise<void> {
    this.#works = false;
    await this.#changes.close();
  }

  async stop(): Promise<void> {
    this.#credentials?.stop();
    await this.#server?.close();
  }

  #unavailable(): Unavailable | undefined {
    const { config, outages } = this.#operator;
    const { gate } = this.#operator.under(MANAGER_LEASE);
    const lease = `${config.leader.namespace}/${MANAGER_LEASE}`;
    return whyUnavailable({ lease, works: this.#works, trustedForMs: gate.trustedForMs([]), outages });
  }

  /**
   * Resolves when a change would be admitted, so that no watch is broken, MachineDeployments are known as the API server has them, and
   * somebody works on Machines. There are few MachineDeployments; all Machines and Nodes would have to be listed each time.
   */
  async #catchUp(signal: AbortSignal): Promise<void> {
    await this.#operator.under(MANAGER_LEASE).gate.admit('change', [CONTROL, this.#options.target.cluster], signal);
    await Promise.all([
      this.#operator.untilPresent(machineDeployments, signal),
      this.#machineControllers?.check(signal),
    ]);
  }

  /** A template that cannot be read says nothing, and is no failure of the group: that is told where nobody knows any better. */
  async #announced(machineClass: MachineClass, signal: AbortSignal): Promise<AnnouncedTemplate | undefined> {
    const { reader, log } = this.#operator;
    try {
      for (const read of this.#options.announcing) {
        const announced = await read(reader, machineClass, signal);
        if (announced !== undefined) return announced;
      }
      return undefined;
    } catch (err) {
      signal.throwIfAborted();
      log.debug({ class: keyOf(machineClass), err }, 'could not read the template of a class');
      return undefined;
    }
  }

  #learnFrom(node: Node): void {
    const { machines, classes } = this.#operator.caches;
    for (const machine of machinesOfNode(machines, node)) {
      const machineClass = classes.get(keyBeside(machine, vmClassNameOf(machine)));
      if (machineClass === undefined) continue;
      this.#learned.see(machine, node, machineClass);
      void this.#store(machineClass);
    }
  }

  /** Lets the next process know it too, once for each version of the class. Never rejects. */
  async #store(machineClass: MachineClass): Promise<void> {
    const text = this.#works ? this.#learned.toStore(machineClass) : undefined;
    const key = keyOf(machineClass);
    if (text === undefined || this.#storing.has(key)) return;
    const { writer } = this.#operator.under(MANAGER_LEASE);
    const patch = mergePatchIfUnchanged(machineClass, {
      metadata: { annotations: { [LEARNED_NODE_ANNOTATION]: text } },
    });
    this.#storing.add(key);
    try {
      await this.#changes.run(() => writer.patch('change', machineClasses, refOf(machineClass), patch));
      this.#storing.delete(key);
    } catch (err) {
      this.#operator.log.debug({ key, err }, 'could not store the observed capacity of the Nodes of a class');
      // What may not be written is not tried again with each Node.
      if (!isForbiddenOrNotServed(err)) this.#storing.delete(key);
    }
  }

  /** Says once what keeps a MachineDeployment from being scaled as its annotations ask for. */
  #report(old: MachineDeployment | undefined, current: MachineDeployment | undefined): void {
    if (current === undefined) return void (old && this.#reported.delete(keyOf(old)));
    const fault = this.#groups.faultOf(current);
    const faults = [...(fault === undefined ? [] : [fault]), ...ownOptions(current).faults];
    const message = faults.join('; ');
    if ((this.#reported.get(keyOf(current)) ?? '') === message) return;
    this.#reported.set(keyOf(current), message);
    if (message !== '') this.#events.event({ object: current, type: 'Warning', reason: 'InvalidNodeGroup', message });
  }
}
