import type { ClusterAPIMachine } from '../../../../pkg/worlds/cluster-api/api/machine.ts';
import {
  CLUSTER_API_PRE_DRAIN_HOOK_PREFIX,
  CLUSTER_API_PRE_TERMINATE_HOOK_PREFIX,
  CLUSTER_API_VERSIONED,
  PAUSED_ANNOTATION,
} from '../../../../pkg/worlds/cluster-api/api/keys.ts';
import type { Random } from '../../../../pkg/base/random/random.ts';
import { beUnready } from '../../world/acts.ts';
import { strayIn } from '../../world/at-rest.ts';
import type { MachinesWorld } from '../../world/machines-world.ts';
import type { Population } from '../../world/population.ts';
import { integerIn, oneOf, seededRandom } from '../../world/seeded-random.ts';
import type { WorldKind } from '../kind.ts';
import {
  CLUSTER,
  CLUSTER_API_KINDS,
  clusterPath,
  infrastructurePath,
  machinePath,
  madeOf,
  PROVIDER_DEFINITION,
} from './kinds.ts';
import { MachineLedger } from './machine-ledger.ts';
import { Provider } from './provider.ts';

const HOOKS = [CLUSTER_API_PRE_DRAIN_HOOK_PREFIX, CLUSTER_API_PRE_TERMINATE_HOOK_PREFIX].map(
  (prefix) => `${prefix}/user`,
);
/** No more Machines are made. */
const MOST_MACHINES = 8;
const CONTROLLERS = 'machine-deployment,machine-set,machine,machine-class,secret,cluster-api';
const SYNCED_LABEL = 'node.cluster.x-k8s.io/user';

/** Machines of a Cluster, whose infrastructure a provider makes. */
export class ClusterMachines implements Population {
  readonly #world: MachinesWorld;
  readonly ledger: MachineLedger;
  readonly #acts: Readonly<Record<string, (random: Random) => void>>;
  #made = 0;

