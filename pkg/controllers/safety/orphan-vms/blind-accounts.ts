import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
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
import type { ClassList } from './survey.ts';

/** Machines of one class whose VM no list of a look shows. */
export interface Unlisted {
  readonly list: ClassList;
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
 * | one that GetMachineStatus has found since                                     | contradicted   |
 * | fewer without a target                                                        | believed       |
 * | those of a class that cannot be listed now                                    | as it was      |
 */
export class BlindAccounts {
  readonly #deps: Deps;
  /** Machines whose Node is ready and whose VM is in no list, by UID. */
  readonly #working: Evidence;
  readonly #found: Evidence;
  /** Accounts that were not believed in the last look, with the verdict of each class that shows it. */
  #shown: ReadonlyMap<string, ReadonlyMap<string, Distrust>> = new Map();

  /** `found`: machines whose VM GetMachineStatus has found although no list shows it, by UID; shared with those who ask. */
  constructor(deps: Deps, found: Evidence) {
    this.#deps = deps;
    this.#found = found;
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

  /** Takes a look into account; returns the accounts that are not believed in it. `unseen`: classes at which it could not look. */
  judge(classes: readonly Unlisted[], sight: Snapshot, unseen: ReadonlySet<string>): ReadonlyMap<string, Distrust> {
    const shown = new Map<string, Map<string, Distrust>>();
    const seen = new Set<string>();
    for (const [account, unlisted] of Map.groupBy(classes, ({ list }) => accountOfList(list))) {
      const working = unlisted.map((one) => ({ ...one, machines: one.machines.filter((m) => this.#works(m)) }));
      for (const { metadata } of working.flatMap(({ machines }) => machines)) seen.add(metadata.uid);
      const isMissingAgain = this.#isMissingAgain(working, sight);
      const alone = unlisted.map((one) => ({ ...one, machines: one.machines.filter((m) => this.#isWithoutTarget(m)) }));
      const isBlind = isMissingAgain || isTooMany(working);
      if (isBlind) this.#report(account, working, unlistedVMs);
      else if (isTooMany(alone)) this.#report(account, alone, manyMissingVMs);
      const verdict = isBlind || isTooMany(alone) ? 'blind' : 'doubted';
      const showing = (verdict === 'blind' ? [...working, ...alone] : working).filter(showsAny);
      const isFound = ({ machines }: Unlisted): boolean =>
        machines.some(({ metadata }) => this.#found.has(metadata.uid));
      const verdicts = new Map<string, Distrust>([
        ...unlisted.filter(isFound).map(({ list }) => [list.key, 'contradicted'] as const),
        ...showing.map(({ list }) => [list.key, verdict] as const),
      ]);
      if (verdicts.size > 0) shown.set(account, verdicts);
    }
    this.#found.keep(new Set(classes.flatMap(({ machines }) => machines.map(({ metadata }) => metadata.uid))), unseen);
    this.#working.keep(seen, unseen);
    for (const [account, verdicts] of this.#shown) {
      const lasting = [...verdicts].filter(([key]) => unseen.has(key));
      if (lasting.length > 0) shown.set(account, new Map([...(shown.get(account) ?? []), ...lasting]));
      if (isBlindBy(verdicts) && !isBlindBy(shown.get(account)))
        this.#deps.log.info({ account }, 'trusts a provider again');
    }
    this.#shown = shown;
    return new Map([...shown].map(([account, verdicts]) => [account, strongest([...verdicts.values()])]));
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

function strongest(verdicts: readonly Distrust[]): Distrust {
  if (verdicts.includes('blind')) return 'blind';
  return verdicts.includes('doubted') ? 'doubted' : 'contradicted';
}

function isBlindBy(verdicts: ReadonlyMap<string, Distrust> | undefined): boolean {
  return [...(verdicts?.values() ?? [])].includes('blind');
}

function showsAny({ machines }: Unlisted): boolean {
  return machines.length > 0;
}

export function accountOfList({ driver, machineClass }: Pick<ClassList, 'driver' | 'machineClass'>): string {
  return accountOf(driver.provider, machineClass);
}
