import { isDeepStrictEqual } from 'node:util';

import type { IronCoreMachine, VolumeEntry } from '../../../../pkg/worlds/ironcore/api/machine.ts';
import {
  capacityFor,
  type IronCoreMachinePool,
  readyCondition,
} from '../../../../pkg/worlds/ironcore/api/machine-pool.ts';
import { UID_LABEL } from '../../../../pkg/worlds/ironcore/controllers/machine/keys.ts';
import { resourceClaimantOf, type Used } from '../../../../pkg/worlds/ironcore/controllers/machine/claiming.ts';
import { deletionNoteOf } from '../../../../pkg/worlds/ironcore/controllers/machine/deletion-note.ts';
import { runtimeIDOf } from '../../../../pkg/worlds/ironcore/controllers/machine/runtime-id.ts';
import type { RuntimeMachine } from '../../../../pkg/worlds/ironcore/runtime/runtime.ts';
import { IRONCORE_POOLS_LEASE } from '../../../../pkg/worlds/ironcore/controllers/leases.ts';
import { watchCutOff } from '../../world/cut-off.ts';
import { Leaders } from '../../world/leaders.ts';
import type { MachinesWorld } from '../../world/machines-world.ts';
import { isOf, objectsOf } from './kinds.ts';
import type { Attached, RuntimeAct } from './runtime.ts';
import type { Runtimes } from './runtimes.ts';

/** For so long a manager may not have seen what a user, or a provider, has said: a watch may be silent. */
const UNSEEN_MS = 90_000;
/** Nobody who is at work has so much to ask. */
const MOST_REQUESTS_A_SECOND = 2_000;

/** Something that was so for a while. */
interface Since<T> {
  readonly value: T;
  readonly sinceMs: number;
}

/** Watches over Machines of IronCore and what they are at the runtimes, and finds what must never happen. */
export class IronCoreLedger {
  readonly findings: string[] = [];
  /** Of machines that were made. */
  vmsMade = 0;
  /** UIDs of Machines that a user deleted, and of those that went without their finalizer. */
  readonly #asked = new Set<string>();
  readonly #stripped = new Set<string>();
  /** Pools in which somebody lets machines go that have no Machine. */
  readonly #released = new Set<string>();
  /** Ids of machines that a runtime has made in addition, by itself. */
  readonly #copies = new Set<string>();
  /** UIDs of Machines by the ids of their machines, also of those that are gone. */
  readonly #uids = new Map<string, string>();
  /** What Machines say of an entry of theirs, or of their power, by UID and name. */
  readonly #said = new Map<string, Map<string, Since<unknown>>>();
  /** When a machine got what it has, by its id and the name of that; for power, when it was switched so last. */
  readonly #gotMs = new Map<string, number>();
  /** Pools that Machines had, by UID, also those that have been forgotten. */
  readonly #placed = new Map<string, Set<string>>();
  /** What pools were like lately, the oldest first. */
  readonly #pools = new Map<string, readonly Since<IronCoreMachinePool>[]>();
  readonly #world: MachinesWorld;
  readonly #runtimes: Runtimes;
  readonly #leaders: Leaders;
  #setBackMs = -Infinity;

