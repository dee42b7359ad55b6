import { phaseOf, providerIDOf } from '../../../../pkg/apis/machine/v1alpha1/defaults.ts';
import { isBeingDeleted } from '../../../../pkg/apis/meta.ts';
import type { ClusterMachine } from '../../../../pkg/worlds/mirantis/api/machine.ts';
import type { MachinePool } from '../../../../pkg/worlds/mirantis/api/pool.ts';
import type { Random } from '../../../../pkg/base/random/random.ts';
import { mishap } from '../../world/acts.ts';
import { type MachinesWorld, pathOf } from '../../world/machines-world.ts';
import type { Population } from '../../world/population.ts';
import { integerIn, oneOf, seededRandom } from '../../world/seeded-random.ts';
import type { WorldKind } from '../kind.ts';
import { CLUSTER, furnish, machineSpec, made, MIRANTIS_KINDS, objectsOf, pathTo, valueOf } from './kinds.ts';
import { isOfPool, MirantisLedger } from './ledger.ts';
import { LABEL_KEYS, leftoversOf, oursOf, untruthsOf, wantsOf, wantsOfPool } from './truths.ts';

/** No more single Machines are made. */
const MOST_MACHINES = 6;
const MOST_REPLICAS = 5;
const POOL = 'workers';
/** How long somebody waits who then follows the runbooks, and how often that is looked for. */
const RUNBOOK_MS = 15 * 60_000;
const RUNBOOK_EVERY_MS = 5 * 60_000;
const POLICIES = ['graceful', 'unsafe', 'forced'] as const;

/** Machines and a pool of Mirantis Container Cloud, of which the program makes Machines of its own. */
class MirantisMachines implements Population {
  readonly #world: MachinesWorld;
  readonly ledger: MirantisLedger;
  readonly #acts: Readonly<Record<string, (random: Random) => void>>;
  #made = 0;
  #runbooksUntilMs = -Infinity;

  constructor(world: MachinesWorld, seed: number) {
    this.#world = world;
    this.ledger = new MirantisLedger(world);
    const set = (members: (random: Random) => object) => (random: Random) =>
      this.#ofOne(random, (front) => this.#setValue(front, members(random)));
    const setOfSingle = (members: (random: Random) => object) => (random: Random) =>
      this.#ofOne(random, (front) => this.#setValue(front, members(random)), this.#singles);
    this.#acts = {
      make: (random) => (this.#singles.length < MOST_MACHINES ? this.#make(random) : undefined),
      deleteMachine: (random) => this.#ofOne(random, (front) => this.#delete(front), this.#singles),
      deleteMade: (random) => this.#ofOne(random, (front) => this.#deleteMade(front)),
      wantGone: set(() => ({ delete: true })),
      keep: set(() => ({ delete: false })),
      maintain: set(() => ({ maintenance: true })),
      endMaintenance: set(() => ({ maintenance: false })),
      maintainCluster: (random) => this.#maintainCluster(random() < 0.6),
      label: setOfSingle((random) => ({ nodeLabels: drawLabels(random) })),
      policy: setOfSingle((random) => ({ deletionPolicy: oneOf(random, POLICIES) })),
      upgradeIndex: setOfSingle((random) => ({ upgradeIndex: integerIn(random, 1, 9) })),
      scalePool: (random) => this.#scale(integerIn(random, 0, MOST_REPLICAS)),
      rollPool: (random) =>
        this.#changePool({ machineSpec: machineSpecOf({ image: `image-${integerIn(random, 1, 4)}` }) }),
      labelPool: (random) => this.#changePool({ machineSpec: machineSpecOf({ nodeLabels: drawLabels(random) }) }),
      autoscale: (random) => this.#autoscale(integerIn(random, 0, MOST_REPLICAS)),
    };
    const random = seededRandom(seed, 'first machines');
    const replicas = integerIn(random, 0, 4);
    this.ledger.scales(replicas);
    const pool = made('machinepools', 'MachinePool', POOL, { replicas, machineSpec: machineSpec() });
    world.act('POST', pathTo('machinepools'), pool);
    const count = integerIn(random, 1, 3);
    for (let i = 0; i < count; i++) this.#make(random);
    this.ledger.settle();
  }

  act(names: readonly string[], random: Random): void {
    this.#acts[oneOf(random, names)]?.(random);
  }

