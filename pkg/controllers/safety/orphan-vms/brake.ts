import type { MachineClass } from '../../../apis/machine/v1alpha1/machine-class.ts';
import { keyOf } from '../../../apis/meta.ts';
import type { ListedMachine } from '../../../driver/driver.ts';
import { forcedRemovalsOf } from '../../vms/forced-removals.ts';
import { accountOfList } from './blind-accounts.ts';
import type { Collaborators } from './collaborators.ts';
import { type HoldReason, heldOrphans } from './events.ts';
import type { ForgottenMachines } from './forgotten.ts';
import { orphanLimit } from './orphan-limit.ts';
import { type Release, releaseOf } from '../../vms/orphan-release.ts';
import type { ClassAccess } from './survey.ts';

type Deps = Pick<
  Collaborators,
  'classes' | 'drivers' | 'recorder' | 'metrics' | 'removed' | 'clock' | 'log' | 'graceMs' | 'isDryRun'
> & {
  readonly forgotten: Pick<ForgottenMachines, 'has'>;
};

/** A VM that has no Machine, as far as a look shows. */
export interface OrphanCandidate {
  readonly vm: ListedMachine;
  readonly access: ClassAccess;
  /** With whom it counts: the key of its class, or of VMs whose class nobody knows. */
  readonly group: string;
  /** The class that tells of it while it is held, and whose annotation releases it. */
  readonly releasedBy: MachineClass;
}

export interface Proved extends OrphanCandidate {
  /** A list that shows it is not believed in this look, because it omits VMs of machines, of which it may be one. */
  readonly isDoubted: boolean;
}

export interface Look<T extends Proved> {
  readonly proved: readonly T[];
  /** All VMs that the lists show. */
  readonly shown: Iterable<OrphanCandidate>;
  /** IDs of those without a Machine, whether proved or not. */
  readonly candidates: ReadonlySet<string>;
  /** IDs of those of them that were deleted, and are listed still. */
  readonly deleted: ReadonlySet<string>;
  /** Classes that could not be listed: of these counts, and is held, what their last list has shown. Of deleted ones nothing is. */
  readonly unseen: ReadonlySet<string>;
  /** Monotonic: when it began. */
  readonly atMs: number;
}

/** A VM that the limits have let go, or that was deleted once. */
interface Admission {
  readonly atMs: number;
  /** Levels of which a class could not be listed then, or not long enough for what it has to be proved. */
  readonly incomplete: readonly string[];
  /** Whether it is listed still, without a Machine ever since. */
  isThere: boolean;
}

/** What is known of a VM. */
interface KnownVM {
  /** As the lists show it; of a class that cannot be listed now, as its last one did. */
  listed?: OrphanCandidate | undefined;
  /** It is listed, and has no Machine. */
  isOrphan: boolean;
  /** A record says why. */
  isExplained: boolean;
  /** The group with which it is held, for whatever reason. */
  heldWith?: string | undefined;
  /**
   * Only its Machine or a permission releases it, also when a list omits it meanwhile. What is held by its own class does not count with others.
   */
  kept?: 'by-class' | 'together' | undefined;
  admission?: Admission | undefined;
}

/** Groups and levels that have more than their limit, levels that have by what was proved alone, and those of classes of which not all can be proved. */
type Over = Readonly<Record<'all' | 'certain' | 'incomplete', ReadonlySet<string>>>;

/** by-class: with those of its group; together: with those of other groups. */
type Verdict = 'doubted' | 'by-class' | 'together' | 'explained' | 'released' | 'admitted';

/** So many are named in one log line. */
const NAMED = 20;

/** So many VMs are known before held ones that are not listed are forgotten: those of a whole cluster. */
const CAPACITY = 65_536;

/** So long counts what was let go while a class could not be listed: there may have been more of them than the lists have shown. */
const SPENT_MS = 86_400_000;

