import type { IronCoreMachine } from '../../api/machine.ts';
import {
  CREATION_SENT_ANNOTATION,
  CREATION_SENT_TO_ANNOTATION,
  GIVE_UP_MISSING_MACHINES_UNTIL_ANNOTATION,
  MISSING_WITH_ANNOTATION,
} from '../../../../apis/machine/v1alpha1/labels.ts';
import { isBeingDeleted, type KubeObject } from '../../../../apis/meta.ts';
import { fromTimestamp } from '../../../../base/clock/clock.ts';
import { BoundedMap } from '../../../../kube/events/bounded-map.ts';
import type { PoolRuntime } from '../../runtime/gated-runtime.ts';
import { giveUpHint, releaseOf, type Release } from '../../../../controllers/vms/orphan-release.ts';
import { deletionNoteOf, type DeletionNote } from './deletion-note.ts';
import { UID_LABEL } from './keys.ts';
import { runtimeIDOf, runtimeNameOf } from './runtime-id.ts';
import { listRuntimeMachines, type ListedRuntime } from './sightings.ts';
import { CREATION_MS } from './uncertainty.ts';
import type { IronCoreCollaborators } from '../collaborators.ts';

type Deps = Pick<IronCoreCollaborators, 'machines' | 'pools' | 'poolRecorder' | 'sightings' | 'clock'>;

/** Why nothing is done for a Machine although the runtime shows no machine of it. */
export interface Doubt {
  readonly reason: (typeof REASONS)[number];
  readonly message: string;
  /** When it ends by itself, if nothing changes; undefined: never. */
  readonly leftMs?: number;
}

const REASONS = ['WrongRuntime', 'MachinesLost'] as const;

/** Whether its status says that nothing is done for a Machine because of such a doubt. */
export function isHeldAsMissing({ status }: IronCoreMachine): boolean {
  return (status?.conditions ?? []).some(
    ({ type, reason }) => type === 'Ready' && REASONS.some((doubt) => doubt === reason),
  );
}

/** More machines that vanish at once are no mishap: the runtime has lost its state, or is another one, and what it had may come back. */
const MOST_LOST = 5;
/** So many, if they are all. */
const FEWEST_OF_ALL = 2;
/** For so long many that vanish at once are not believed to be gone, although the runtime is the same process as when it showed them. */
const MANY_MS = 60_000;
/** For so long what is missing holds other Machines of the pool, too, without another list. */
const LIST_MS = 5_000;
/** So many are remembered; of the oldest only what is noted at them counts. */
const CAPACITY = 65_536;

/** How many machines of a pool should be at its runtime, and how many of those it does not show. */
interface Shortage {
  readonly recorded: number;
  readonly missing: number;
  /** Ids of those that this connection has not shown before: whatever else was there may be lost with them. */
  readonly lost: readonly string[];
  /** By which the runtime has said so. */
  readonly connection: number | undefined;
  /** Ids of all machines that it shows, each with the UID of its Machine as its label has it; empty without. */
  readonly ids: ReadonlyMap<string, string>;
  readonly uids: ReadonlySet<string>;
}

/** What the list of all machines of a pool says of a Machine of which none is shown. */
export interface Verdict {
  /** Undefined: its machine is gone, or there never was one. */
  readonly doubt: Doubt | undefined;
  /** Ids of some machines with which that of a creation without an answer may be lost, for whoever looks after those are given up. */
  readonly missingWith: readonly string[];
}

/** Whether so many are missing that the runtime is not believed. */
function isTooMany({ recorded, missing }: Pick<Shortage, 'recorded' | 'missing'>): boolean {
  return missing > MOST_LOST || (missing >= FEWEST_OF_ALL && missing === recorded);
}

/**
 * Whether it is believed that a machine is gone which the runtime does not show. A runtime that was started anew without its state, or one
 * at whose address another one answers, shows none either, and what used a volume goes on using it. So it is asked who it is, and a machine
 * counts as gone if it was told to go, as deletion-note.ts has it, or if few others are missing and it was seen to go, or there, by the
 * connection that does not show it any more.
 */
