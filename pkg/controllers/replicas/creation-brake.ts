import { UNFREEZE_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import type { Clock } from '../../base/clock/clock.ts';

/** Reason of condition Frozen when an owner has created too much; the other reasons are those of the overshoot safety. */
export const CREATION_LIMIT_REACHED = 'CreationLimitReached';

/** How long a creation counts, in seconds. */
const WINDOW_S = 60;
/** So many MachineSets a minute: one for each change of the template, and nobody changes it that often. */
export const SETS_A_MINUTE = 10;
/** So many times the Machines that there may be at once are created in a minute: a pool is filled, rolled and rolled back. */
const FILLS_A_MINUTE = 3;
/** So many Machines more, for small pools whose Machines are deleted again and again. */
const SPARE_MACHINES = 20;

interface Second {
  machines: number;
  sets: number;
  /** By how much more Machines were asked for. */
  raisedBy: number;
  /** Replicas plus surge. */
  allowed: number;
}

interface Owner {
  /** Undefined when a creation was answered after its owner had been forgotten, until the owner is looked at again. */
  size: { readonly replicas: number; readonly allowed: number } | undefined;
  readonly seconds: Map<number, Second>;
}

/** How much an owner has created within a minute, and how much that may be. */
export interface Spending {
  readonly machines: number;
  readonly sets: number;
  readonly most: { readonly machines: number; readonly sets: number };
}

/**
 * The last brake, whatever goes wrong: counts what each MachineDeployment (or MachineSet without one), by UID, creates within a
 * minute. Nobody has a reason to create many times what may exist at once: where that happens, what is created is lost, or taken
 * for somebody else's, and made again. Replicas that rise may be followed, however often they do.
 *
 * The count begins anew with the process; that an owner was stopped is written on it.
 */
export class CreationBrake {
  readonly #clock: Clock;
  readonly #owners = new Map<string, Owner>();

  constructor(deps: { clock: Clock }) {
    this.#clock = deps.clock;
  }

  /** `uid` is asked for `replicas` now, and `allowed` Machines may exist. */
  observe(uid: string, replicas: number, allowed: number): void {
    const owner = this.#ownerOf(uid);
    const { size } = owner;
    if (size?.replicas === replicas && size.allowed === allowed) return;
    owner.size = { replicas, allowed };
    if (size === undefined) return;
    // What was allowed until now explains what was created until now.
    const second = this.#now(owner);
    second.allowed = Math.max(second.allowed, size.allowed, allowed);
    second.raisedBy += Math.max(0, replicas - size.replicas);
  }

  /** A Machine was created for `uid`, however long ago that was asked for. */
  createdMachine(uid: string): void {
    this.#now(this.#ownerOf(uid)).machines += 1;
  }

  /** A MachineSet was created for `uid`, however long ago that was asked for. */
  createdSet(uid: string): void {
    this.#now(this.#ownerOf(uid)).sets += 1;
  }

  /** How many Machines `uid` may create now. */
  room(uid: string): number {
    const { machines, most } = this.spending(uid);
    return Math.max(0, most.machines - machines);
  }

  /** What `uid` has created within a minute. */
  spending(uid: string): Spending {
    const owner = this.#owners.get(uid);
    if (owner?.size === undefined) return { machines: 0, sets: 0, most: { machines: Infinity, sets: Infinity } };
    this.#forgetOld(owner);
    const seconds = [...owner.seconds.values()];
    const sum = (member: 'machines' | 'sets' | 'raisedBy'): number =>
      seconds.reduce((total, second) => total + second[member], 0);
    const allowed = Math.max(owner.size.allowed, ...seconds.map((second) => second.allowed));
    return {
      machines: sum('machines'),
      sets: sum('sets'),
      most: { machines: FILLS_A_MINUTE * allowed + SPARE_MACHINES + sum('raisedBy'), sets: SETS_A_MINUTE },
    };
  }

  /** Somebody released `uid`, or it is gone: its count begins anew. */
  forget(uid: string): void {
    this.#owners.delete(uid);
  }

  #ownerOf(uid: string): Owner {
    const known = this.#owners.get(uid);
    if (known !== undefined) return known;
    this.#forgetIdle();
    const owner: Owner = { size: undefined, seconds: new Map() };
    this.#owners.set(uid, owner);
    return owner;
  }

  #forgetIdle(): void {
    for (const [uid, owner] of this.#owners) {
      this.#forgetOld(owner);
      if (owner.seconds.size === 0) this.#owners.delete(uid);
    }
  }

  #now(owner: Owner): Second {
    this.#forgetOld(owner);
    const at = this.#seconds();
    const second = owner.seconds.get(at) ?? { machines: 0, sets: 0, raisedBy: 0, allowed: owner.size?.allowed ?? 0 };
    owner.seconds.set(at, second);
    return second;
  }

  #forgetOld({ seconds }: Owner): void {
    const oldest = this.#seconds() - WINDOW_S;
    for (const at of seconds.keys()) {
      if (at > oldest) return; // in order
      seconds.delete(at);
    }
  }

  #seconds(): number {
    return Math.floor(this.#clock.monotonicMs() / 1000);
  }
}

export function isSpent({ machines, sets, most }: Spending): boolean {
  return machines >= most.machines || sets >= most.sets;
}

/** What is told of an owner that is stopped: why, and what ends it. */
export function describeStop(owner: string, { machines, sets, most }: Spending): string {
  const [created, limit] =
    sets >= most.sets ? [`${sets} MachineSets`, most.sets] : [`${machines} Machines`, most.machines];
  return (
    `${owner} has created ${created} within a minute (limit: ${limit}): it creates nothing more until annotation ` +
    `${UNFREEZE_ANNOTATION} is set. First find out why the created objects did not persist, for example because of a webhook that changes labels`
  );
}

/** Whether condition Frozen among `conditions` says that the limit was reached. */
export function isStopped(conditions: readonly { type: string; reason?: string }[] | undefined): boolean {
  return (conditions ?? []).some(({ type, reason }) => type === 'Frozen' && reason === CREATION_LIMIT_REACHED);
}