  mishap(random: Random): void {
    mishap(this.#world, this.ledger, random);
  }

  setBack(): void {
    throw new Error('control clusters of this world are not set back');
  }

  /** Maintenance ends, and there is a Node to which pods can go. */
  calm(): void {
    for (const front of this.#fronts)
      if (valueOf(front)['maintenance'] === true) this.#setValue(front, { maintenance: false });
    this.#maintainCluster(false);
    this.#makePlace();
  }

  /** Pods of a Machine that is to go need another one; its Node may have been deleted in an outage, of which the program hears later. */
  #makePlace(): void {
    const isStaying = (front: ClusterMachine): boolean => {
      if (front.metadata.deletionTimestamp !== undefined || valueOf(front)['delete'] === true) return false;
      const ours = oursOf(this.#world, front);
      return ours === undefined || !isBeingDeleted(ours);
    };
    if (!this.#fronts.some(isStaying)) this.#make(seededRandom(this.#made, 'a place for pods'));
  }

  expectProgress(withinMs: number): void {
    const { time } = this.#world;
    this.#runbooksUntilMs = time.elapsedMs + withinMs;
    const each = (): void => {
      if (time.elapsedMs > this.#runbooksUntilMs || this.isAsAsked()) return;
      this.#followRunbooks();
      time.schedule(RUNBOOK_EVERY_MS, each);
    };
    time.schedule(RUNBOOK_MS, each);
  }

  isAsAsked(): boolean {
    return this.#wants().length === 0;
  }

  settle(): void {
    this.#runbooksUntilMs = -Infinity;
    this.ledger.settle();
  }

  beginRest(): void {
    // Nobody asks anything.
  }

  leftovers(): readonly string[] {
    return leftoversOf(this.#world);
  }

  untruths(): readonly string[] {
    return untruthsOf(this.#world);
  }

  end(): void {
    const { world } = { world: this.#world };
    world.workload?.end();
    for (const front of this.#singles) this.#delete(front);
    world.act('DELETE', pathTo('machinepools', POOL), {});
    world.act('DELETE', pathTo('clusters', CLUSTER), {});
  }

  left(): readonly string[] {
    const { cloud, nodes, machines } = this.#world;
    const counts = {
      'Machines of the front end': this.#fronts.length,
      pools: objectsOf(this.#world, 'machinepools').length,
      Machines: machines.length,
      machineclasses: this.#world.count('machineclasses'),
      machinedeployments: this.#world.count('machinedeployments'),
      VMs: cloud.size,
      Nodes: nodes.length,
    };
    return Object.entries(counts).flatMap(([what, count]) => (count > 0 ? [`${count} ${what}`] : []));
  }

  shown(): string {
    return JSON.stringify({
      wants: this.#wants(),
      machines: this.#world.machines.map(({ metadata, spec, status }) => ({
        name: metadata.name,
        isDeleted: metadata.deletionTimestamp !== undefined,
        annotations: metadata.annotations,
        providerID: spec?.providerID,
        phase: status?.currentStatus?.phase,
        last: status?.lastOperation?.description?.slice(0, 200),
      })),
      fronts: this.#fronts.map(({ metadata, status }) => ({
        name: metadata.name,
        conditions: status?.providerStatus?.conditions?.map(
          ({ type, ready, message }) => `${type} ${ready} ${message.slice(0, 160)}`,
        ),
      })),
    });
  }

  get #fronts(): readonly ClusterMachine[] {
    return objectsOf(this.#world, 'machines');
  }

  get #singles(): readonly ClusterMachine[] {
    return this.#fronts.filter((front) => !isOfPool(front));
  }

  get #pool(): MachinePool | undefined {
    return objectsOf(this.#world, 'machinepools')[0];
  }

  #wants(): readonly string[] {
    const { cloud, machines } = this.#world;
    return [
      ...this.#fronts.flatMap((front) =>
        wantsOf(this.#world, front).map((what) => `${front.metadata.name} wants ${what}`),
      ),
      ...(this.#pool === undefined ? [] : wantsOfPool(this.#pool, this.#world).map((what) => `the pool wants ${what}`)),
      ...(machines.length === this.#fronts.length
        ? []
        : [`${machines.length} Machines are shown as ${this.#fronts.length}`]),
      ...(cloud.size === machines.length ? [] : [`${machines.length} Machines have ${cloud.size} VMs`]),
    ];
  }

  /** Nobody replaces a single Machine that has failed, and pods on a VM that is gone never leave by themselves. */
  #followRunbooks(): void {
    this.#makePlace();
    const vms = new Set(this.#world.cloud.all().map(({ providerID }) => providerID));
    for (const front of this.#singles) {
      const ours = oursOf(this.#world, front);
      if (ours === undefined) continue;
      if (phaseOf(ours) === 'Failed') this.#delete(front);
      const isOnVM = vms.has(providerIDOf(ours));
      if (isBeingDeleted(ours) && !isOnVM && valueOf(front)['deletionPolicy'] === 'graceful')
        this.#setValue(front, { deletionPolicy: 'unsafe' });
    }
  }

  #make(random: Random): void {
    this.#made += 1;
    const deletionPolicy = random() < 0.7 ? oneOf(random, POLICIES) : undefined;
    const spec = machineSpec({ ...(deletionPolicy && { deletionPolicy }), nodeLabels: drawLabels(random) });
    this.#try('POST', pathTo('machines'), made('machines', 'Machine', `m-${this.#made}`, spec));
  }

  #delete({ metadata: { name } }: ClusterMachine): void {
    this.ledger.askedFor(name);
    this.#try('DELETE', pathTo('machines', name), {});
  }

  /** Somebody deletes the Machine that was made for one. */
  #deleteMade({ metadata: { name } }: ClusterMachine): void {
    this.ledger.askedFor(name);
    this.#try('DELETE', pathOf('machines', name), {});
  }

