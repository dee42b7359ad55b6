import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import { Membership } from '../../pkg/autoscaler/membership.ts';
import type { Mutated } from '../../pkg/autoscaler/mutations/decision.ts';
import { mutations, type Mutations } from '../../pkg/autoscaler/mutations/index.ts';
import { Places } from '../../pkg/autoscaler/places.ts';
import { RunningChanges } from '../../pkg/autoscaler/running-changes.ts';
import { nodeAccess } from '../../pkg/controllers/machine-facts/node-access.ts';
import { MACHINE_INDEXES, NODE_INDEXES } from '../../pkg/operator/indexes/machine-indexes.ts';
import { CONTROLLER_INDEX, controllerIndex } from '../../pkg/operator/indexes/owner-index.ts';
import type { Interceptor } from '../../pkg/kube/gate/interceptor.ts';
import { machineDeployments, machines, machineSets, nodes } from '../../pkg/kube/client/resource.ts';
import type { ReflectedInformer } from '../../pkg/kube/cache/reflected-informer.ts';
import type { Connection } from '../../hack/control-plane/connection.ts';
import type { Occurrence } from '../../pkg/kube/events/correlator.ts';
import { eventsAbout } from '../../pkg/kube/events/event-sink.ts';
import { KubeSession } from './kube-session.ts';
import { singleTarget } from '../../pkg/kube/targets/targets.ts';

/** How long a client waits. */
const CALL_MS = 30_000;

/**
 * Changes node group `d` of a namespace as the port for autoscalers does, from caches of its own: what the manager writes it sees only
 * when the watch delivers it, as after a change of leader.
 */
export class GroupChanger implements AsyncDisposable {
  readonly session: KubeSession;
  readonly events: Occurrence[] = [];
  readonly machines: ReflectedInformer<Machine>;
  readonly #namespace: string;
  readonly #mutations: Mutations;
  readonly #synced: Promise<unknown>;

  constructor(connection: Connection, namespace: string, intercept: Interceptor = (_mutation, send) => send()) {
    const session = new KubeSession(connection, { writer: { intercept } });
    const indexes = { [CONTROLLER_INDEX]: controllerIndex };
    const selection = { namespace };
    const deployments = session.informer(machineDeployments, selection);
    const sets = session.informer(machineSets, selection, { indexes });
    const all = session.informer(machines, selection, { indexes: { ...indexes, ...MACHINE_INDEXES } });
    const known = session.informer(nodes, {}, { indexes: NODE_INDEXES });
    const targets = singleTarget({
      cluster: 'target',
      reader: session.reader,
      writer: session.writer,
      nodes: known,
      volumeAttachments: undefined as never, // nothing is detached here
    });
    const nodesOf = (machine: Machine) => {
      const target = targets.of(machine);
      return target === undefined ? [] : nodeAccess(target, all).ofMachine(machine);
    };
    const membership = new Membership({
      machines: all,
      machineSets: sets,
      machineDeployments: deployments,
      nodes: known,
      nodesOf,
    });
    const { reader, writer, clock } = session;
    this.#mutations = mutations({
      machineDeployments: deployments,
      machineSets: sets,
      machines: all,
      targets,
      reader,
      writer,
      clock,
      membership,
      places: new Places('x'),
      changes: new RunningChanges(),
      recorder: eventsAbout(machineDeployments, { record: (occurrence) => void this.events.push(occurrence) }),
    });
    this.session = session;
    this.machines = all;
    this.#namespace = namespace;
    this.#synced = Promise.all([deployments, sets, all, known].map((one) => one.waitForSync(session.signal)));
  }

  /** The size that autoscalers are told. */
  async increase(delta: number): Promise<Mutated> {
    await this.#synced;
    return this.#mutations.increase(this.#group, delta, this.#call);
  }

  async decrease(delta: number): Promise<Mutated> {
    await this.#synced;
    return this.#mutations.decrease(this.#group, delta, this.#call);
  }

  /** Nodes by name, Machines without one by placeholder. */
  async delete(...names: readonly string[]): Promise<Mutated> {
    await this.#synced;
    const nodesNamed = names.map((name) => {
      const isPlaceholder = name.startsWith('requested://');
      return { name, providerId: isPlaceholder ? name : '', labels: {}, annotations: {} };
    });
    return this.#mutations.delete(this.#group, nodesNamed, this.#call);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.session[Symbol.asyncDispose]();
  }

  get #group() {
    return { id: 'd', namespace: this.#namespace, name: 'd', min: 0, max: 10 };
  }

  get #call() {
    const { clock, signal } = this.session;
    const untilMs = clock.monotonicMs() + CALL_MS;
    return { peer: 'ca.example', signal, leftMs: () => untilMs - clock.monotonicMs(), report: () => undefined };
  }
}
