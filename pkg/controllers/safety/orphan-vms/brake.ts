import type { ListedMachine } from '../../../driver/driver.ts';
import { forcedRemovalsOf } from '../../vms/forced-removals.ts';
import type { Collaborators } from './collaborators.ts';
import { heldOrphans } from './events.ts';
import type { ForgottenMachines } from './forgotten.ts';
import { orphanLimit } from './orphan-limit.ts';
import { releaseOf } from '../../vms/orphan-release.ts';
import type { ClassAccess } from './survey.ts';

type Deps = Pick<Collaborators, 'recorder' | 'metrics' | 'removed' | 'clock' | 'log' | 'isDryRun'> & {
  readonly forgotten: Pick<ForgottenMachines, 'has'>;
};

export interface Proved {
  readonly vm: ListedMachine;
  readonly access: ClassAccess;
  /** With whom it counts: the key of its class, or of VMs whose class nobody knows. */
  readonly group: string;
  /** A list that shows it is not believed in this look, because it omits VMs of machines that work. */
  readonly isDoubted: boolean;
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
 * | fewer                                                      | those of forgotten Machines     | yes             |
 *
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
   * Of what one round has proved, what may be deleted. `listed`: how many VMs of each group the lists show; `unseen`: classes that could not
   * be listed, of which is held what was held. Of others, such as deleted ones, nothing is.
   */
  admit<T extends Proved>(
    proved: readonly T[],
    listed: ReadonlyMap<string, number>,
    unseen: ReadonlySet<string>,
  ): readonly T[] {
    const groups = Map.groupBy(proved, ({ group }) => group);
    for (const [group, { by }] of this.#held) if (!groups.has(group) && !unseen.has(by)) this.#held.delete(group);
    const admitted = [...groups].flatMap(([group, vms]) => {
      const held = this.#heldOf(group, vms, listed.get(group) ?? 0);
      return vms.filter((one) => !held.includes(one));
    });
    const held = [...this.#held.values()].reduce((sum, { count }) => sum + count, 0);
    this.#deps.metrics.heldOrphanVMs.set(held);
    return admitted;
  }

  /** Of the VMs of one group that are proved, those that are held; tells of them. */
  #heldOf<T extends Proved>(group: string, vms: readonly T[], listed: number): readonly T[] {
    const { recorder, clock, log, isDryRun, forgotten } = this.#deps;
    const limit = orphanLimit(listed);
    const isDoubted = vms.some((one) => one.isDoubted);
    const ofForgotten = vms.filter(({ vm }) => forgotten.has(vm));
    const unexplained = vms.filter((one) => ofForgotten.includes(one) || !this.#isExplained(one));
    const believed = unexplained.length > limit ? unexplained : ofForgotten;
    const held = isDoubted ? vms : believed;
    const [first] = held;
    const release = first === undefined ? 'given' : releaseOf(first.access.machineClass, clock.now());
    if (first === undefined || isDryRun || (release === 'given' && !isDoubted)) {
      if (this.#held.delete(group)) log.info({ class: group, vms: vms.length }, 'released held orphan VMs');
      return [];
    }
    const { key: by, machineClass } = first.access;
    const tooMany = group === by ? 'too-many' : 'of-unknown-class';
    const many = ofForgotten.length > 0 ? 'forgotten' : tooMany;
    const why = isDoubted ? 'doubted' : many;
    recorder.event(heldOrphans(machineClass, why, release));
    if (this.#held.get(group)?.count !== held.length) {
      const named = held.slice(0, NAMED).map(({ vm }) => `${vm.machineName} (${vm.providerID})`);
      log.warn({ class: group, vms: held.length, listed, limit, why, named }, 'held orphan VMs');
    }
    this.#held.set(group, { count: held.length, by });
    return held;
  }

  /** Whether a record says why a VM has no Machine. A note on the class must name the very VM, by its own ID or the UID of its Machine. */
  #isExplained({ vm, access }: Proved): boolean {
    if (this.#deps.removed.isLate(vm)) return true;
    return forcedRemovalsOf(access.machineClass).some(
      ({ machineUID, providerID }) => vm.providerID === providerID || vm.machineUID === machineUID,
    );
  }
}