  constructor(world: MachinesWorld, runtimes: Runtimes) {
    this.#world = world;
    this.#runtimes = runtimes;
    const { objects } = world.servers.control;
    objects.onChange((kind, { type, object, previous }) => {
      if (isOf(kind, 'machines')) {
        if (type === 'DELETED') this.#lookAtEnd(object);
        else
          this.#lookAtMachine(object as unknown as IronCoreMachine, previous as unknown as IronCoreMachine | undefined);
      } else if (isOf(kind, 'machinepools')) this.#notePool(object);
      else if (isOf(kind, 'volumes') || isOf(kind, 'networkinterfaces'))
        this.#lookAtClaim(type === 'DELETED' ? undefined : object, previous);
    });
    for (const pool of objectsOf(world, 'machinepools')) this.#notePool(pool);
    runtimes.onAct((act) => this.#lookAtAct(act));
    this.#leaders = new Leaders(world, (what) => this.find(what));
    watchCutOff(world, (what) => this.find(what));
    world.processes.onRequest(({ identity, method, path, sentAtMs }) => {
      if (this.#leaders.hadLost(identity, sentAtMs))
        this.find(`${identity} asked for a change after another process led: ${method} ${path}`);
    });
  }

  get machines(): readonly IronCoreMachine[] {
    return objectsOf(this.#world, 'machines');
  }

  get pools(): readonly IronCoreMachinePool[] {
    return objectsOf(this.#world, 'machinepools');
  }

  get isHopeless(): boolean {
    return this.#world.processes.mostInASecond > MOST_REQUESTS_A_SECOND;
  }

  look(): void {
    if (this.isHopeless) this.find(`${this.#world.processes.mostInASecond} requests were sent within a second`);
  }

  /** A user is about to delete a Machine. */
  askedFor({ metadata: { uid } }: IronCoreMachine): void {
    this.#asked.add(uid);
  }

  /** A user is about to take the finalizer off a Machine that is being deleted. */
  stripped({ metadata: { uid } }: IronCoreMachine): void {
    this.#stripped.add(uid);
  }

  /** Somebody has said that machines without a Machine may go. */
  released(pool: string): void {
    this.#released.add(pool);
  }

  /** The control cluster was set back: what was said since the backup has never been. */
  setBack(): void {
    const nowMs = this.#world.time.elapsedMs;
    this.#setBackMs = nowMs;
    this.#released.clear();
    this.#said.clear();
    for (const machine of this.machines) this.#note(machine);
    for (const pool of this.pools) this.#notePool(pool);
  }

  find(what: string): void {
    this.#world.trace.add(`finding ${what}`);
    this.findings.push(`${(this.#world.time.elapsedMs / 1_000).toFixed(0)} s: ${what}`);
  }

  /** Whether what is so since then must have been seen. */
  #isKnown(sinceMs: number): boolean {
    return this.#world.time.elapsedMs - Math.max(sinceMs, this.#setBackMs) > UNSEEN_MS;
  }

  /** Whether a manager knows what a Machine says: its machine got it since, or it has been so for long. */
  #mustBeKnown({ sinceMs }: Since<unknown>, got: string): boolean {
    return this.#isKnown(sinceMs) || (this.#gotMs.get(got) ?? -Infinity) > Math.max(sinceMs, this.#setBackMs);
  }

  /** All that a machine is made with. */
  #noteAll(id: string): void {
    const nowMs = this.#world.time.elapsedMs;
    const { spec } = this.#runtimes.machines.find(({ metadata }) => metadata.id === id) ?? {};
    for (const { name } of spec?.volumes ?? []) this.#gotMs.set(`${id} Volume ${name}`, nowMs);
    for (const { name } of spec?.networkInterfaces ?? []) this.#gotMs.set(`${id} NetworkInterface ${name}`, nowMs);
  }

  #machineOf(uid: string): IronCoreMachine | undefined {
    return this.machines.find(({ metadata }) => metadata.uid === uid);
  }

  #lookAtMachine(machine: IronCoreMachine, before: IronCoreMachine | undefined): void {
    this.#note(machine);
    if (before === undefined) return;
    const { name, uid, deletionTimestamp } = machine.metadata;
    if (deletionTimestamp !== undefined && before.metadata.deletionTimestamp === undefined)
      this.#lookAtDeletion(before);
    const id = runtimeIDOf(machine);
    if (id !== '' && id !== runtimeIDOf(before) && this.#uids.get(id) !== uid)
      this.find(`Machine ${name} says that its machine is ${id}, which was never made for it`);
    if (before.spec.machinePoolRef === undefined && machine.spec.machinePoolRef !== undefined) {
      this.#lookAtPlace(machine);
      const had = this.#placed.get(uid) ?? new Set();
      this.#placed.set(uid, had.add(machine.spec.machinePoolRef.name));
    }
  }