  #maintainCluster(maintenance: boolean): void {
    this.#try('PATCH', pathTo('clusters', CLUSTER), { spec: { providerSpec: { value: { maintenance } } } });
  }

  #scale(replicas: number): void {
    this.ledger.scales(replicas);
    this.#changePool({ replicas });
  }

  #autoscale(replicas: number): void {
    if (this.#world.pool === undefined) return;
    this.ledger.resizes(replicas);
    this.#try('PATCH', pathOf('machinedeployments', POOL), { spec: { replicas } });
  }

  #changePool(spec: object): void {
    this.#try('PATCH', pathTo('machinepools', POOL), { spec });
  }

  #setValue({ metadata: { name } }: ClusterMachine, value: object): void {
    this.#try('PATCH', pathTo('machines', name), { spec: { providerSpec: { value } } });
  }

  #ofOne(random: Random, act: (front: ClusterMachine) => void, there = this.#fronts): void {
    if (there.length > 0) act(oneOf(random, there));
  }

  /** What a user wants, and may be refused. */
  #try(method: string, path: string, body: unknown): void {
    this.#world.trace.add(`user ${method} ${path} ${JSON.stringify(body)}`);
    const contentType = method === 'PATCH' ? 'application/merge-patch+json' : undefined;
    const { code } = this.#world.servers.control.handle({ method, path, body, contentType });
    if (code >= 300) this.#world.trace.add(`user was refused with ${code}`);
  }
}

function machineSpecOf(value: object): object {
  return { providerSpec: { value } };
}

function drawLabels(random: Random): readonly object[] {
  return LABEL_KEYS.filter(() => random() < 0.5).map((key) => ({ key, value: String(integerIn(random, 1, 3)) }));
}

/** Where the simulated cloud has the servers of OpenStack. */
function simulated(providerSpec: unknown): unknown {
  const { spec } = providerSpec as { readonly spec: { readonly availabilityZone: string } };
  return { zone: spec.availabilityZone };
}

/** Machines of Mirantis Container Cloud. */
export const MIRANTIS: WorldKind = {
  acts: [
    'make',
    'deleteMachine',
    'deleteMade',
    'wantGone',
    'keep',
    'maintain',
    'endMaintenance',
    'maintainCluster',
    'label',
    'policy',
    'upgradeIndex',
    'scalePool',
    'rollPool',
    'labelPool',
    'autoscale',
  ],
  usual: ['make', 'deleteMachine'],
  // After it nobody can say which requests there have been.
  without: ['setBack', 'renamed'],
  isHonest: true,
  adapt: ({ otherNodeIDs: _otherNodeIDs, ...options }) => ({
    ...options,
    flags: {
      // As the pools of the other worlds: with fewer pods allowed to leave than there are Nodes, a drain may last as long.
      'machine-drain-timeout': '5m',
      ...options.flags,
      controllers: '*,mirantis',
      driver: 'OpenStack=unix:///nowhere',
      // What a deletion that is forced leaves behind is found then.
      'machine-safety-orphan-vms-period': '2m',
    },
    kinds: MIRANTIS_KINDS,
    furnish,
    simulatedSpec: simulated,
  }),
  populate: (world, seed) => new MirantisMachines(world, seed),
};