export class MissingMachines {
  readonly #deps: Deps;
  /** What this process knows of deletions, by UID and time: newer than what their Machines say. */
  readonly #notes = new BoundedMap<string, DeletionNote>(CAPACITY);
  /** By pool, the last list of all machines. */
  readonly #lists = new Map<string, { readonly sinceMs: number; readonly seen: Promise<Shortage> }>();
  /** By pool, what was told last. */
  readonly #reported = new Map<string, string>();
  /** By UID, since when a machine has been missing as one of many that the same process at the other end has shown before. */
  readonly #amongManySinceMs = new BoundedMap<string, number>(CAPACITY);

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** What became of the deletion of its machine, whether or not that could be written. */
  deletion(machine: IronCoreMachine, note: DeletionNote): void {
    this.#notes.set(deletionKey(machine), note);
  }

  /** Its machine is shown: what was missing, if it was, counts for nothing any more. */
  found({ metadata: { uid } }: IronCoreMachine): void {
    this.#amongManySinceMs.delete(uid);
  }

  deletionOf(machine: IronCoreMachine): DeletionNote {
    return isBeingDeleted(machine) ? (this.#notes.get(deletionKey(machine)) ?? deletionNoteOf(machine)) : 'none';
  }

  /** Whether that its machine is not there is no news. */
  isExpected(machine: IronCoreMachine): boolean {
    return this.deletionOf(machine) === 'accepted';
  }

  /** Whether the runtime of its pool has shown a machine of it, whatever its status says: that may have been lost in a restore. */
  #wasSeen({ metadata, spec }: IronCoreMachine): boolean {
    return this.#deps.sightings.has(spec.machinePoolRef?.name ?? '', metadata.uid);
  }

  /** Whether it had a machine: its status says so, or the runtime of its pool has shown one. */
  hadMachine(machine: IronCoreMachine): boolean {
    return (machine.status?.machineID ?? '') !== '' || this.#wasSeen(machine);
  }

  /** Whether that its machine is not there may be wrong: it had one, or nobody knows what became of a creation. */
  isMissed(machine: IronCoreMachine): boolean {
    if (this.isExpected(machine)) return false;
    return this.hadMachine(machine) || machine.metadata.annotations?.[CREATION_SENT_ANNOTATION] !== undefined;
  }

  /** Whether another runtime answers than the one that has its machine. `answering` is the name of the one that does. */
  wrongRuntime(machine: IronCoreMachine, poolName: string, answering: string): Doubt | undefined {
    const right = runtimeNameOf(machine);
    if (right === '' || right === answering) return undefined;
    const release = this.#releaseOf(machine, poolName);
    if (release === 'given') return undefined;
    const who = `MachinePool ${poolName} is served by runtime ${answering}, which does not have the machines of runtime ${right}`;
    const what =
      'Not creating, deleting or releasing anything for such Machines. Check the addresses of --ironcore-pool for a mix-up. ' +
      giveUpHint(release, poolRef(poolName));
    const pool = this.#deps.pools.get(poolName);
    if (pool !== undefined && this.#reported.get(poolName) !== who) {
      this.#reported.set(poolName, who);
      const message = `${who}. ${what}`;
      this.#deps.poolRecorder.event({ object: pool, type: 'Warning', reason: 'WrongRuntime', message });
    }
    return { reason: 'WrongRuntime', message: `${who} (${machine.status?.machineID ?? ''}). ${what}` };
  }

  /**
   * Whether a creation that nobody has answered was sent to another runtime than the one that answers: `here`, as `recipientOf` has it. Its
   * machine may be there, and this one never shows it.
   */
  sentElsewhere(machine: IronCoreMachine, poolName: string, here: string): Doubt | undefined {
    const { [CREATION_SENT_TO_ANNOTATION]: recipient = here } = machine.metadata.annotations ?? {};
    if (recipient === here || (machine.status?.machineID ?? '') !== '') return undefined;
    const release = this.#releaseOf(machine, poolName);
    if (release === 'given') return undefined;
    const message =
      `A creation without an answer was sent to runtime ${recipient}, but MachinePool ${poolName} now has ${here}: a machine may exist at the ` +
      'former. Not creating or releasing anything here. Check the addresses of --ironcore-pool for a mix-up. ' +
      giveUpHint(release, machineRef(machine));
    return { reason: 'WrongRuntime', message };
  }

