import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { providerIDOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import { keyOf } from '../../../apis/meta.ts';
import { accountOf } from '../../../driver/account.ts';
import type { MachineClass } from '../../../apis/machine/v1alpha1/machine-class.ts';
import { isReady } from '../../machine-facts/node-health.ts';
import { recordedNodeOf } from '../../machine-facts/recorded-node.ts';
import { isSameVM } from '../../../apis/machine/v1alpha1/same-vm.ts';
import type { Collaborators } from './collaborators.ts';
import { manyMissingVMs, type OrphanEvent, unlistedVMs } from './events.ts';
import { Evidence, type Snapshot } from './evidence.ts';
import { orphanLimit } from './orphan-limit.ts';
import type { ClassAccess, ClassList } from './survey.ts';

/** A class, and what its account is told by. */
export type OfAccount = Pick<ClassAccess, 'key' | 'machineClass' | 'driver'>;

/** Machines of one class whose VM no list of a look shows. */
export interface Unlisted<T extends OfAccount = ClassList> {
  readonly list: T;
  readonly machines: readonly Machine[];
  /** How many machines of the class the lists had to show. */
  readonly expected: number;
}

type Deps = Pick<Collaborators, 'machines' | 'targets' | 'recorder' | 'log' | 'graceMs'>;

/** So many are named in one log line. */
const NAMED = 20;

/**
 * blind: nothing that the provider says about missing VMs counts. doubted: it is noted, and fails no machine in this look. contradicted: only that
 * VMs have no Machine is not believed, because the lists may show those of machines otherwise.
 */
export type Distrust = 'blind' | 'doubted' | 'contradicted';

/** What one class says of its account. */
interface Verdict {
  /** That of the class. */
  readonly key: string;
  readonly distrust: Distrust;
  /** UIDs of the machines because of which. */
  readonly by: ReadonlySet<string>;
}

/** What classes say of one account. One may contradict it by other machines than those because of which it is doubted. */
type Verdicts = readonly Verdict[];

/**
 * Accounts whose provider does not show VMs of machines that work. What such a provider says about other machines of the account is not
 * believed, until it shows all of those. A VM that has just been terminated has a ready Node for a moment, too. Without a target cluster no
 * Node says anything; there only the number speaks:
 *
 * | machines of the account whose VM is in no list                                | the account is |
 * |-------------------------------------------------------------------------------|----------------|
 * | one with a ready Node in two looks, a grace apart                             | blind          |
 * | more than 3 and 10 % of its machines, with ready Nodes or without a target    | blind          |
 * | fewer with ready Nodes, for the first time                                    | doubted        |
 * | one of which GetMachineStatus does not say now that there is no VM            | contradicted   |
 * | one of a class that cannot be listed now, if lists are of the whole cluster   | contradicted   |
 * | others, also if the driver has no GetMachineStatus                            | believed       |
 *
 * What a class says of its account holds while it cannot be listed, for as long as one of those machines is there, and is in no other list.
 *
 * A provider contradicts itself in the ordinary course: some find a VM for an hour after it was terminated, and of many spot VMs one is always so.
 * A VM without a Machine is none of those that are omitted, under whatever ID, if two looks proved it while the lists still showed these under theirs.
 */
export class BlindAccounts {
  readonly #deps: Deps;
  /** Machines whose Node is ready and whose VM is in no list, by UID. */
  readonly #working: Evidence;
  /** Accounts that were not believed in the last look. */
  #shown: ReadonlyMap<string, Verdicts> = new Map();
  /** Those of the present look, by its lists alone. */
  #judged: ReadonlyMap<string, Verdicts> = new Map();
  /** Those in which machines spoke against the lists. */
  #contradicted: ReadonlySet<string> = new Set();
  /** When a look has last shown the VM of a machine, by UID; monotonic. */
  #listedMs: ReadonlyMap<string, number> = new Map();
  /** By account: until when each VM that contradicts it was still shown. */
  #apartMs: ReadonlyMap<string, number> = new Map();

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#working = new Evidence(deps.graceMs);
  }

  /** Machines that work, and are looked for once more. */
  get size(): number {
    return this.#working.size;
  }

  /** Drops what was first seen before `atMs`, when we could not trust what we saw. */
  dropBefore(atMs: number): void {
    this.#working.dropBefore(atMs);
  }

  /** Takes note of which machines a look has shown a VM of; `shown` are the ids in its lists. */
  noteListed(machines: readonly Machine[], shown: ReadonlySet<string>, { atMs }: Snapshot): void {
    const known = machines.map((machine) => {
      const { uid } = machine.metadata;
      return [uid, shown.has(providerIDOf(machine)) ? atMs : this.#listedMs.get(uid)] as const;
    });
    this.#listedMs = new Map(known.filter((one): one is [string, number] => one[1] !== undefined));
  }

  /** A VM without a Machine that every look has shown since then is none of those because of which an account is not believed. */
  apartMs(account: string): number {
    return (this.#apartMs.get(account) ?? -Infinity) - this.#deps.graceMs;
  }

  /** Takes a look into account; returns the accounts that are not believed in it. `unseen`: classes at which it could not look. */
  judge(
    classes: readonly Unlisted[],
    sight: Snapshot,
    unseen: readonly Unlisted<OfAccount>[],
  ): ReadonlyMap<string, Distrust> {
    const shown = new Map<string, Verdicts>();
    const seen = new Set<string>();
    for (const [account, unlisted] of Map.groupBy(classes, ({ list }) => accountOfList(list))) {
      const working = unlisted.map((one) => ({ ...one, machines: one.machines.filter((m) => this.#works(m)) }));
      for (const { metadata } of working.flatMap(({ machines }) => machines)) seen.add(metadata.uid);
      const isMissingAgain = this.#isMissingAgain(working, sight);
      const alone = unlisted.map((one) => ({ ...one, machines: one.machines.filter((m) => this.#isWithoutTarget(m)) }));
      const isBlind = isMissingAgain || isTooMany(working);
      if (isBlind) this.#report(account, working, unlistedVMs);
      else if (isTooMany(alone)) this.#report(account, alone, manyMissingVMs);
      const distrust = isBlind || isTooMany(alone) ? 'blind' : 'doubted';
      const showing = (distrust === 'blind' ? [...working, ...alone] : working).filter(showsAny);
      if (showing.length > 0) shown.set(account, verdictsOf(showing, distrust));
    }
    this.#working.keep(seen, new Set(unseen.map(({ list }) => list.key)));
    for (const [account, verdicts] of this.#shown) {
      const ofAccount = unseen.filter(({ list }) => accountOfList(list) === account);
      const lasting = ofAccount.flatMap((one) => lastingOf(one, verdicts));
      if (lasting.length > 0) shown.set(account, [...(shown.get(account) ?? []), ...lasting]);
      if (isBlindBy(verdicts) && !isBlindBy(shown.get(account)))
        this.#deps.log.info({ account }, 'trusts a provider again');
    }
    this.#judged = shown;
    // A look may end before GetMachineStatus has answered: what that said before is not taken back.
    const before = [...this.#shown].map(([account, verdicts]) => {
      const contradicting = verdicts.filter((one) => !isStronger(one));
      return [account, withContradictions(shown.get(account), contradicting)] as const;
    });
    this.#shown = new Map([...shown, ...before]);
    return strongestOf(shown);
  }

  /**
   * Takes into account, too, what GetMachineStatus has said since: `gone` are the machines whose VM it does not know, by UID. Any other machine that
   * is in no list speaks against the lists: its VM was found, or nobody could tell, or was not asked.
   */
  contradict(
    classes: readonly Unlisted[],
    gone: ReadonlySet<string>,
    unseen: readonly Unlisted<OfAccount>[],
  ): ReadonlyMap<string, Distrust> {
    const { log } = this.#deps;
    const wholes = new Set(
      classes.filter(({ list }) => list.scope === 'cluster').map(({ list }) => list.driver.provider),
    );
    const inDoubt: readonly Unlisted<OfAccount>[] = [
      ...classes.map((one) => ({ ...one, machines: one.machines.filter(({ metadata }) => !gone.has(metadata.uid)) })),
      ...unseen.filter(({ list }) => wholes.has(list.driver.provider)),
    ];
    const speaking = inDoubt.filter(showsAny);
    const shown = new Map(this.#judged);
    const byAccount = Map.groupBy(speaking, ({ list }) => accountOfList(list));
    for (const [account, unlisted] of byAccount) {
      shown.set(account, withContradictions(shown.get(account), verdictsOf(unlisted, 'contradicted')));
      const machines = unlisted.flatMap((one) => one.machines.map(keyOf));
      const fields = { account, machines: machines.length, named: machines.slice(0, NAMED) };
      if (!this.#contradicted.has(account)) log.warn(fields, 'no list shows VMs of machines that may exist');
    }
    this.#contradicted = new Set(byAccount.keys());
    this.#shown = shown;
    this.#apartMs = new Map([...shown].map(([account, verdicts]) => [account, this.#apartOf(verdicts)]));
    return strongestOf(shown);
  }

  /** Until when all VMs were shown because of which an account is no more than contradicted. */
  #apartOf(verdicts: Verdicts): number {
    if (verdicts.some(isStronger)) return -Infinity;
    const listedMs = verdicts.flatMap(({ by }) => [...by].map((uid) => this.#listedMs.get(uid) ?? -Infinity));
    return listedMs.reduce((least, one) => Math.min(least, one), Infinity);
  }

  /** Whether one of the machines of an account that work was missing in an earlier look, too. */
  #isMissingAgain(working: readonly Unlisted[], sight: Snapshot): boolean {
    const proofs = working.flatMap(({ list, machines }) =>
      machines.map(({ metadata }) => this.#working.see(metadata.uid, list.key, sight)),
    );
    return proofs.some((proof) => proof !== undefined);
  }

  #isWithoutTarget(machine: Machine): boolean {
    return this.#deps.targets.of(machine) === undefined;
  }

  #works(machine: Machine): boolean {
    const node = recordedNodeOf(this.#deps, machine);
    if (node === undefined || !isReady(node)) return false;
    return isSameVM(node.spec?.providerID, machine.spec.providerID) !== false;
  }

  /** An Event of each class at each look, and a log line once. */
  #report(account: string, unlisted: readonly Unlisted[], eventOf: (machineClass: MachineClass) => OrphanEvent): void {
    const { recorder, log } = this.#deps;
    for (const { list } of unlisted.filter(showsAny)) recorder.event(eventOf(list.machineClass));
    if (isBlindBy(this.#shown.get(account))) return;
    const machines = unlisted.flatMap((one) => one.machines.map(keyOf));
    const fields = { account, machines: machines.length, named: machines.slice(0, NAMED) };
    log.warn(fields, 'does not trust a provider that omits many VMs, or VMs with ready nodes');
  }
}

/** Whether more machines of an account are missing at once than a provider that is not blind is believed about. */
export function isTooMany(unlisted: readonly Pick<Unlisted, 'machines' | 'expected'>[]): boolean {
  const missing = unlisted.reduce((sum, { machines }) => sum + machines.length, 0);
  return missing > orphanLimit(unlisted.reduce((sum, { expected }) => sum + expected, 0));
}

function verdictsOf(unlisted: readonly Unlisted<OfAccount>[], distrust: Distrust): Verdicts {
  return unlisted.map(({ list: { key }, machines }) => ({
    key,
    distrust,
    by: new Set(machines.map(({ metadata }) => metadata.uid)),
  }));
}

/** What a class that cannot be listed now has said, as far as it has one of the machines that caused it. */
function lastingOf({ list, machines }: Unlisted<OfAccount>, verdicts: Verdicts): Verdicts {
  const present = new Set(machines.map(({ metadata }) => metadata.uid));
  return verdicts
    .filter(({ key }) => key === list.key)
    .map((one) => ({ ...one, by: new Set([...one.by].filter((uid) => present.has(uid))) }))
    .filter(({ by }) => by.size > 0);
}

/** What is known of an account, with what contradicts it besides: the latest of each class. */
function withContradictions(verdicts: Verdicts | undefined, contradicting: Verdicts): Verdicts {
  const keys = new Set(contradicting.map(({ key }) => key));
  return [...contradicting, ...(verdicts ?? []).filter((one) => isStronger(one) || !keys.has(one.key))];
}

function strongestOf(shown: ReadonlyMap<string, Verdicts>): ReadonlyMap<string, Distrust> {
  return new Map([...shown].map(([account, verdicts]) => [account, strongest(verdicts)]));
}

function strongest(verdicts: Verdicts): Distrust {
  if (isBlindBy(verdicts)) return 'blind';
  return verdicts.some(({ distrust }) => distrust === 'doubted') ? 'doubted' : 'contradicted';
}

function isStronger({ distrust }: Verdict): boolean {
  return distrust !== 'contradicted';
}

function isBlindBy(verdicts: Verdicts | undefined): boolean {
  return verdicts?.some(({ distrust }) => distrust === 'blind') === true;
}

function showsAny({ machines }: Unlisted<OfAccount>): boolean {
  return machines.length > 0;
}

export function accountOfList({ driver, machineClass }: Pick<OfAccount, 'driver' | 'machineClass'>): string {
  return accountOf(driver.provider, machineClass);
}