/**
 * Two looks that agree are still one source, the provider's list. When they prove many VMs of a class to be without a Machine at
 * once, the list is more likely wrong than the world: none of them is deleted before somebody has said so. Nor is, however few they are,
 * the VM of a Machine that only a restore of the control cluster has forgotten: those are healthy and were wanted. VMs that a record
 * explains (this process saw their Machine deleted, or the class notes its forced removal) do not count, and are not held, however many.
 *
 * | VMs of the group that are proved                            | held                            | can be released |
 * |-------------------------------------------------------------|---------------------------------|-----------------|
 * | any                                                         | those whose list is not believed | no              |
 * | more than the limit that no record explains                 | those that no record explains   | yes             |
 * | fewer, but with other groups more than that of their level  | those that no record explains   | yes             |
 * | fewer                                                       | those of forgotten Machines     | yes             |
 *
 * The limits of many small classes would add up to most of an account, and those of many accounts, each of which may be another Secret
 * for the same one, to most of what a driver has: both are levels. What is held by the limit of its own class, or released by it, does not count
 * there. What a list shows that is not believed does: in the next look it may be believed, and another one not.
 * A permission was given for VMs that a list showed; it says nothing of one that shows the wrong ones.
 *
 * What one look says of a VM holds in the next ones, whatever they count, as long as it has no Machine:
 *
 * | it was              | because                                                                                                |
 * |---------------------|--------------------------------------------------------------------------------------------------------|
 * | held by the limits  | who makes its Machines again one by one, or releases one class of several, has not said that the rest goes |
 * | let go by them      | one that cannot be deleted would use the limit up for ever; it does not count again                    |
 * | deleted, but stays  | as the one before, whoever has let it go: held, it would count, and nobody would delete it any more    |
 *
 * What is too many only with VMs that are deleted already, or that the last list of a class has shown and none has proved, is held in that look alone.
 */