  /**
   * The runtime of another pool, `there`, may have a machine of the Machine, as `why` says. What is given up of its own pool says nothing of
   * that one.
   */
  elsewhere(machine: IronCoreMachine, poolName: string, there: string, why: string): Doubt | undefined {
    const release = releaseOfMissing(machine, undefined, this.#deps.clock.now());
    if (release === 'given') return undefined;
    const message =
      `The runtime of MachinePool ${there} ${why}, although the pool of the Machine is ${poolName}: the API server may have been restored from a ` +
      'backup taken before the Machine was placed. Not creating or releasing anything here. Save the data of the machine, then delete it at ' +
      `that runtime. ${giveUpHint(release, machineRef(machine))}`;
    return { reason: 'WrongRuntime', message };
  }

  /**
   * Whether too many machines of the pool are missing in the runtime's whole list, whatever it makes of labels, or nothing but that says that
   * this one is gone; or that list has it. Before that is `isDue`, because its machine may still come, it is only asked whether a creation
   * without an answer may be lost with others: nothing is given up by that, and any list of late will do. Throws RuntimeError.
   */
  async lost(
    machine: IronCoreMachine,
    poolName: string,
    runtime: ListedRuntime,
    isDue: boolean,
    signal: AbortSignal,
  ): Promise<Verdict> {
    const missingWithIn = (one: Shortage): readonly string[] => this.#missingWith(machine, poolName, one);
    const isEnough = (one: Shortage): boolean => !isDue || isTooMany(one) || missingWithIn(one).length > 0;
    const shortage = await this.#shortage(poolName, runtime, isEnough, signal);
    const missingWith = missingWithIn(shortage);
    if (!isDue && missingWith.length === 0) return { doubt: undefined, missingWith };
    return { doubt: this.#doubt(machine, poolName, shortage), missingWith };
  }

  /** Whether nobody knows what became of a creation, if one was sent. */
  isUnanswered(machine: IronCoreMachine): boolean {
    return this.deletionOf(machine) === 'none' && runtimeIDOf(machine) === '' && !this.#wasSeen(machine);
  }

  /**
   * Of a creation without an answer nobody knows; but whoever lacks another machine may have lost this one with it. That one may be given up
   * by now, or its Machine gone: what was noted counts until it is shown again, or was seen to go.
   */
  #missingWith(machine: IronCoreMachine, poolName: string, { lost, connection, ids }: Shortage): readonly string[] {
    if (!this.isUnanswered(machine)) return [];
    const noted = missingWithOf(machine).filter(
      (id) => !ids.has(id) && !this.#deps.sightings.vouchesFor(poolName, { id }, connection),
    );
    return [...new Set([...noted, ...lost])].slice(0, MOST_LOST);
  }

  #doubt(machine: IronCoreMachine, poolName: string, shortage: Shortage): Doubt | undefined {
    const { recorded, missing, connection, ids, uids } = shortage;
    const note = this.deletionOf(machine);
    const isUnanswered = this.isUnanswered(machine);
    const lost = this.#missingWith(machine, poolName, shortage);
    const release = this.#releaseOf(machine, poolName);
    const { machineID = '' } = machine.status ?? {};
    const what = machineID === '' ? 'its machine' : machineID;
    const { uid } = machine.metadata;
    // Where its label is lost, the id may be somebody else's by now: that may be given up.
    if (uids.has(uid) || (release !== 'given' && ids.get(runtimeIDOf(machine)) === '')) {
      const message =
        `The runtime lists ${what} among all of its machines, but did not when asked for it. Not creating, deleting or releasing anything for it ` +
        'until both agree. If this persists, check how the runtime selects machines by label and id';
      return { reason: 'MachinesLost', message };
    }
    const isMany = isTooMany({ recorded, missing });
    const isVouchedFor = isUnanswered ? lost.length === 0 : this.#isVouchedFor(machine, poolName, connection);
    const known = { note, isMany, isVouchedFor, connection, ids };
    if (this.#isBelieved(machine, poolName, known)) return undefined;
    if (release === 'given') return undefined;
    if (!isVouchedFor) this.#amongManySinceMs.delete(uid);
    else if (note === 'none') {
      const nowMs = this.#deps.clock.monotonicMs();
      const sinceMs = this.#amongManySinceMs.get(uid) ?? nowMs;
      this.#amongManySinceMs.set(uid, sinceMs);
      const leftMs = sinceMs + MANY_MS - nowMs;
      if (leftMs <= 0) return undefined;
      const which = isUnanswered ? 'all of which' : 'including this one, which';
      const message =
        `The runtime does not list ${missing} of ${recorded} machines of MachinePool ${poolName}, ${which} it listed before over ` +
        `the same connection. If this persists for ${MANY_MS / 1_000} s, they are considered gone`;
      return { reason: 'MachinesLost', message, leftMs };
    }
    if (note !== 'none') {
      const answer = note === 'sent' ? 'no answer was recorded' : 'has not answered';
      const message =
        `The runtime was asked to delete ${what}, and ${answer}; since then it, or the process that serves the pool, was restarted, and it does not ` +
        `list ${missing} of ${recorded} machines of MachinePool ${poolName} whose deletion it has not accepted. Waiting for it to list this one, ` +
        'which is then deleted, or a younger one that existed beside it. If the runtime has lost its state, or has an older one, restore it. ' +
        giveUpHint(release, machineRef(machine));
      return { reason: 'MachinesLost', message };
    }
    if (!isMany && isUnanswered) {
      const message =
        `A creation without an answer was sent, and the runtime does not list other machines of MachinePool ${poolName} (${lost.join(', ')}), whose ` +
        'deletion was not observed: with them, it may have lost one of this Machine, also if they were given up. Not creating or releasing anything for it. Check whether the ' +
        `runtime has lost its state, or has an older one, and restore it. ${giveUpHint(release, machineRef(machine))}`;
      return { reason: 'MachinesLost', message };
    }
    if (!isMany) {
      const message =
        `The runtime does not list ${what}, and its deletion was not observed. Not creating, deleting or releasing anything for it, ` +
        'because the runtime, or the process that serves the pool, was restarted since then. Check whether the runtime has lost its state, or has an older ' +
        `one, and restore it. ${giveUpHint(release, machineRef(machine))}`;
      return { reason: 'MachinesLost', message };
    }
    const message =
      `The runtime does not list ${missing} of ${recorded} machines of MachinePool ${poolName} whose deletion it has not accepted. Not creating, ` +
      'deleting or releasing anything for them. Check whether it has lost its state, or is another one of that name, and restore them. ' +
      giveUpHint(release, poolRef(poolName));
    return { reason: 'MachinesLost', message };
  }

  /** Whether its machine was seen going, or there by the connection that does not show it any more. */
  #isVouchedFor(machine: IronCoreMachine, poolName: string, connection: number | undefined): boolean {
    const id = runtimeIDOf(machine);
    const what = id === '' ? { uid: machine.metadata.uid } : { id };
    return this.#deps.sightings.vouchesFor(poolName, what, connection);
  }