  /** Nobody deletes a Machine but a user, or a taint that it does not tolerate. */
  #lookAtDeletion({ metadata: { name, uid }, spec }: IronCoreMachine): void {
    if (this.#asked.has(uid)) return;
    const pools = this.#lately(spec.machinePoolRef?.name ?? '');
    if (pools.some((pool) => tainted(pool, spec, 'NoExecute'))) return;
    this.find(`Machine ${name} was deleted although nobody asked for it`);
  }

  /** The scheduler chooses a pool that may have it, and that has room. */
  #lookAtPlace(machine: IronCoreMachine): void {
    if (!this.#isKnown(-Infinity)) return;
    const { metadata, spec } = machine;
    const name = spec.machinePoolRef?.name ?? '';
    // One that lost its pool when the cluster was set back has its machine there, whatever the pool says by now.
    if (this.#placed.get(metadata.uid)?.has(name) === true) return;
    const machineClass = spec.machineClassRef.name;
    const there = this.machines.filter((one) => {
      const isNew = Date.parse(one.metadata.creationTimestamp) > this.#world.time.epochMs - UNSEEN_MS;
      // Users choose pools without a look at their room, and when they make a Machine.
      const isByHand =
        isNew && one.metadata.uid !== metadata.uid && one.metadata.annotations?.['by-hand'] !== undefined;
      return one.spec.machinePoolRef?.name === name && one.spec.machineClassRef.name === machineClass && !isByHand;
    });
    const pools = this.#lately(name);
    const most = Math.max(0, ...pools.map((pool) => capacityFor(pool, machineClass)));
    if (there.length > most)
      this.find(
        `Machine ${metadata.name} was placed in ${name}, which has ${there.length} of ${machineClass} and room for ${most}`,
      );
    const isFit = (pool: IronCoreMachinePool): boolean =>
      readyCondition(pool)?.status === 'True' &&
      !tainted(pool, spec) &&
      Object.entries(spec.machinePoolSelector ?? {}).every(([key, value]) => pool.metadata.labels?.[key] === value);
    if (!pools.some(isFit)) this.find(`Machine ${metadata.name} was placed in ${name}, which does not take it`);
  }

  /** A Machine goes last. */
  #lookAtEnd(machine: Pick<IronCoreMachine, 'metadata'>): void {
    const { name, uid } = machine.metadata;
    this.#said.delete(uid);
    const left = this.#leftOf(uid, machine);
    if (left.length > 0 && !this.#stripped.has(uid))
      this.find(`Machine ${name} has gone before its machine ${left.map(({ metadata }) => metadata.id).join(', ')}`);
  }

  /** Machines of a Machine, but those whose deletion was accepted before their runtime lost its state: that they are gone is believed. */
  #leftOf(uid: string, machine: Pick<IronCoreMachine, 'metadata'> | undefined): readonly RuntimeMachine[] {
    const left = this.#runtimes.machinesOf(uid);
    if (machine === undefined || deletionNoteOf(machine) !== 'accepted') return left;
    const isHidden = (id: string): boolean => this.#runtimes.all.some(({ hidden }) => hidden.has(id));
    return left.filter(({ metadata: { id, deletedAt } }) => deletedAt === 0n || !isHidden(id));
  }