  constructor(world: MachinesWorld, count: number) {
    this.#world = world;
    this.ledger = new MachineLedger(world);
    Provider.serve(world);
    this.#acts = {
      make: () => (this.#machines.length < MOST_MACHINES ? this.#make() : undefined),
      deleteMachine: (random) => this.#ofOne(random, (name) => this.#delete(name)),
      hook: (random) => this.#ofOne(random, (name) => this.#annotate(name, oneOf(random, HOOKS), '')),
      unhook: (random) => this.#ofOne(random, (name) => this.#annotate(name, oneOf(random, HOOKS), null)),
      pause: (random) => this.#ofOne(random, (name) => this.#annotate(name, PAUSED_ANNOTATION, '')),
      unpause: (random) => this.#ofOne(random, (name) => this.#annotate(name, PAUSED_ANNOTATION, null)),
      pauseCluster: (random) => this.#pauseCluster(random() < 0.5),
      label: (random) =>
        this.#ofOne(random, (name) =>
          this.#change(name, { labels: { [SYNCED_LABEL]: random() < 0.3 ? null : String(integerIn(random, 1, 3)) } }),
        ),
    };
    for (let i = 0; i < count; i++) this.#make();
  }

  act(names: readonly string[], random: Random): void {
    this.#acts[oneOf(random, names)]?.(random);
  }

  /** Nodes fall silent and come back. */
  mishap(random: Random): void {
    const { nodes, trace } = this.#world;
    if (nodes.length === 0) return;
    const { name } = oneOf(random, nodes).metadata;
    const readiness = random() < 0.5 ? 'not-ready' : 'unknown';
    trace.add(`Node ${name} is ${readiness} for a while`);
    beUnready(this.#world, [name], readiness, random() * 600_000);
  }

  setBack(): void {
    throw new Error('control clusters of this world are not set back');
  }

  /** All hooks and pauses are taken back. */
  calm(): void {
    this.#pauseCluster(false);
    for (const { metadata } of this.#machines) {
      const held = [...HOOKS, PAUSED_ANNOTATION].filter((key) => metadata.annotations?.[key] !== undefined);
      if (held.length === 0) continue;
      this.#change(metadata.name, { annotations: Object.fromEntries(held.map((key) => [key, null])) });
    }
  }

  expectProgress(): void {
    // No runbook asks anybody for anything.
  }

  isAsAsked(): boolean {
    const machines = this.#machines;
    const { cloud } = this.#world;
    return (
      cloud.size === machines.length &&
      this.#infrastructure.length === machines.length &&
      machines.every(
        ({ metadata, status }) =>
          metadata.deletionTimestamp === undefined &&
          status?.phase === 'Running' &&
          status.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') === true,
      )
    );
  }

  settle(): void {
    // What was asked for of one Machine does not end with that of others.
  }

  beginRest(): void {
    // Nobody asks anything.
  }

  leftovers(): readonly string[] {
    return strayIn(this.#world, this.#machines, ({ status }) => status?.nodeRef?.name);
  }

  untruths(): readonly string[] {
    return this.#machines.flatMap((machine) => this.#untruthsOf(machine));
  }

  end(): void {
    this.#world.workload?.end();
    for (const { metadata } of this.#machines) this.#delete(metadata.name);
  }

  left(): readonly string[] {
    const counts = {
      Machines: this.#machines.length,
      'objects of the provider': this.#infrastructure.length,
      VMs: this.#world.cloud.size,
      Nodes: this.#world.nodes.length,
    };
    return Object.entries(counts).flatMap(([what, count]) => (count > 0 ? [`${count} ${what}`] : []));
  }

  shown(): string {
    return JSON.stringify(
      this.#machines.map(({ metadata, spec, status }) => ({
        name: metadata.name,
        isDeleted: metadata.deletionTimestamp !== undefined,
        annotations: metadata.annotations,
        providerID: spec?.providerID,
        phase: status?.phase,
        conditions: status?.conditions
          ?.filter(({ status: is }) => is !== 'True')
          .map(({ type, reason, message }) => `${type} ${reason} ${message}`),
      })),
    );
  }

  #untruthsOf({ metadata, spec, status }: ClusterAPIMachine): readonly string[] {
    const what = `Machine ${metadata.name}`;
    const node = this.#world.nodes.find((one) => one.metadata.name === status?.nodeRef?.name);
    if (node === undefined) return [`${what} names no Node`];
    const label = metadata.labels?.[SYNCED_LABEL];
    const ofNode = node.metadata.labels?.[SYNCED_LABEL];
    const said = status?.conditions?.find(({ type }) => type === 'Deleting')?.status ?? 'False';
    return [
      ...(node.spec?.providerID === spec?.providerID
        ? []
        : [`${what} has ${spec?.providerID}, its Node ${node.spec?.providerID}`]),
      ...(label === ofNode ? [] : [`${what} has label ${label}, its Node ${ofNode}`]),
      ...(said === 'False' ? [] : [`${what} says that it is being deleted`]),
    ];
  }

  get #machines(): readonly ClusterAPIMachine[] {
    return this.ledger.machines;
  }

  get #infrastructure(): readonly object[] {
    return this.ledger.infrastructure;
  }

  #make(): void {
    this.#made += 1;
    const { machine, infrastructure } = madeOf(this.#world.namespace, `m-${this.#made}`);
    this.#world.act('POST', infrastructurePath(this.#world.namespace), infrastructure);
    this.#world.act('POST', machinePath(this.#world.namespace), machine);
  }

  /** What no manager has taken over goes with its creator. */
  #delete(name: string): void {
    this.#world.act('DELETE', machinePath(this.#world.namespace, name), {});
    if (this.#machines.some(({ metadata }) => metadata.name === name)) return;
    this.ledger.givesUp(name);
    this.#world.act('DELETE', infrastructurePath(this.#world.namespace, name), {});
  }

  #ofOne(random: Random, act: (name: string) => void): void {
    const there = this.#machines;
    if (there.length > 0) act(oneOf(random, there).metadata.name);
  }

  #annotate(name: string, key: string, value: string | null): void {
    this.#change(name, { annotations: { [key]: value } });
  }

  #change(name: string, metadata: object): void {
    this.#world.act('PATCH', machinePath(this.#world.namespace, name), { metadata });
  }

  #pauseCluster(paused: boolean): void {
    this.#world.act('PATCH', clusterPath(this.#world.namespace, CLUSTER), { spec: { paused } });
  }
}

function furnish(world: MachinesWorld): void {
  furnishProvider(world);
  furnishCluster(world);
}

/** Makes the kind of the provider known. */
export function furnishProvider(world: MachinesWorld): void {
  world.act('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', PROVIDER_DEFINITION);
}

/** Makes the Cluster in the namespace of a world, and what its Machines begin with. */
export function furnishCluster(world: MachinesWorld): void {
  const { namespace } = world;
  const metadata = { name: CLUSTER, namespace };
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata, stringData: { value: 'data' } };
  world.act('POST', `/api/v1/namespaces/${namespace}/secrets`, secret);
  world.act('POST', clusterPath(namespace), {
    apiVersion: CLUSTER_API_VERSIONED,
    kind: 'Cluster',
    metadata,
    spec: { paused: false },
  });
}

/** Machines of Cluster API, which the manager looks after without the core of Cluster API. */
export const CLUSTER_API: WorldKind = {
  acts: ['make', 'deleteMachine', 'hook', 'unhook', 'pause', 'unpause', 'pauseCluster', 'label'],
  usual: ['make', 'deleteMachine'],
  // Its provider keeps its contract, and what a restore forgets nobody else would know.
  without: ['setBack', 'driver', 'driverRestart', 'renamed'],
  adapt: ({ otherNodeIDs: _otherNodeIDs, ...options }) => ({
    ...options,
    // Not safety.unmanaged-nodes, which marks all of these Nodes after twenty minutes.
    flags: { ...options.flags, controllers: CONTROLLERS },
    kinds: CLUSTER_API_KINDS,
    furnish,
  }),
  populate: (world, seed) => new ClusterMachines(world, integerIn(seededRandom(seed, 'machines of the cluster'), 1, 6)),
};