  /** Whether a machine is gone that the runtime does not show. */
  #isBelieved(
    machine: IronCoreMachine,
    poolName: string,
    known: Pick<Shortage, 'connection' | 'ids'> &
      Readonly<{ note: DeletionNote; isMany: boolean; isVouchedFor: boolean }>,
  ): boolean {
    const { note, isMany, isVouchedFor, connection, ids } = known;
    const { sightings } = this.#deps;
    const id = runtimeIDOf(machine);
    // Whoever has told it to go, be it the provider: it was seen going, and however many were.
    const wasGoing = id !== '' && sightings.vouchesFor(poolName, { id });
    if (note === 'none') return wasGoing || (!isMany && isVouchedFor);
    // Many may have been told to go at once, and the same process at the other end, or what it still has, says that it has lost nothing.
    if (isVouchedFor || (id !== '' && sightings.remembers(poolName, id, connection))) return true;
    return note === 'sent' && !isMany && this.#isOutlived(machine, poolName, ids);
  }

  /**
   * Whether the runtime shows a machine that was made while that of this Machine was there, as their Machines say: so its state is not one from
   * before both. Whoever comes after a process that died of a deletion has seen neither.
   */
  #isOutlived(machine: IronCoreMachine, poolName: string, ids: Shortage['ids']): boolean {
    const madeMs = creationSentMs(machine);
    const goingMs = fromTimestamp(machine.metadata.deletionTimestamp);
    if (madeMs === undefined || goingMs === undefined) return false;
    return this.#deps.machines.byIndex('pool', poolName).some((other) => {
      const sentMs = creationSentMs(other) ?? -Infinity;
      // Each may have been carried out so long after it was sent.
      const isBetween = sentMs > madeMs + CREATION_MS && sentMs + CREATION_MS < goingMs;
      return isBetween && ids.has(runtimeIDOf(other));
    });
  }

  /** What is missing at the runtime of a pool. One list is enough for all Machines to be held; before one of them is given up there is another. */
  async #shortage(
    poolName: string,
    runtime: ListedRuntime,
    isEnough: (found: Shortage) => boolean,
    signal: AbortSignal,
  ): Promise<Shortage> {
    const { clock } = this.#deps;
    const last = this.#lists.get(poolName);
    if (last !== undefined && clock.monotonicMs() - last.sinceMs < LIST_MS) {
      const found = await last.seen.catch(() => undefined); // Whoever has asked tells.
      if (found !== undefined && isEnough(found)) return found;
    }
    const seen = this.#list(poolName, runtime, signal);
    this.#lists.set(poolName, { sinceMs: clock.monotonicMs(), seen });
    return await seen;
  }

  async #list(poolName: string, runtime: ListedRuntime, signal: AbortSignal): Promise<Shortage> {
    const { machines, sightings } = this.#deps;
    // Before the list: what is made meanwhile is not missing there.
    const inPool = machines.byIndex('pool', poolName);
    const shown = await listRuntimeMachines(runtime, {}, signal);
    sightings.saw(poolName, shown);
    const ids = new Map(shown.machines.map(({ metadata: { id, labels } }) => [id, labels[UID_LABEL] ?? '']));
    const known = inPool
      .filter((one) => !this.isExpected(one))
      .map((one) => ({ one, id: runtimeIDOf(one) }))
      // That one is gone which was seen going is no news either.
      .filter(({ id }) => id !== '' && (ids.has(id) || !sightings.vouchesFor(poolName, { id })));
    const { connection } = shown;
    const gone = known.filter(({ id }) => !ids.has(id));
    const of = { recorded: known.length, missing: gone.length };
    const isMany = isTooMany(of);
    const lost = gone
      .filter(({ id }) => !sightings.vouchesFor(poolName, { id }, connection))
      // Nor that one is gone which was told to go, where it is believed.
      .filter(({ one }) => {
        const note = this.deletionOf(one);
        return !this.#isBelieved(one, poolName, { note, isMany, isVouchedFor: false, connection, ids });
      })
      .map(({ id }) => id);
    return { ...of, lost, connection, ids, uids: new Set(ids.values()) };
  }

  /** What the pool allows for all of its Machines, or the Machine for itself. */
  #releaseOf(machine: IronCoreMachine, poolName: string): Release {
    return releaseOfMissing(machine, this.#deps.pools.get(poolName), this.#deps.clock.now());
  }
}