  /** What a machine may use is given back when that is gone. */
  #lookAtClaim(object: Used | undefined, previous: Used | undefined): void {
    const claim = previous && resourceClaimantOf(previous);
    if (previous === undefined || claim === undefined || (object && resourceClaimantOf(object)?.uid === claim.uid))
      return;
    // What was made for a Machine goes with it, when it goes without its machine, too.
    if (object === undefined && this.#stripped.has(claim.uid)) return;
    const used = usesOf(previous);
    for (const machine of this.#leftOf(claim.uid, this.#machineOf(claim.uid))) {
      if (!this.#usesOf(machine).some((use) => used.includes(use))) continue;
      this.find(
        `${previous.metadata.name} was given back although machine ${machine.metadata.id} of ${claim.name} uses it`,
      );
    }
  }

  #lookAtAct(act: RuntimeAct): void {
    const { method, runtime, uid, id, by, what } = act;
    if (method !== 'duplicate' && this.#leaders.isHeldByAnother(IRONCORE_POOLS_LEASE, by))
      this.find(`${method} of ${by} was carried out at ${runtime.pool} although another process led`);
    switch (method) {
      case 'CreateMachine':
        this.vmsMade += 1;
        this.#uids.set(id, uid);
        this.#lookAtCreation(act);
        this.#lookAtUses(act);
        return this.#noteAll(id);
      case 'duplicate':
        this.#uids.set(id, uid);
        this.#copies.add(id);
        return;
      case 'DeleteMachine':
        return this.#lookAtRuntimeDeletion(act);
      case 'AttachVolume':
      case 'AttachNetworkInterface':
        this.#gotMs.set(`${id} ${method.slice('Attach'.length)} ${what}`, this.#world.time.elapsedMs);
        return this.#lookAtUses(act);
      case 'DetachVolume':
      case 'DetachNetworkInterface': {
        const key = `${method.slice('Detach'.length)} ${what}`;
        const since = this.#said.get(uid)?.get(key);
        if (since !== undefined && this.#mustBeKnown(since, `${id} ${key}`))
          this.find(`${what} was taken from machine ${id} although its Machine names it`);
        return;
      }
      case 'UpdateMachinePower': {
        const since = this.#said.get(uid)?.get('power');
        if (since !== undefined && since.value !== what && this.#mustBeKnown(since, `${id} ${String(since.value)}`))
          this.find(`machine ${id} was switched ${what} although its Machine is to be ${String(since.value)}`);
        this.#gotMs.set(`${id} ${what}`, this.#world.time.elapsedMs);
        return;
      }
      default:
    }
  }

  /** A Machine never has two machines, unless its runtime has made one by itself. */
  #lookAtCreation({ uid, id, runtime }: RuntimeAct): void {
    const others = this.#runtimes
      .machinesOf(uid)
      .filter(({ metadata }) => metadata.id !== id && !this.#copies.has(metadata.id));
    if (others.length > 0)
      this.find(
        `machine ${id} was made at ${runtime.pool} although ${others[0]?.metadata.id} is there for the same Machine`,
      );
    const machine = this.#machineOf(uid);
    if (machine !== undefined && machine.spec.machinePoolRef?.name !== runtime.pool)
      this.find(`machine ${id} was made at ${runtime.pool} although its Machine is not in that pool`);
  }

  /** A machine goes with its Machine, or when it is one too many. */
  #lookAtRuntimeDeletion({ uid, id, runtime }: RuntimeAct): void {
    const others = runtime.store
      .all()
      .filter(({ metadata }) => metadata.id !== id && metadata.labels[UID_LABEL] === uid);
    if (others.some(({ metadata }) => metadata.deletedAt === 0n)) return;
    const machine = this.#machineOf(uid);
    // A call that was under way when the cluster was set back cannot be taken back.
    const isLate = this.#asked.has(uid) && !this.#isKnown(-Infinity);
    if (machine !== undefined) {
      if (machine.metadata.deletionTimestamp === undefined && !isLate)
        this.find(`machine ${id} was deleted although nobody deleted its Machine ${machine.metadata.name}`);
    } else if (!this.#asked.has(uid) && !this.#released.has(runtime.pool))
      this.find(`machine ${id} was deleted although its Machine was only forgotten`);
  }

  /** A volume and an address are used by one machine at a time. */
  #lookAtUses({ id, uid }: RuntimeAct): void {
    const machine = this.#runtimes.machines.find(({ metadata }) => metadata.id === id);
    if (machine === undefined) return;
    const uses = usesOfMachine(machine.spec);
    for (const other of this.#runtimes.machines) {
      if (other.metadata.id === id || other.metadata.labels[UID_LABEL] === uid) continue;
      const both = this.#usesOf(other).find((use) => uses.includes(use));
      if (both !== undefined)
        this.find(`${both} is used by machine ${id} although machine ${other.metadata.id} uses it`);
    }
  }

  /** What a machine has, or its guest still has. */
  #usesOf({ metadata: { id }, spec }: RuntimeMachine): readonly string[] {
    return [spec, ...this.#runtimes.leavingOf(id)].flatMap((one) => usesOfMachine(one));
  }

  #note({ metadata: { uid }, spec }: IronCoreMachine): void {
    const nowMs = this.#world.time.elapsedMs;
    const before = this.#said.get(uid);
    const now = new Map<string, unknown>([
      ...(spec.volumes ?? []).map((entry) => [`Volume ${entry.name}`, withoutDevice(entry)] as const),
      ...(spec.networkInterfaces ?? []).map((entry) => [`NetworkInterface ${entry.name}`, entry] as const),
      ['power', spec.power ?? 'On'],
    ]);
    const since = [...now].map(([key, value]) => {
      const known = before?.get(key);
      return [
        key,
        known !== undefined && isDeepStrictEqual(known.value, value) ? known : { value, sinceMs: nowMs },
      ] as const;
    });
    this.#said.set(uid, new Map(since));
  }

  #notePool(pool: IronCoreMachinePool): void {
    const nowMs = this.#world.time.elapsedMs;
    const before = this.#pools.get(pool.metadata.name) ?? [];
    // Of what is older only the last was still so.
    const lately = before.filter((_one, at) => (before[at + 1]?.sinceMs ?? nowMs) > nowMs - UNSEEN_MS);
    this.#pools.set(pool.metadata.name, [...lately, { value: pool, sinceMs: nowMs }]);
  }

