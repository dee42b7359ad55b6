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

type Deps = Pick<Collaborators, 'recorder' | 'metrics' | 'removed' | 'clock' | 'log' | 'isDryRun'> & {
  readonly forgotten: Pick<ForgottenMachines, 'has'>;
};

export interface Proved {
  readonly vm: ListedMachine;
  readonly access: ClassAccess;
  /** With whom it counts: the key of its class, or of VMs whose class nobody knows. */
  readonly group: string;
  /** The class that tells of it while it is held, and whose annotation releases it. */
  readonly releasedBy: MachineClass;
  /** A list that shows it is not believed in this look, because it omits VMs of machines that work. */
  readonly isDoubted: boolean;
}

interface Judged<T> {
  /** Those of one group that are proved. */
  readonly vms: readonly T[];
  readonly held: readonly T[];
  readonly why: HoldReason;
  readonly release: Release;
  /** Neither held nor released, and no record explains them: they count with those of other groups. */
  readonly unexplained: readonly T[];
  readonly listed: number;
  readonly limit: number;
}

/** So many are named in one log line. */
const NAMED = 20;

/**
 * Two looks that agree are still one source, the provider's list. When they prove many VMs of a class to be without a Machine at
 * once, the list is more likely wrong than the world: none of them is deleted before somebody has said so. Nor is, however few they are,
 * the VM of a Machine that only a restore of the control cluster has forgotten: those are healthy and were wanted. VMs that a record
 * explains (this process saw their Machine deleted, or the class notes its forced removal) do not count, and are not held, however many.
 *
 * | VMs of the group that are proved                           | held                            | can be released |
 * |------------------------------------------------------------|---------------------------------|-----------------|
 * | any, and a list of them is not believed                    | all                             | no              |
 * | more than the limit that no record explains                | those that no record explains   | yes             |
 * | fewer, but with other groups more than that of the account | those that no record explains   | yes             |
 * | fewer                                                      | those of forgotten Machines     | yes             |
 *
 * The limits of many small classes would add up to most of an account. What is held or released by itself does not count there.
 * A permission was given for VMs that a list showed; it says nothing of one that shows the wrong ones.
 */
export class OrphanBrake {
  readonly #deps: Deps;
  /** How many VMs of a group are held, and the key of the class by which they are reached. */
  readonly #held = new Map<string, { readonly count: number; readonly by: string }>();

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /**
   * Of what one round has proved, what may be deleted. `shown`: all VMs that the lists show; `unseen`: classes that could not be listed, of which
   * is held what was held. Of others, such as deleted ones, nothing is.
   */
  admit<T extends Proved>(
    proved: readonly T[],
    shown: Iterable<Pick<Proved, 'access' | 'group'>>,
    unseen: ReadonlySet<string>,
  ): readonly T[] {
    const groups = Map.groupBy(proved, ({ group }) => group);
    for (const [group, { by }] of this.#held) if (!groups.has(group) && !unseen.has(by)) this.#held.delete(group);
    const listed = [...shown];
    const byGroup = Map.groupBy(listed, ({ group }) => group);
    const byAccount = Map.groupBy(listed, accountOf);
    const judged = [...groups].map(([group, vms]) => this.#judge(vms, byGroup.get(group)?.length ?? 0));
    const going = Map.groupBy(
      judged.flatMap(({ unexplained }) => unexplained),
      accountOf,
    );
    const isTooMany = (account: string): boolean =>
      (going.get(account)?.length ?? 0) > orphanLimit(byAccount.get(account)?.length ?? 0);
    const admitted = judged.flatMap(({ vms, unexplained, ...hold }) => {
      const more = unexplained.filter((one) => isTooMany(accountOf(one)));
      const held = [...hold.held, ...more];
      this.#tell(vms, {
        ...hold,
        held,
        why: more.length > 0 && hold.why === 'too-many' ? 'too-many-together' : hold.why,
      });
      return vms.filter((one) => !held.includes(one));
    });
    const held = [...this.#held.values()].reduce((sum, { count }) => sum + count, 0);
    this.#deps.metrics.heldOrphanVMs.set(held);
    return admitted;
  }

  /** Of the VMs of one group that are proved, those that are held whatever other groups have. */
  #judge<T extends Proved>(vms: readonly T[], listed: number): Judged<T> {
    const { clock, isDryRun, forgotten } = this.#deps;
    const [first] = vms;
    const limit = orphanLimit(listed);
    const release = first === undefined ? 'given' : releaseOf(first.releasedBy, clock.now());
    const isDoubted = vms.some((one) => one.isDoubted);
    const rest = { vms, listed, limit, release };
    if (isDryRun || (release === 'given' && !isDoubted)) return { ...rest, held: [], why: 'too-many', unexplained: [] };
    if (isDoubted) return { ...rest, held: vms, why: 'doubted', unexplained: [] };
    const ofForgotten = vms.filter(({ vm }) => forgotten.has(vm));
    const unexplained = vms.filter((one) => ofForgotten.includes(one) || !this.#isExplained(one));
    const isUnknown = first !== undefined && first.group !== keyOf(first.releasedBy);
    const tooMany = isUnknown ? 'of-unknown-class' : 'too-many';
    const why = ofForgotten.length > 0 ? 'forgotten' : tooMany;
    if (unexplained.length > limit) return { ...rest, held: unexplained, why, unexplained: [] };
    return { ...rest, held: ofForgotten, why, unexplained: unexplained.filter((one) => !ofForgotten.includes(one)) };
  }

  /** Tells of what is held of a group, and remembers it. */
  #tell(
    vms: readonly Proved[],
    { held, why, release, listed, limit }: Omit<Judged<Proved>, 'vms' | 'unexplained'>,
  ): void {
    const { recorder, log } = this.#deps;
    const group = vms[0]?.group ?? '';
    const [first] = held;
    if (first === undefined) {
      if (this.#held.delete(group)) log.info({ class: group, vms: vms.length }, 'released held orphan VMs');
      return;
    }
    recorder.event(heldOrphans(first.releasedBy, why, release));
    if (this.#held.get(group)?.count !== held.length) {
      const named = held.slice(0, NAMED).map(({ vm }) => `${vm.machineName} (${vm.providerID})`);
      log.warn({ class: group, vms: held.length, listed, limit, why, named }, 'held orphan VMs');
    }
    this.#held.set(group, { count: held.length, by: first.access.key });
  }

  /** Whether a record says why a VM has no Machine. A note on the class must name the very VM, by its own ID or the UID of its Machine. */
  #isExplained({ vm, access }: Proved): boolean {
    if (this.#deps.removed.isLate(vm)) return true;
    return forcedRemovalsOf(access.machineClass).some(
      ({ machineUID, providerID }) => vm.providerID === providerID || vm.machineUID === machineUID,
    );
  }
}

function accountOf({ access }: Pick<Proved, 'access'>): string {
  return accountOfList(access);
}