/** Whether missing machines may be given up, as the object itself or a pool says: what is wrong with the permission of the pool comes first. */
export function releaseOfMissing(object: KubeObject | undefined, pool: KubeObject | undefined, nowMs: number): Release {
  const of = (one: KubeObject | undefined): Release =>
    one === undefined ? 'none' : releaseOf(one, nowMs, GIVE_UP_MISSING_MACHINES_UNTIL_ANNOTATION);
  const [own, ofPool] = [of(object), of(pool)];
  return own === 'given' || ofPool === 'none' ? own : ofPool;
}

/** Ids that are noted at a Machine of machines with which its own may be lost. A note that was copied from another Machine is none. */
export function missingWithOf({ metadata: { annotations, uid } }: IronCoreMachine): readonly string[] {
  const [of, ...ids] = annotations?.[MISSING_WITH_ANNOTATION]?.split(' ') ?? [];
  return of === uid ? ids.map(decoded) : [];
}

/** The value of the annotation that notes these; null: it is taken off. */
export function missingWithText({ metadata: { uid } }: IronCoreMachine, ids: readonly string[]): string | null {
  // Whatever a runtime has for an id.
  return ids.length === 0 ? null : [uid, ...ids.map(encodeURIComponent)].join(' ');
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // Somebody else has written it.
  }
}

/** When the creation of the machine that it has was sent; undefined: it does not say. */
function creationSentMs({ metadata: { annotations } }: IronCoreMachine): number | undefined {
  return fromTimestamp(annotations?.[CREATION_SENT_ANNOTATION]);
}

/** A Machine that came back with a backup has another machine by the time it is deleted again. */
function deletionKey({ metadata: { uid, deletionTimestamp = '' } }: IronCoreMachine): string {
  return `${uid} ${deletionTimestamp}`;
}

function poolRef(name: string): Parameters<typeof giveUpHint>[1] {
  return { kind: 'machinepools.compute.ironcore.dev', metadata: { name } };
}

function machineRef({ metadata: { name, namespace } }: IronCoreMachine): Parameters<typeof giveUpHint>[1] {
  return { kind: 'machines.compute.ironcore.dev', metadata: { name, ...(namespace !== undefined && { namespace }) } };
}

/** A runtime in words that are the same whenever it is asked: its name, and where it is. */
export function recipientOf(name: string, { address }: Pick<PoolRuntime, 'address'>): string {
  return `${name} at ${address}`;
}