  /** How a pool is, and how it was while a manager may not have seen it. */
  #lately(name: string): readonly IronCoreMachinePool[] {
    const all = this.#pools.get(name) ?? [];
    const fromMs = this.#world.time.elapsedMs - UNSEEN_MS;
    return all.filter((_one, at) => (all[at + 1]?.sinceMs ?? Infinity) > fromMs).map(({ value }) => value);
  }
}

/** Whether a pool has a taint that a Machine does not tolerate. In this world, tolerations name a key. */
function tainted(
  { spec }: IronCoreMachinePool,
  { tolerations = [] }: IronCoreMachine['spec'],
  effect?: string,
): boolean {
  const taints = (spec?.taints ?? []).filter((taint) => effect === undefined || taint.effect === effect);
  return taints.some(({ key }) => !tolerations.some((toleration) => toleration.key === key));
}

function withoutDevice({ device: _device, ...entry }: VolumeEntry): Omit<VolumeEntry, 'device'> {
  return entry;
}

/** What an object stands for at a runtime. */
function usesOf({
  spec,
  status,
}: Used & { readonly status?: { readonly access?: { readonly handle?: string } } }): readonly string[] {
  const { ips = [] } = (spec ?? {}) as { readonly ips?: readonly { readonly value?: string }[] };
  const { handle } = status?.access ?? {};
  return [...(handle === undefined ? [] : [`volume ${handle}`]), ...ips.map(({ value }) => `address ${value}`)];
}

function usesOfMachine({ volumes, networkInterfaces }: Attached): readonly string[] {
  return [
    ...volumes.flatMap(({ connection }) => (connection === undefined ? [] : [`volume ${connection.handle}`])),
    ...networkInterfaces.flatMap(({ ips }) => ips.map((ip) => `address ${ip}`)),
  ];
}
