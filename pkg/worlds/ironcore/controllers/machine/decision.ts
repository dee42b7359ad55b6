import { networkInterfaceNameOf, type IronCoreMachine } from '../../api/machine.ts';
import { isBeingDeleted } from '../../../../apis/meta.ts';
import { Power, type NetworkInterface, type Volume } from '../../runtime/gen/ironcore/machine/v1alpha1/machine.ts';
import type { RuntimeChange, RuntimeMachine, DesiredRuntimeMachine } from '../../runtime/runtime.ts';
import { claimText, type PoolClaim } from '../pool-claims.ts';
import {
  CLAIM,
  POOL_UID_LABEL,
  MACHINE_GENERATION,
  NAME_LABEL,
  MACHINE_NAMESPACE_LABEL,
  NIC_MAPPING,
  RUNTIME_GENERATION,
  UID_LABEL,
} from './keys.ts';
import { handlesOfNetworkInterface, handlesOfVolume, leavingOf, type Exchange } from './kept-uses.ts';
import { isMadeAnew, isSameNetworkInterface, volumeLikeness } from './same.ts';
import type { Needed, DesiredMachine, WaitReason } from './desired-machine.ts';

const LOOK_MS = 1_000;

export interface Wait {
  readonly reason: WaitReason;
  readonly message: string;
}

export type MachineDecision =
  /** Something that it needs is missing, and there is no machine yet. */
  | { readonly kind: 'wait'; readonly waits: readonly Wait[] }
  /** A machine may be on its way: that is certain before another one is made. */
  | { readonly kind: 'look'; readonly afterMs: number; readonly why: string }
  | { readonly kind: 'create'; readonly machine: DesiredRuntimeMachine }
  /** There is one. `duplicates` are ids of others of the same Machine, which go; with them, nothing else is done. */
  | {
      readonly kind: 'keep';
      readonly machine: RuntimeMachine;
      readonly duplicates: readonly string[];
      readonly changes: readonly RuntimeChange[];
      readonly waits: readonly Wait[];
    }
  /** Its deletion: these are still there; those in `ids` were not told to go yet. */
  | { readonly kind: 'delete'; readonly left: readonly RuntimeMachine[]; readonly ids: readonly string[] }
  /** Its deletion: nothing is left. */
  | { readonly kind: 'finish' };

export interface Situation {
  readonly machine: IronCoreMachine;
  readonly poolUID: string;
  /** What its runtime is told of the Machine beside its name; annotations follow it. */
  readonly downward: Readonly<Record<'labels' | 'annotations', Readonly<Record<string, string>>>>;
  /** By which this process says that it has made a machine; undefined: it cannot yet. */
  readonly claim: PoolClaim | undefined;
  readonly desired: DesiredMachine;
  readonly networkInterfaceUIDs: ReadonlyMap<string, string>;
  /** Whether it gets something for what it gives. */
  readonly isExchange: (exchange: Exchange) => boolean;
  /** A pool of whose machines is not known yet what they use; undefined: none. */
  readonly unseen: string | undefined;
  /** All machines at the runtime with the label of its UID, as of now. */
  readonly existing: readonly RuntimeMachine[];
  /** Before that, none is made and it is not certain that none is left: an answer is missing, or a machine has vanished. */
  readonly uncertainMs: number;
}

/** What is done next. Decides, and touches nothing. */
export function decideMachine(situation: Situation): MachineDecision {
  const { machine, existing, uncertainMs } = situation;
  if (isBeingDeleted(machine)) return decideDeletion(situation);
  const [kept, ...others] = byWorth(existing, machine.status?.machineID);
  if (kept !== undefined) {
    if (others.length > 0) {
      const duplicates = others.filter(isLeft).map(({ metadata }) => metadata.id);
      return { kind: 'keep', machine: kept, duplicates, changes: [], waits: waitsOf(situation) };
    }
    if (!isLeft(kept)) return { kind: 'look', afterMs: LOOK_MS, why: `machine ${kept.metadata.id} is being deleted` };
    const known = { ...situation, desired: whatCanBeAttached(kept, situation) };
    return {
      kind: 'keep',
      machine: kept,
      duplicates: [],
      changes: changesOf(kept, known),
      waits: [...waitsOf(known), ...disksInPlaceOfVolumes(kept, known), ...formerDisks(kept, known)],
    };
  }
  const waits = waitsOf(situation);
  if (waits.length > 0) return { kind: 'wait', waits };
  if (uncertainMs > 0) {
    return { kind: 'look', afterMs: uncertainMs, why: 'a machine may exist that the runtime does not list yet' };
  }
  return { kind: 'create', machine: newMachine(situation) };
}

