import type {
  IronCoreMachine,
  NetworkInterfaceEntry,
  VolumeEntry,
} from '../../../../pkg/worlds/ironcore/api/machine.ts';
import { type IronCoreMachinePool, readyCondition } from '../../../../pkg/worlds/ironcore/api/machine-pool.ts';
import {
  DELETE_ORPHAN_VMS_UNTIL_ANNOTATION,
  GIVE_UP_MISSING_MACHINES_UNTIL_ANNOTATION,
  TAKE_OVER_CLAIMS_ANNOTATION,
} from '../../../../pkg/apis/machine/v1alpha1/labels.ts';
import { toTimestamp } from '../../../../pkg/base/clock/clock.ts';
import { resourceClaimantOf } from '../../../../pkg/worlds/ironcore/controllers/machine/claiming.ts';
import {
  IRONCORE_MACHINE_FINALIZER,
  REQUESTED_AT_ANNOTATION,
  UID_LABEL,
} from '../../../../pkg/worlds/ironcore/controllers/machine/keys.ts';
import type { Random } from '../../../../pkg/base/random/random.ts';
import { ironCore } from '../../../../pkg/worlds/ironcore/world.ts';
import type { MachinesWorld } from '../../world/machines-world.ts';
import type { Population } from '../../world/population.ts';
import { integerIn, oneOf, seededRandom } from '../../world/seeded-random.ts';
import type { WorldKind } from '../kind.ts';
import { IRONCORE_KINDS, objectsOf, pathTo } from './kinds.ts';
import { IronCoreLedger } from './ledger.ts';
import { CLASSES, drawSize, furnish, machineOf, SHARED, sharedNIC, sharedVolume, TAINT } from './objects.ts';
import { provideStorage } from './storage.ts';
import type { Runtime } from './runtime.ts';
import { POOLS, Runtimes } from './runtimes.ts';
import { Mishaps } from './mishaps.ts';
import { Truths } from './truths.ts';

/** No more Machines are made. */
const MOST_MACHINES = 10;
/** Room for machines of each class, in calm; users change it before. */
const ROOM = 12;
/** How long somebody waits who then does what conditions and runbooks ask for, and how often. */
const RUNBOOK_MS = 15 * 60_000;
const RUNBOOK_EVERY_MS = 5 * 60_000;
const HOUR_MS = 3_600_000;
/** What a Machine says of an entry whose disk is not that of its Volume any more. */
const LOST_VOLUME = /Volume of (\S+) was lost and created again/;
const TAKE_OVER = new RegExp(`${TAKE_OVER_CLAIMS_ANNOTATION}=(\\S+)`);

/** Machines of IronCore, in pools that the program serves. */
class IronCoreMachines implements Population {
  readonly #world: MachinesWorld;
  readonly #runtimes: Runtimes;
  readonly ledger: IronCoreLedger;
  readonly #truths: Truths;
  readonly #mishaps: Mishaps;
  readonly #acts: Readonly<Record<string, (random: Random) => void>>;
  #made = 0;
  /** When what is done now for calm is done for good. */
  #runbooksUntilMs = -Infinity;

