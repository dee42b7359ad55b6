import { keyOf } from '../../../../apis/meta.ts';
import type { Release } from '../../../../controllers/vms/orphan-release.ts';
import type { IronCoreMachine } from '../../api/machine.ts';
import type { NetworkInterface, Volume } from '../../runtime/gen/ironcore/machine/v1alpha1/machine.ts';
import type { RuntimeMachine } from '../../runtime/runtime.ts';

/** What is used once: a volume, as its provider calls it. */
export function volumeHandle({
  driver = '',
  handle = '',
}: {
  readonly driver?: string;
  readonly handle?: string;
}): string {
  return `volume ${driver} ${handle}`;
}

/** An address in a network, as the runtime calls that. */
export function addressHandle(networkID: string, ip: string): string {
  return `address ${networkID} ${ip}`;
}

export interface Holder {
  readonly id: string;
  readonly pool: string;
  /** Its Machine, by namespace and name; undefined: it has none. */
  readonly machine?: string;
  /** The UID of that. */
  readonly uid?: string;
  /** Its Machine is gone, and its runtime does not answer: what is wrong with the permission to give it up. */
  readonly lost?: Exclude<Release, 'given'>;
}

/** What the machine of a Machine has and its Machine does not want any more, and what that wants in its place. */
export interface Exchange {
  readonly gives: readonly string[];
  readonly wants: readonly string[];
}

/** A machine at a runtime that has a Machine. */
export interface Owned {
  readonly machine: RuntimeMachine;
  readonly owner: IronCoreMachine;
}

interface Use extends Omit<Holder, 'pool' | 'uid' | 'lost'> {
  readonly handle: string;
  /** UID of the Machine of the machine; empty: it has none. */
  readonly uid: string;
}

/** Of a machine at a runtime, by the name of its entry there. */
interface Attached {
  readonly kind: 'volumes' | 'networkInterfaces';
  readonly name: string;
  readonly handle: string;
}

/**
 * What machines use at the runtimes of all pools of this process. The API server may have forgotten that: a volume that looks free there is
 * given to no other machine while a machine has it, in whatever pool, and neither is an address.
 */
export class KeptUses {
  /** By pool and handle. */
  readonly #uses = new Map<string, Map<string, readonly Use[]>>();
  /** By pool and id of a machine, what it had in the last list, and what it was still to lose then. */
  readonly #attached = new Map<string, ReadonlyMap<string, readonly Attached[]>>();
  readonly #failures = new Map<string, string>();
  /** Keys of Machines that wait for what another machine uses, by its handle and their UID. */
  readonly #waiting = new Map<string, Map<string, string>>();
  /** By key and with the UID of a Machine, as of its last pass. */
  readonly #exchanges = new Map<string, { readonly uid: string; readonly all: readonly Exchange[] }>();

