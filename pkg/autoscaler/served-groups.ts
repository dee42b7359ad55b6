import { vmClassNameOf } from '../apis/machine/v1alpha1/defaults.ts';
import { LEARNED_NODE_ANNOTATION } from '../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../apis/machine/v1alpha1/machine.ts';
import type { MachineClass } from '../apis/machine/v1alpha1/machine-class.ts';
import type { MachineDeployment } from '../apis/machine/v1alpha1/machine-deployment.ts';
import { keyBeside, keyOf, refOf } from '../apis/meta.ts';
import type { Node } from '../apis/wire.ts';
import { hexOf } from '../base/random/random.ts';
import type { AnnouncedTemplate, ReadAnnounced } from '../controllers/announced-template.ts';
import { MACHINE_DEPLOYMENT_EVENT_SOURCE } from '../controllers/machine-deployment/events.ts';
import { observeDeployment } from '../controllers/machine-deployment/observed.ts';
import { nodeAccess } from '../controllers/machine-facts/node-access.ts';
import type { HeldBack } from '../health/held-work.ts';
import { isForbiddenOrNotServed } from '../kube/client/errors.ts';
import { mergePatchIfUnchanged } from '../kube/client/patch.ts';
import { machineClasses, machineDeployments } from '../kube/client/resource.ts';
import { eventsAbout, type ObjectEvents } from '../kube/events/event-sink.ts';
import { type Cluster, CONTROL } from '../kube/gate/gate.ts';
import { MANAGER_LEASE } from '../kube/leader/names.ts';
import type { Target } from '../kube/targets/targets.ts';
import type { AutoscalerConfig } from '../operator/config/autoscaler.ts';
import { machinesOfNode } from '../operator/indexes/machines-of-node.ts';
import type { Operator } from '../operator/operator.ts';
import { type Unavailable, whyUnavailable } from './answer.ts';
import { CloudProvider } from './cloud-provider.ts';
import { NodeGroups } from './groups.ts';
import { LearnedShapes } from './learned.ts';
import type { MachineControllers } from './machine-controllers.ts';
import { Membership } from './membership.ts';
import { type AutoscalerMetrics, autoscalerMetrics } from './metrics.ts';
import { owedBy } from './mutations/group-state.ts';
import { mutations } from './mutations/index.ts';
import { ownOptions } from './options.ts';
import { Places } from './places.ts';
import { ServerError, Status } from './rpc-error.ts';
import type { Rpcs } from './rpcs.ts';
import { RunningChanges } from './running-changes.ts';

/** Of names that two processes must not give alike. */
const EPOCH_DIGITS = 8;

export interface ServedGroupsOptions {
  readonly config: AutoscalerConfig;
  /** Whose Nodes autoscalers look at. */
  readonly target: Target;
  readonly announcing: readonly ReadAnnounced[];
  /** Whether others work on the Machines, as far as it can be seen; undefined: those who answer do so themselves, or nobody can tell. */
  readonly machineControllers: Pick<MachineControllers, 'check'> | undefined;
  /** Namespace and name of the Lease under which calls are answered. */
  readonly lease: string;
  /** What waits although the work has begun. */
  readonly held: () => readonly HeldBack[];
}

/** The node groups of one namespace: what autoscalers are told of them and may change, from the beginning of a leadership to its end. */
export class ServedGroups {
  readonly metrics: AutoscalerMetrics;
  readonly #operator: Operator;
  readonly #options: ServedGroupsOptions;
  readonly #groups: NodeGroups;
  readonly #learned = new LearnedShapes();
  readonly #provider: CloudProvider;
  readonly #changes = new RunningChanges();
  readonly #events: ObjectEvents<MachineDeployment>;
  /** What was last told of a MachineDeployment, by key. */
  readonly #reported = new Map<string, string>();
  /** Classes that are being written to, or may not be, by key. */
  readonly #storing = new Set<string>();
  readonly #ending = new AbortController();
  #works = false;

  constructor(operator: Operator, options: ServedGroupsOptions) {
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
    const { namespace } = operator.config.clusters;
    this.#groups = new NodeGroups({ deployments, namespace, listed: config.nodes });
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
      mutations: mutations({ ...deps, reader: operator.reader, recorder: this.#events, changes: this.#changes }),
      places,
      owed: (deployment) => owedBy(deps, observeDeployment(deps, deployment)),
      catchUp: (signal) => this.#catchUp(AbortSignal.any([signal, this.#ending.signal])),
      gpu: config,
      clock,
      trust: operator.under(MANAGER_LEASE).gate,
      clusters: this.#clusters,
    });
    this.metrics = autoscalerMetrics(registry, () => (this.#works ? this.#provider.sizes() : []));
    caches.classes.onChange((old, current) => this.#learned.changed(old, current, clock.now()));
    nodes.onChange((_old, node) => node && this.#learnFrom(node));
  }

  /** What is answered. */
  get rpcs(): Rpcs {
    return this.#provider;
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

  /** Resolves when the last change has ended. */
  async end(): Promise<void> {
    this.#works = false;
    // What only waits would do so until the client gives up.
    this.#ending.abort(new ServerError(Status.UNAVAILABLE, 'this process no longer answers; call again'));
    await this.#changes.close();
  }

  /** Undefined: calls are answered. */
  unavailable(): Unavailable | undefined {
    const { outages } = this.#operator;
    const { gate } = this.#operator.under(MANAGER_LEASE);
    const { lease, held } = this.#options;
    return whyUnavailable({ lease, works: this.#works, trustedForMs: gate.trustedForMs([]), outages, held: held() });
  }

  get #clusters(): readonly Cluster[] {
    return [CONTROL, this.#options.target.cluster];
  }

  /**
   * Resolves when a change would be admitted, so that no watch is broken, MachineDeployments are known as the API server has them, and
   * somebody works on Machines. There are few MachineDeployments; all Machines and Nodes would have to be listed each time.
   */
  async #catchUp(signal: AbortSignal): Promise<void> {
    await this.#operator.under(MANAGER_LEASE).gate.admit('change', this.#clusters, signal);
    await Promise.all([
      this.#operator.untilPresent(machineDeployments, signal),
      this.#options.machineControllers?.check(signal),
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

  /** Lets the next process know it too. Never rejects. */
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