  constructor(world: MachinesWorld, seed: number) {
    this.#world = world;
    this.#runtimes = Runtimes.of(world, seed);
    this.ledger = new IronCoreLedger(world, this.#runtimes);
    this.#truths = new Truths(world, this.#runtimes);
    this.#mishaps = new Mishaps(world, this.#runtimes, seed);
    this.#acts = {
      make: (random) => (this.#machines.length < MOST_MACHINES ? this.#make(random) : undefined),
      deleteMachine: (random) => this.#ofOne(random, (machine) => this.#delete(machine)),
      switch: (random) =>
        this.#ofOne(random, (machine) => this.#change(machine, { power: random() < 0.5 ? 'Off' : 'On' })),
      attach: (random) => this.#ofOne(random, (machine) => this.#attach(machine, random)),
      detach: (random) => this.#ofOne(random, (machine) => this.#detach(machine, random)),
      resize: (random) => {
        const volume = oneOf(random, objectsOf(this.#world, 'volumes'));
        this.#try('PATCH', pathTo('volumes', volume.metadata.name), {
          spec: { resources: { storage: drawSize(random) } },
        });
      },
      taint: (random) => this.#taint(oneOf(random, POOLS), oneOf(random, ['NoSchedule', 'NoExecute', ''])),
      room: (random) => this.#room(oneOf(random, this.#runtimes.all), integerIn(random, 0, 4)),
      requestLook: (random) =>
        this.#ofOne(random, ({ metadata }) =>
          this.#try('PATCH', pathTo('machines', metadata.name), {
            metadata: { annotations: { [REQUESTED_AT_ANNOTATION]: 'now' } },
          }),
        ),
      removeFinalizer: (random) => this.#ofOne(random, (machine) => this.#removeFinalizer(machine)),
    };
    const random = seededRandom(seed, 'first machines');
    const rooms = this.#runtimes.all.map((runtime) => ({ runtime, room: integerIn(random, 4, ROOM) }));
    const count = integerIn(random, 1, 6);
    // Each pool has room for all of them: nobody moves one that takes the place of another, which can be nowhere else.
    for (const { runtime, room } of rooms) this.#room(runtime, Math.max(room, count));
    for (let i = 0; i < count; i++) this.#make(random);
    this.#share();
  }

  act(names: readonly string[], random: Random): void {
    this.#acts[oneOf(random, names)]?.(random);
  }

  mishap(random: Random): void {
    this.#mishaps.happen(random);
  }

  setBack(): void {
    this.ledger.setBack();
  }

  /** There is room for all, and nobody wants what another one has. */
  calm(): void {
    for (const runtime of this.#runtimes.all) {
      this.#room(runtime, ROOM);
      runtime.isDown = false;
      runtime.beforeChange = undefined;
      this.#mishaps.remember(runtime);
    }
    for (const pool of POOLS) this.#taint(pool, '');
    this.#share();
  }

  /** Of those who want the same, one gets it. */
  #share(): void {
    const taken = new Set<string>();
    for (const machine of this.#machines) {
      const { volumes = [], networkInterfaces = [] } = machine.spec;
      const isOwn = ({ name }: { readonly name: string }): boolean => {
        const isShared = [...SHARED.volumes, ...SHARED.networkInterfaces].some((one) => one === name);
        const isFree = !isShared || !taken.has(name);
        if (isShared) taken.add(name);
        return isFree;
      };
      const change = { volumes: volumes.filter(isOwn), networkInterfaces: networkInterfaces.filter(isOwn) };
      const isLess =
        change.volumes.length < volumes.length || change.networkInterfaces.length < networkInterfaces.length;
      if (isLess) this.#change(machine, change);
    }
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
    const machines = this.#machines;
    return (
      this.#runtimes.machines.length === machines.length &&
      machines.every((machine) => this.#truths.wants(machine).length === 0) &&
      this.#claimsLeft().length === 0 &&
      this.#pools.every((pool) => readyCondition(pool)?.status === 'True')
    );
  }

  settle(): void {
    // What was asked for of one Machine does not end with that of others.
    this.#runbooksUntilMs = -Infinity;
  }

  beginRest(): void {
    // Nobody asks anything.
  }

  /** Whoever comes after the process that saw a Machine go asks a user about what that has claimed. */
  #claimsLeft(): readonly string[] {
    const uids = new Set(this.#machines.map(({ metadata }) => metadata.uid));
    return this.#truths.used.flatMap((one) => {
      const claim = resourceClaimantOf(one);
      if (claim === undefined || uids.has(claim.uid)) return [];
      return [`${one.metadata.name} is claimed by ${claim.name}, which is gone`];
    });
  }

  leftovers(): readonly string[] {
    const uids = new Set(this.#machines.map(({ metadata }) => metadata.uid));
    return [
      ...this.#runtimes.machines
        .filter(({ metadata }) => !uids.has(metadata.labels[UID_LABEL] ?? ''))
        .map(({ metadata }) => `machine ${metadata.id} belongs to no Machine`),
      ...this.#claimsLeft(),
      ...this.#truths.used
        .filter(({ metadata }) => metadata.ownerReferences?.some(({ uid }) => !uids.has(uid)))
        .map(({ metadata }) => `${metadata.name} was made for a Machine that is gone`),
    ];
  }

  untruths(): readonly string[] {
    return [
      ...this.#machines.flatMap((machine) => this.#truths.untruthsOf(machine)),
      ...this.#pools.flatMap((pool) => this.#truths.untruthsOfPool(pool)),
    ];
  }

  end(): void {
    for (const machine of this.#machines) this.#delete(machine);
    for (const name of CLASSES) this.#world.act('DELETE', pathTo('machineclasses', name), {});
  }

  left(): readonly string[] {
    const counts = {
      Machines: this.#machines.length,
      'machines at runtimes': this.#runtimes.machines.length,
      MachineClasses: objectsOf(this.#world, 'machineclasses').length,
      claims: this.#truths.used.filter((one) => resourceClaimantOf(one) !== undefined).length,
      'objects of Machines': this.#truths.used.filter(({ metadata }) => metadata.ownerReferences !== undefined).length,
    };
    return Object.entries(counts).flatMap(([what, count]) => (count > 0 ? [`${count} ${what}`] : []));
  }

  shown(): string {
    return JSON.stringify({
      machines: this.#machines.map((machine) => ({
        name: machine.metadata.name,
        isDeleted: machine.metadata.deletionTimestamp !== undefined,
        pool: machine.spec.machinePoolRef?.name,
        machineID: machine.status?.machineID,
        wants: this.#truths.wants(machine),
        ready: machine.status?.conditions
          ?.filter(({ status }) => status !== 'True')
          .map(({ type, reason, message }) => `${type} ${reason} ${message.slice(0, 200)}`),
      })),
      pools: this.#pools.map(({ metadata, status }) => ({
        name: metadata.name,
        conditions: status?.conditions?.map(({ type, status: is, reason }) => `${type} ${is} ${reason}`),
      })),
      runtimes: this.#runtimes.all.map(({ pool, store }) => ({
        pool,
        machines: store.all().map(({ metadata, status }) => ({
          id: metadata.id,
          name: metadata.labels['machinepoollet.ironcore.dev/machine-name'],
          state: status.state,
          deletedAt: String(metadata.deletedAt),
        })),
      })),
    });
  }

  get #machines(): readonly IronCoreMachine[] {
    return this.ledger.machines;
  }

  get #pools(): readonly IronCoreMachinePool[] {
    return this.ledger.pools;
  }

  /** What conditions ask for, of those who know what has become of the machines. */
  #followRunbooks(): void {
    const until = toTimestamp(this.#world.time.epochMs + HOUR_MS);
    for (const { metadata, status } of this.#pools) {
      const says = (type: string): string | undefined =>
        status?.conditions?.find((one) => one.type === type && one.status === 'True')?.message;
      const annotations = {
        ...(says('MachinesKept') !== undefined && { [DELETE_ORPHAN_VMS_UNTIL_ANNOTATION]: until }),
        ...(says('ClaimsHeld') !== undefined && { [GIVE_UP_MISSING_MACHINES_UNTIL_ANNOTATION]: until }),
        ...this.#takeOver(status),
      };
      if (Object.keys(annotations).length === 0) continue;
      if (says('MachinesKept') !== undefined) this.ledger.released(metadata.name);
      this.#world.act('PATCH', pathTo('machinepools', metadata.name), { metadata: { annotations } });
    }
    for (const { metadata, spec, status } of this.#machines) {
      const ready = status?.conditions?.find(({ type }) => type === 'Ready')?.reason;
      if (ready === 'WrongRuntime') this.#removeElsewhere(metadata.uid, spec.machinePoolRef?.name);
      const [, lost] =
        LOST_VOLUME.exec(status?.conditions?.find(({ type }) => type === 'VolumesReady')?.message ?? '') ?? [];
      if (lost !== undefined)
        this.#changeNamed(metadata.name, { volumes: spec.volumes?.filter(({ name }) => name !== lost) });
      if (ready !== 'MachinesLost' || this.#runtimes.machinesOf(metadata.uid).length > 0) continue;
      const annotations = { [GIVE_UP_MISSING_MACHINES_UNTIL_ANNOTATION]: until };
      this.#try('PATCH', pathTo('machines', metadata.name), { metadata: { annotations } });
    }
  }

  /** Of a Machine that has another pool since the cluster was set back, the machine where it was is deleted there. */
  #removeElsewhere(uid: string, pool: string | undefined): void {
    if (pool === undefined) return;
    for (const runtime of this.#runtimes.all.filter((one) => one.pool !== pool))
      for (const machine of runtime.store.all())
        if (machine.metadata.labels[UID_LABEL] === uid) this.#mishaps.remove(runtime, machine);
  }

  #takeOver(status: IronCoreMachinePool['status']): object {
    const ready = status?.conditions?.find(({ type }) => type === 'Ready');
    const [, claims] = TAKE_OVER.exec(ready?.reason === 'ClaimedByAnother' ? ready.message : '') ?? [];
    return claims === undefined ? {} : { [TAKE_OVER_CLAIMS_ANNOTATION]: claims };
  }

  #make(random: Random): void {
    this.#made += 1;
    this.#try('POST', pathTo('machines'), machineOf(random, this.#made));
  }

  #delete(machine: IronCoreMachine): void {
    this.ledger.askedFor(machine);
    this.#try('DELETE', pathTo('machines', machine.metadata.name), {});
  }

  /** Somebody is in a hurry. */
  #removeFinalizer(machine: IronCoreMachine): void {
    this.#delete(machine);
    const { finalizers = [] } = machine.metadata;
    if (!finalizers.includes(IRONCORE_MACHINE_FINALIZER)) return;
    this.ledger.stripped(machine);
    this.#try('PATCH', pathTo('machines', machine.metadata.name), { metadata: { finalizers: [] } });
  }

  #attach({ metadata, spec }: IronCoreMachine, random: Random): void {
    const { volumes = [], networkInterfaces = [] } = spec;
    const isNew = (entries: readonly { readonly name: string }[], name: string): boolean =>
      !entries.some((one) => one.name === name);
    if (random() < 0.6) {
      const entry = sharedVolume(random);
      if (isNew(volumes, entry.name)) this.#changeNamed(metadata.name, { volumes: [...volumes, entry] });
    } else {
      const entry = sharedNIC(random);
      if (isNew(networkInterfaces, entry.name))
        this.#changeNamed(metadata.name, { networkInterfaces: [...networkInterfaces, entry] });
    }
  }

  #detach({ metadata, spec }: IronCoreMachine, random: Random): void {
    const [root, ...volumes] = spec.volumes ?? [];
    const nics = spec.networkInterfaces ?? [];
    const without = <T extends VolumeEntry | NetworkInterfaceEntry>(entries: readonly T[]): readonly T[] => {
      const gone = oneOf(random, entries);
      return entries.filter((one) => one !== gone);
    };
    if (volumes.length > 0 && random() < 0.6)
      this.#changeNamed(metadata.name, { volumes: [root, ...without(volumes)] });
    else if (nics.length > 0) this.#changeNamed(metadata.name, { networkInterfaces: without(nics) });
  }

  #taint(pool: string, effect: string): void {
    const taints = effect === '' ? [] : [{ key: TAINT, effect }];
    this.#world.act('PATCH', pathTo('machinepools', pool), { spec: { taints } });
  }

  #room({ pool, store }: Runtime, quantity: number): void {
    this.#world.trace.add(`the runtime of ${pool} has room for ${quantity}`);
    for (const name of CLASSES) store.quantities.set(name, BigInt(quantity));
  }

  #ofOne(random: Random, act: (machine: IronCoreMachine) => void): void {
    const there = this.#machines;
    if (there.length > 0) act(oneOf(random, there));
  }

  #change({ metadata }: IronCoreMachine, spec: object): void {
    this.#changeNamed(metadata.name, spec);
  }

  #changeNamed(name: string, spec: object): void {
    this.#try('PATCH', pathTo('machines', name), { spec });
  }

  /** What a user wants, and may be refused. */
  #try(method: string, path: string, body: unknown): void {
    this.#world.trace.add(`user ${method} ${path} ${JSON.stringify(body)}`);
    const contentType = method === 'PATCH' ? 'application/merge-patch+json' : undefined;
    const { code } = this.#world.servers.control.handle({ method, path, body, contentType });
    if (code >= 300) this.#world.trace.add(`user was refused with ${code}`);
  }
}

/** Machines of IronCore, which the program places in pools, and makes real at the runtimes of these. */
export const IRONCORE: WorldKind = {
  acts: [
    'make',
    'deleteMachine',
    'switch',
    'attach',
    'detach',
    'resize',
    'taint',
    'room',
    'requestLook',
    'removeFinalizer',
  ],
  usual: ['make', 'deleteMachine'],
  without: ['driverRestart', 'renamed', 'targetOutage'],
  adapt: ({ otherNodeIDs: _otherNodeIDs, pods: _pods, ...options }) => ({
    ...options,
    hasTarget: false,
    flags: {
      ...options.flags,
      controllers: 'ironcore,ironcore.pools,ironcore.machines',
      'ironcore-pool': POOLS.map((pool) => `${pool}=unix:///${pool}`),
    },
    kinds: IRONCORE_KINDS,
    furnish: (world) => {
      provideStorage(world, seededRandom(options.seed, 'storage'));
      furnish(world);
    },
    worlds: (world, caller) => [
      ironCore({ openRuntime: (pool) => Runtimes.of(world, options.seed).connect(caller, pool) }),
    ],
  }),
  populate: (world, seed) => new IronCoreMachines(world, seed),
};