  /**
   * These machines at the runtime of a pool have no Machine, and those have one; all that there are. `others` are of somebody else, whose
   * networks may be others, too. Returns the keys of Machines that have waited for what nobody else uses any more.
   */
  saw(
    pool: string,
    ownerless: readonly RuntimeMachine[],
    others: readonly RuntimeMachine[] = [],
    owned: readonly Owned[] = [],
  ): readonly string[] {
    const before = this.#attached.get(pool);
    const attached = new Map<string, readonly Attached[]>();
    const usesOf = (one: RuntimeMachine, now: readonly Attached[], owner?: IronCoreMachine): readonly Use[] => {
      const { id } = one.metadata;
      const leaving = (before?.get(id) ?? []).filter((was) => isLeaving(one, was));
      const all = [...now, ...leaving.filter(({ handle }) => !now.some((is) => is.handle === handle))];
      attached.set(id, all);
      const user = { id, uid: owner?.metadata.uid ?? '', ...(owner !== undefined && { machine: keyOf(owner) }) };
      return all.map(({ handle }) => ({ handle, ...user }));
    };
    const uses: readonly Use[] = [
      ...ownerless.flatMap((one) => usesOf(one, [...volumesOf(one), ...addressesOf(one)])),
      ...others.flatMap((one) => usesOf(one, volumesOf(one))),
      ...owned.flatMap(({ machine: one, owner }) => {
        // What has no name is the same as any other without one: of two machines that have their Machines that says nothing.
        const [volumes, addresses] = [volumesOf(one, (name) => name !== ''), addressesOf(one, (name) => name !== '')];
        return usesOf(one, [...volumes, ...addresses], owner);
      }),
    ];
    this.#attached.set(pool, attached);
    this.#uses.set(
      pool,
      Map.groupBy(uses, ({ handle }) => handle),
    );
    this.#failures.delete(pool);
    return this.#takeFreed();
  }

  failed(pool: string, why: string): void {
    this.#failures.set(pool, why);
  }

  /** Why the runtime of a pool did not say what it has, when it was last asked; undefined: it did, or was not asked. */
  whyNot(pool: string): string | undefined {
    return this.#failures.get(pool);
  }

  forget(pool: string): void {
    this.#uses.delete(pool);
    this.#attached.delete(pool);
    this.#failures.delete(pool);
  }

  /** Whether the runtime of a pool has been looked at. */
  has(pool: string): boolean {
    return this.#uses.has(pool);
  }

  /** What uses something at the runtime of any pool, and is no machine of this Machine; undefined: nothing does. If something does, the Machine waits for it. */
  holderOf(handle: string, asking: IronCoreMachine): Holder | undefined {
    const { uid } = asking.metadata;
    const holder = this.#otherThan(uid, handle);
    if (holder !== undefined) {
      const waiting = this.#waiting.get(handle) ?? new Map<string, string>();
      this.#waiting.set(handle, waiting.set(uid, keyOf(asking)));
    }
    return holder;
  }

  /** Somebody says that this machine is gone, of which its runtime says nothing any more. */
  giveUp({ pool, id }: Holder, handle: string): void {
    const uses = this.#uses.get(pool);
    uses?.set(handle, uses.get(handle)?.filter((one) => one.id !== id) ?? []);
  }

  /** The Machine would change these if what it wants were free. */
  offers(machine: IronCoreMachine, all: readonly Exchange[]): void {
    if (all.length > 0) this.#exchanges.set(keyOf(machine), { uid: machine.metadata.uid, all });
  }

  /** Nobody knows whether the Machine of this key will change anything: it is looked at anew, or not at all. */
  withdraw(key: string): void {
    this.#exchanges.delete(key);
  }

  /**
   * Whether a Machine gets what it wants if it gives first: each machine that has something of it would give that for something that
   * is given likewise, and one of them wants what this one gives. One that ends elsewhere, as at a pool where nothing `isTouched`, is none.
   */
  isExchange({ metadata }: IronCoreMachine, exchange: Exchange, isTouched: (pool: string) => boolean): boolean {
    const found = [{ uid: metadata.uid, ...exchange }];
    const known = new Set([exchange.gives]);
    // Grows meanwhile.
    for (const { uid, wants } of found) {
      for (const handle of wants) {
        for (const [pool, holder] of this.#usesBut(uid, handle)) {
          const given = this.#exchangesOf(holder).find(({ gives }) => gives.includes(handle));
          if (given === undefined || this.#failures.has(pool) || !isTouched(pool)) return false;
          if (known.has(given.gives)) continue;
          known.add(given.gives);
          found.push({ uid: holder.uid, ...given });
        }
      }
    }
    return found.some(({ wants }) => wants.some((handle) => exchange.gives.includes(handle)));
  }

  #exchangesOf({ machine = '', uid }: Use): readonly Exchange[] {
    const offered = this.#exchanges.get(machine);
    return offered?.uid === uid ? offered.all : [];
  }

  #otherThan(uid: string, handle: string): Holder | undefined {
    const [first] = this.#usesBut(uid, handle);
    if (first === undefined) return undefined;
    const [pool, { id, machine, uid: owner }] = first;
    return { id, pool, ...(machine !== undefined && { machine, uid: owner }) };
  }

  #usesBut(uid: string, handle: string): readonly (readonly [pool: string, use: Use])[] {
    return [...this.#uses].flatMap(([pool, uses]) =>
      (uses.get(handle) ?? []).filter((one) => one.uid !== uid).map((use) => [pool, use] as const),
    );
  }

  #takeFreed(): readonly string[] {
    const freed: string[] = [];
    for (const [handle, waiting] of this.#waiting) {
      for (const [uid, key] of waiting) {
        if (this.#otherThan(uid, handle) !== undefined) continue;
        waiting.delete(uid);
        freed.push(key);
      }
      if (waiting.size === 0) this.#waiting.delete(handle);
    }
    return freed;
  }
}

/**
 * Whether a machine may still have what it is to have no more: a guest that does not react keeps it for minutes. By its name alone: nothing takes
 * its place before that, and some runtimes show each generation as observed at once.
 */
function isLeaving(machine: RuntimeMachine, { kind, name }: Attached): boolean {
  return leavingOf(machine, kind).includes(name);
}

/** Names of entries that a runtime still shows, although they were detached. */
export function leavingOf({ spec, status }: RuntimeMachine, kind: Attached['kind']): readonly string[] {
  const names = new Set(spec[kind].map(({ name }) => name));
  return status[kind].map(({ name }) => name).filter((name) => !names.has(name));
}

type IsName = (name: string) => boolean;

function volumesOf({ spec }: RuntimeMachine, isName?: IsName): readonly Attached[] {
  return spec.volumes.flatMap((one) => asAttached('volumes', one.name, handlesOfVolume(one, isName)));
}

function addressesOf({ spec }: RuntimeMachine, isName?: IsName): readonly Attached[] {
  return spec.networkInterfaces.flatMap((one) =>
    asAttached('networkInterfaces', one.name, handlesOfNetworkInterface(one, isName)),
  );
}

function asAttached(kind: Attached['kind'], name: string, handles: readonly string[]): readonly Attached[] {
  return handles.map((handle) => ({ kind, name, handle }));
}

/** What a volume at a runtime is, as others may wait for it. */
export function handlesOfVolume({ connection }: Volume, isName: IsName = () => true): readonly string[] {
  return connection !== undefined && isName(connection.handle) ? [volumeHandle(connection)] : [];
}

/** The addresses of a network interface at a runtime, as others may wait for them. */
export function handlesOfNetworkInterface(
  { networkId, ips }: NetworkInterface,
  isName: IsName = () => true,
): readonly string[] {
  return isName(networkId) ? ips.map((ip) => addressHandle(networkId, ip)) : [];
}