function decideDeletion({ existing, uncertainMs }: Situation): MachineDecision {
  if (existing.length > 0) {
    return { kind: 'delete', left: existing, ids: existing.filter(isLeft).map(({ metadata }) => metadata.id) };
  }
  if (uncertainMs > 0) {
    return { kind: 'look', afterMs: uncertainMs, why: 'a machine may exist that the runtime does not list yet' };
  }
  return { kind: 'finish' };
}

/**
 * What is new for a machine waits for the list of each pool, as a creation does: a machine that is not seen yet may have it. What takes the place
 * of something waits until that is gone: two entries of one name are one, and nobody would know what the guest has.
 */
function whatCanBeAttached(kept: RuntimeMachine, { desired, unseen }: Situation): DesiredMachine {
  const { spec } = kept;
  const of = <T extends { readonly name: string }>(
    all: ReadonlyMap<string, Needed<T>>,
    has: readonly T[],
    leaving: readonly string[],
    { isSame, handlesOf }: Kind<T>,
  ): ReadonlyMap<string, Needed<T>> =>
    new Map(
      [...all].map(([name, want]): readonly [string, Needed<T>] => {
        if (!('ready' in want)) return [name, want];
        const { ready } = want;
        if (leaving.includes(name))
          return [name, { why: `${name} waits for the runtime to detach the former one`, held: ready }];
        const isNew = !has.some((one) => one.name === name && isSame(one, ready));
        if (unseen === undefined || !isNew || handlesOf(ready).length === 0) return [name, want];
        return [name, { why: `${name} waits for ${firstListOf(unseen)}` }];
      }),
    );
  return {
    ...desired,
    volumes: of(desired.volumes, spec.volumes, leavingOf(kept, 'volumes'), VOLUMES),
    networkInterfaces: of(
      desired.networkInterfaces,
      spec.networkInterfaces,
      leavingOf(kept, 'networkInterfaces'),
      NETWORK_INTERFACES,
    ),
  };
}

/** What is waited for, in words. */
export function firstListOf(pool: string): string {
  return `the first list of all machines of the runtime of MachinePool ${pool}`;
}

/** The one that the Machine has first, then the oldest; those that are going are not kept while there is another one. */
function byWorth(machines: readonly RuntimeMachine[], machineID = ''): readonly RuntimeMachine[] {
  // One that shows up late may be older than the one that has taken its place, and that is in use.
  const isOther = ({ metadata }: RuntimeMachine): boolean => !machineID.endsWith(`://${metadata.id}`);
  return machines.toSorted(
    (a, b) =>
      Number(!isLeft(a)) - Number(!isLeft(b)) ||
      Number(isOther(a)) - Number(isOther(b)) ||
      Number(a.metadata.createdAt - b.metadata.createdAt) ||
      (a.metadata.id < b.metadata.id ? -1 : 1),
  );
}

/** Whether nobody has told the machine to go. */
function isLeft({ metadata }: RuntimeMachine): boolean {
  return metadata.deletedAt === 0n;
}

/** What is missing, in the order in which it is looked at. */
export function waitsOf({ desired }: Pick<Situation, 'desired'>): readonly Wait[] {
  const { runtimeClass, ignition, networkInterfaces, volumes } = desired;
  return [
    ...waitFor('MachineClassNotReady', runtimeClass),
    ...waitFor('IgnitionNotReady', ignition),
    ...[...networkInterfaces.values()].flatMap((one) => waitFor('NetworkInterfaceNotReady', one)),
    ...[...volumes.values()].flatMap((one) => waitFor('VolumeNotReady', one)),
  ];
}

/** Volumes that are not attached because the machine has a disk of the pool under their names. */
function disksInPlaceOfVolumes({ spec }: RuntimeMachine, { desired }: Pick<Situation, 'desired'>): readonly Wait[] {
  return spec.volumes
    .filter((has) => {
      const want = desired.volumes.get(has.name);
      return want !== undefined && 'ready' in want && volumeLikeness(has, want.ready) === 'disk';
    })
    .map(({ name }) => ({
      reason: 'VolumeNotReady',
      message:
        `Volume of ${name} is not attached: the machine has a disk of the pool in its place. The disk is not removed, because its data would ` +
        'be lost. Save the data, then create another Machine',
    }));
}

/** Whether it is the disk of an ephemeral Volume that was lost, and in whose place an empty one was made: what is on it is in use. */
function isFormerDisk(has: Volume, want: Needed<Volume> | undefined, { spec }: IronCoreMachine): boolean {
  const isEphemeral =
    spec.volumes?.some(({ name, ephemeral }) => name === has.name && ephemeral !== undefined) === true;
  const wanted = wantedOf(want);
  return isEphemeral && wanted !== undefined && isMadeAnew(has, wanted);
}