export class OrphanBrake {
  readonly #deps: Deps;
  /** By provider id. */
  readonly #vms = new Map<string, KnownVM>();
  /** Classes of which not all can be proved yet, and since when they can be listed. */
  readonly #unproved = new Map<string, number>();

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Of what one round has proved, what may be deleted. */
  admit<T extends Proved>(look: Look<T>): readonly T[] {
    const { proved } = look;
    const before = this.#held();
    this.#take(look);
    const over = this.#over(look);
    const admitted: T[] = [];
    for (const [group, vms] of Map.groupBy(proved, (one) => one.group)) {
      const verdicts = new Map(vms.map((one) => [one, this.#judge(one, over.all)] as const));
      for (const [one, verdict] of verdicts) {
        this.#note(one, verdict, over, look);
        if (!isHeld(verdict)) admitted.push(one);
      }
      this.#tell(group, verdicts, over.all, before.get(group) ?? 0);
    }
    this.#deps.metrics.heldOrphanVMs.set([...this.#held().values()].reduce((sum, count) => sum + count, 0));
    return admitted;
  }

  /** Takes what a look shows, and forgets what was of VMs that have a Machine now. */
  #take({ shown, candidates, deleted, unseen, atMs }: Look<Proved>): void {
    for (const [key, sinceMs] of this.#unproved) {
      if (sinceMs === Infinity) this.#unproved.set(key, atMs);
      else if (atMs - sinceMs >= this.#deps.graceMs) this.#unproved.delete(key);
    }
    for (const key of unseen) this.#unproved.set(key, Infinity);
    const listed = new Map([...shown].map((one) => [one.vm.providerID, one]));
    for (const id of listed.keys()) if (!this.#vms.has(id)) this.#vms.set(id, { isOrphan: false, isExplained: false });
    for (const [id, known] of this.#vms) {
      const now = listed.get(id);
      const isLast = known.listed !== undefined && unseen.has(known.listed.access.key);
      known.listed = now ?? (isLast ? known.listed : undefined);
      known.isOrphan = now === undefined ? known.isOrphan && isLast : candidates.has(id) && !deleted.has(id);
      known.isExplained = known.isOrphan && known.listed !== undefined && this.#isExplained(known.listed);
      if (now !== undefined && !known.isOrphan) known.kept = undefined;
      // Also of what is not proved: after an outage, everything is to be proved again.
      if (!known.isOrphan) known.heldWith = undefined;
      // Who has let it go may have done so for a time only, such as by a permission; its provider may take longer.
      if (deleted.has(id)) known.admission ??= { atMs, incomplete: [], isThere: true };
      if (known.admission !== undefined)
        known.admission.isThere &&= known.isOrphan || deleted.has(id) || (now === undefined && isLast);
      if (known.admission?.isThere === false && !this.#isSpent(known)) known.admission = undefined;
      const isKept = known.kept !== undefined && this.#vms.size <= CAPACITY;
      if (known.listed === undefined && known.admission === undefined && !isKept) this.#vms.delete(id);
    }
  }

  #over({ proved }: Look<Proved>): Over {
    const ids = new Set(proved.map(({ vm }) => vm.providerID));
    const known = [...this.#vms.values()];
    const listed = countBy(
      known.flatMap((one) => (one.listed === undefined ? [] : [one.listed.group, ...levelsOf(one.listed)])),
    );
    const overOf = (ofWhom: readonly string[]): string[] =>
      [...countBy(ofWhom)].filter(([whom, count]) => count > orphanLimit(listed.get(whom) ?? 0)).map(([whom]) => whom);
    // Also of a class that was listed again only just now: what it has lost is not proved yet.
    const counting = known
      .flatMap(({ listed: one, ...rest }) => (one !== undefined && rest.isOrphan ? [{ ...rest, ...one }] : []))
      .filter((one) => ids.has(one.vm.providerID) || this.#unproved.has(one.access.key))
      .filter((one) => this.#deps.forgotten.has(one.vm) || (!one.isExplained && one.admission?.isThere !== true));
    const groups = new Set(overOf(counting.map(({ group }) => group)));
    const together = counting.filter((one) => {
      const isByClass = one.kept === 'by-class' || this.#deps.forgotten.has(one.vm);
      return !isByClass && !groups.has(one.group) && this.#releaseOf(one) !== 'given';
    });
    const spent = known.filter((one) => this.#isSpent(one)).flatMap(({ admission }) => admission?.incomplete ?? []);
    const certain = together.filter(({ vm, heldWith }) => ids.has(vm.providerID) || heldWith !== undefined);
    return {
      incomplete: new Set([...this.#unproved.keys()].flatMap((key) => this.#levelsOfClass(key))),
      all: new Set([...groups, ...overOf([...together.flatMap(levelsOf), ...spent])]),
      certain: new Set(overOf(certain.flatMap(levelsOf))),
    };
  }

  #judge(one: Proved, over: ReadonlySet<string>): Verdict {
    const { forgotten, isDryRun } = this.#deps;
    if (one.isDoubted) return 'doubted';
    if (isDryRun || this.#releaseOf(one) === 'given') return 'released';
    if (forgotten.has(one.vm)) return 'by-class';
    const { isExplained, kept, admission } = this.#known(one);
    if (isExplained) return 'explained';
    if (admission?.isThere === true) return 'admitted';
    if (over.has(one.group) || kept === 'by-class') return 'by-class';
    return kept !== undefined || levelsOf(one).some((level) => over.has(level)) ? 'together' : 'admitted';
  }

  #note(one: Proved, verdict: Verdict, { certain, incomplete }: Over, { atMs }: Look<Proved>): void {
    const known = this.#known(one);
    const levels = levelsOf(one);
    known.heldWith = isHeld(verdict) ? one.group : undefined;
    if (verdict === 'by-class' || (verdict === 'together' && levels.some((level) => certain.has(level))))
      known.kept = verdict;
    // What was let go by lists that are not believed now is judged anew.
    if (isHeld(verdict)) known.admission = undefined;
    if (verdict !== 'admitted' || known.admission?.isThere === true) return;
    known.admission = { atMs, incomplete: levels.filter((level) => incomplete.has(level)), isThere: true };
  }

  /** Tells of what is held of a group. */
  #tell(group: string, verdicts: ReadonlyMap<Proved, Verdict>, over: ReadonlySet<string>, before: number): void {
    const { recorder, log } = this.#deps;
    const held = [...verdicts].filter(([, verdict]) => isHeld(verdict)).map(([one]) => one);
    const [first] = held;
    if (first === undefined) {
      if (before > 0) log.info({ class: group, vms: verdicts.size }, 'released held orphan VMs');
      return;
    }
    const judged = held.filter((one) => verdicts.get(one) !== 'doubted');
    const why = judged.length === 0 ? 'doubted' : this.#reasonOf(judged, over);
    recorder.event(heldOrphans(first.releasedBy, why, this.#releaseOf(first)));
    if (before === held.length) return;
    const named = held.slice(0, NAMED).map(({ vm }) => `${vm.machineName} (${vm.providerID})`);
    const listed = [...this.#vms.values()].filter((one) => one.listed?.group === group).length;
    const fields = { class: group, vms: held.length, listed, limit: orphanLimit(listed), why, named };
    log.warn(fields, 'held orphan VMs');
  }

  /** Why those of one group are held. */
  #reasonOf(held: readonly Proved[], over: ReadonlySet<string>): HoldReason {
    if (held.some(({ vm }) => this.#deps.forgotten.has(vm))) return 'forgotten';
    if (held.some(({ group }) => over.has(group))) return held.some(isOfUnknownClass) ? 'of-unknown-class' : 'too-many';
    return held.some((one) => levelsOf(one).some((level) => over.has(level))) ? 'too-many-together' : 'held-before';
  }

  #releaseOf({ releasedBy }: Pick<OrphanCandidate, 'releasedBy'>): Release {
    const { classes, clock } = this.#deps;
    return releaseOf(classes.get(keyOf(releasedBy)) ?? releasedBy, clock.now());
  }

  #known({ vm: { providerID } }: Proved): KnownVM {
    return this.#vms.get(providerID) ?? { isOrphan: false, isExplained: false };
  }

  /** How many are held, by group. */
  #held(): ReadonlyMap<string, number> {
    return countBy([...this.#vms.values()].flatMap(({ heldWith }) => heldWith ?? []));
  }

  /** Whether it was let go by less than there may have been to see, and not long ago. */
  #isSpent({ admission }: KnownVM): boolean {
    if (admission === undefined || admission.incomplete.length === 0) return false;
    return this.#deps.clock.monotonicMs() - admission.atMs < SPENT_MS;
  }

  #levelsOfClass(key: string): readonly string[] {
    const { classes, drivers } = this.#deps;
    const machineClass = classes.get(key);
    const driver = machineClass && drivers.resolve(machineClass);
    return machineClass === undefined || driver === undefined ? [] : levelsOf({ access: { driver, machineClass } });
  }

  /** Whether a record says why a VM has no Machine. A note on the class must name the very VM, by its own ID or the UID of its Machine. */
  #isExplained({ vm, access, releasedBy }: OrphanCandidate): boolean {
    if (this.#deps.removed.isLate(vm)) return true;
    return [...new Set([access.machineClass, releasedBy])]
      .flatMap(forcedRemovalsOf)
      .some(({ machineUID, providerID }) => vm.providerID === providerID || vm.machineUID === machineUID);
  }
}

function isHeld(verdict: Verdict): boolean {
  return verdict === 'doubted' || verdict === 'by-class' || verdict === 'together';
}

function isOfUnknownClass({ group, releasedBy }: OrphanCandidate): boolean {
  return group !== keyOf(releasedBy);
}

/** The account of a VM and its driver. */
function levelsOf({ access }: { readonly access: Pick<ClassAccess, 'driver' | 'machineClass'> }): readonly string[] {
  return [accountOfList(access), `driver ${access.driver.provider}`];
}

function countBy(names: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}