/** Volumes that are not attached because the machine has the disks of those before them. */
function formerDisks(
  { spec }: RuntimeMachine,
  { machine, desired }: Pick<Situation, 'machine' | 'desired'>,
): readonly Wait[] {
  return spec.volumes
    .filter((has) => isFormerDisk(has, desired.volumes.get(has.name), machine))
    .map(({ name }) => ({
      reason: 'VolumeNotReady',
      message:
        `Volume of ${name} was lost and created again, and is not attached: the machine still has the disk of the former one, with its data. Save ` +
        `the data, then remove ${name} from the Machine, and add it again when it is detached; or create another Machine`,
    }));
}

function waitFor(reason: WaitReason, needed: Needed<unknown>): readonly Wait[] {
  return 'why' in needed ? [{ reason, message: needed.why }] : [];
}

function newMachine({ machine, desired, poolUID, downward, claim, ...situation }: Situation): DesiredRuntimeMachine {
  const { uid, name, namespace = '' } = machine.metadata;
  const { runtimeClass, ignition, hostname } = desired;
  return {
    metadata: {
      labels: {
        ...downward.labels,
        [UID_LABEL]: uid,
        [MACHINE_NAMESPACE_LABEL]: namespace,
        [NAME_LABEL]: name,
        [POOL_UID_LABEL]: poolUID,
      },
      annotations: {
        ...downward.annotations,
        ...annotationsOf(machine, 0n, situation.networkInterfaceUIDs),
        ...(claim !== undefined && { [CLAIM]: claimText(claim) }),
      },
    },
    spec: {
      power: Power.POWER_ON,
      class: 'ready' in runtimeClass ? runtimeClass.ready : '',
      ignitionData: 'ready' in ignition ? ignition.ready : new Uint8Array(),
      volumes: readyOf(desired.volumes),
      networkInterfaces: readyOf(desired.networkInterfaces),
      guestConfig: hostname === undefined ? undefined : { hostname },
    },
  };
}

/** What takes a machine from how it is to how it should be. What is taken away goes first; what takes its place follows when it is gone. */
function changesOf(kept: RuntimeMachine, situation: Situation): readonly RuntimeChange[] {
  const { machine, desired, downward, networkInterfaceUIDs } = situation;
  const { spec, metadata } = kept;
  const power = machine.spec.power === 'Off' ? Power.POWER_OFF : Power.POWER_ON;
  const changes: RuntimeChange[] = [];
  for (const has of spec.networkInterfaces) {
    const want = desired.networkInterfaces.get(has.name);
    if (isKept(has, want, NETWORK_INTERFACES, situation)) continue;
    changes.push({ kind: 'detachNetworkInterface', name: has.name });
  }
  for (const has of spec.volumes) {
    const want = desired.volumes.get(has.name);
    if (isFormerDisk(has, want, machine)) continue;
    if (!isKept(has, want, VOLUMES, situation)) {
      changes.push({ kind: 'detachVolume', name: has.name });
    } else if (want !== undefined && 'ready' in want && volumeLikeness(has, want.ready) === 'size') {
      changes.push({ kind: 'updateVolume', volume: want.ready });
    }
  }
  for (const volume of readyOf(desired.volumes)) {
    if (spec.volumes.some(({ name }) => name === volume.name)) continue;
    changes.push({ kind: 'attachVolume', volume });
  }
  for (const networkInterface of readyOf(desired.networkInterfaces)) {
    if (spec.networkInterfaces.some(({ name }) => name === networkInterface.name)) continue;
    changes.push({ kind: 'attachNetworkInterface', networkInterface });
  }
  if (spec.power !== power) changes.push({ kind: 'power', power });
  const annotations = {
    ...downward.annotations,
    ...annotationsOf(machine, metadata.generation, networkInterfaceUIDs),
  };
  // A runtime may count annotations as a change: its own generation alone is no reason to write them.
  const followed = [MACHINE_GENERATION, NIC_MAPPING, ...Object.keys(downward.annotations)];
  const isStale = followed.some((key) => metadata.annotations[key] !== annotations[key]);
  if (isStale) changes.push({ kind: 'annotate', annotations: { ...metadata.annotations, ...annotations } });
  return changes;
}

interface Kind<T> {
  readonly isSame: (has: T, wanted: T) => boolean;
  /** What only one machine can have. */
  readonly handlesOf: (one: T) => readonly string[];
}

const VOLUMES: Kind<Volume> = {
  isSame: (has, wanted) => volumeLikeness(has, wanted) !== 'other',
  handlesOf: (volume) => handlesOfVolume(volume),
};
const NETWORK_INTERFACES: Kind<NetworkInterface> = {
  isSame: isSameNetworkInterface,
  handlesOf: (networkInterface) => handlesOfNetworkInterface(networkInterface),
};

/**
 * What is attached stays while what should take its place, or the same, is not ready; unless that is another one, which another Machine gives
 * for this: two that change with each other would wait for ever.
 */
function isKept<T>(
  has: T,
  want: Needed<T> | undefined,
  kind: Kind<T>,
  { desired, isExchange }: Pick<Situation, 'desired' | 'isExchange'>,
): boolean {
  if (want === undefined) return false;
  if ('ready' in want) return kind.isSame(has, want.ready);
  const exchange = exchangeOf(has, want, kind, desired);
  return exchange === undefined || !isExchange(exchange);
}

/** Network interfaces that machines have, and of which it is not known that they are what their entries are to be. */
export function formerNetworkInterfaces(
  existing: readonly RuntimeMachine[],
  { networkInterfaces }: DesiredMachine,
): readonly NetworkInterface[] {
  return existing.flatMap(({ spec }) =>
    spec.networkInterfaces.filter((has) => {
      const wanted = wantedOf(networkInterfaces.get(has.name));
      return wanted === undefined || !isSameNetworkInterface(has, wanted);
    }),
  );
}

/** What would be changed if others did not use what is wanted. */
export function exchangesOf({ machine, desired, existing }: Situation): readonly Exchange[] {
  const [kept, ...others] = existing;
  if (kept === undefined || others.length > 0 || !isLeft(kept)) return [];
  const { networkInterfaces, volumes } = kept.spec;
  return [
    ...networkInterfaces.map((has) =>
      exchangeOf(has, desired.networkInterfaces.get(has.name), NETWORK_INTERFACES, desired),
    ),
    ...volumes
      .filter((has) => !isFormerDisk(has, desired.volumes.get(has.name), machine))
      .map((has) => exchangeOf(has, desired.volumes.get(has.name), VOLUMES, desired)),
  ].filter((one) => one !== undefined);
}

function exchangeOf<T>(
  has: T,
  want: Needed<T> | undefined,
  { isSame, handlesOf }: Kind<T>,
  desired: DesiredMachine,
): Exchange | undefined {
  if (want === undefined || 'ready' in want || want.held === undefined || isSame(has, want.held)) return undefined;
  const still = handlesIn(desired);
  return { gives: handlesOf(has).filter((handle) => !still.has(handle)), wants: handlesOf(want.held) };
}

/** All that a machine is to have, whichever entry it is of. */
function handlesIn({ networkInterfaces, volumes }: DesiredMachine): ReadonlySet<string> {
  const of = <T>(all: Iterable<Needed<T>>, { handlesOf }: Kind<T>): readonly string[] =>
    [...all].flatMap((one) => wantedOf(one) ?? []).flatMap(handlesOf);
  return new Set([...of(networkInterfaces.values(), NETWORK_INTERFACES), ...of(volumes.values(), VOLUMES)]);
}

/** What it should be, as far as that is known. */
function wantedOf<T>(want: Needed<T> | undefined): T | undefined {
  if (want === undefined) return undefined;
  return 'ready' in want ? want.ready : want.held;
}

function readyOf<T>(all: ReadonlyMap<string, Needed<T>>): T[] {
  return [...all.values()].flatMap((one) => ('ready' in one ? [one.ready] : []));
}

/** Of the Machine at this generation; NetworkInterfaces that are not known are left out. */
function annotationsOf(
  machine: IronCoreMachine,
  runtimeGeneration: bigint,
  uids: ReadonlyMap<string, string>,
): Readonly<Record<string, string>> {
  const { networkInterfaces = [] } = machine.spec;
  const mapping = networkInterfaces
    .map((entry) => ({ entry: entry.name, name: networkInterfaceNameOf(machine, entry) }))
    .flatMap(({ entry, name }) => {
      const uid = uids.get(name);
      return uid === undefined ? [] : [[entry, { name, uid }] as const];
    })
    .toSorted(([a], [b]) => (a < b ? -1 : 1));
  return {
    [MACHINE_GENERATION]: String(machine.metadata.generation ?? 0),
    [RUNTIME_GENERATION]: String(runtimeGeneration),
    [NIC_MAPPING]: JSON.stringify(Object.fromEntries(mapping)),
  };
}
