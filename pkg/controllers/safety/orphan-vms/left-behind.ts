import { providerIDOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { MachineClass } from '../../../apis/machine/v1alpha1/machine-class.ts';
import { accountOf } from '../../../driver/account.ts';
import type { MachineOrStub } from '../../../driver/driver.ts';
import { DriverError } from '../../../driver/error.ts';
import { TurnAbandonedError } from '../../../driver/turn-abandoned.ts';
import { GateClosedError } from '../../../kube/gate/gate.ts';
import { forcedRemovalsOf, type ForcedRemoval } from '../../vms/forced-removals.ts';
import type { DeletedMachine } from '../deleted-machines.ts';
import type { Collaborators } from './collaborators.ts';
import { cleanedUp, failedToCleanUp, keptForNamesake } from './events.ts';
import { presentIn } from './leftover-nodes.ts';
import type { ClassAccess, Survey } from './survey.ts';

type Named = ForcedRemoval & { readonly machine: string };

interface Deps extends Pick<Collaborators, 'activities' | 'recorder' | 'log' | 'isDryRun'> {
  /**
   * The Machines that have a name, as the caches show it, those of other namespaces with the same target cluster too: drivers that know VMs by
   * name alone would take their VM.
   */
  readonly namesakes: (name: string) => readonly Machine[];
  /** Whether a Machine has that VM, as the caches show it. */
  readonly isVMTaken: (providerID: string) => boolean;
  /** UIDs of the same, read live: the last look before something is deleted. Throws ApiError. */
  readonly liveNamesakes: (name: string, signal: AbortSignal) => Promise<readonly string[]>;
  /** A VM that was listed is gone: what is left of it can go too. */
  readonly collected: (machine: DeletedMachine) => void;
}

interface Task {
  readonly removal: Named;
  readonly access: ClassAccess;
  readonly wasListed: boolean;
  /** UIDs of Machines of its name whose VMs cannot be taken for its. */
  readonly apart: ReadonlySet<string>;
}

/**
 * What Machines that were let go by force have left behind, ports and disks without a VM too, which no list shows: as soon as the provider
 * lists their class again, its driver is asked to delete each once more, by name and UID, as it was while the Machine was there. Where a
 * Machine has the name by now, only once a list shows its VM with its UID: the driver tells machines apart by that, and what is made for
 * another UID is none of the old one's.
 */
export class LeftBehind {
  readonly #deps: Deps;
  readonly #key: string;
  readonly #running = new Map<string, Task>();
  /** Keys of notes whose deletion has succeeded. */
  readonly #done = new Set<string>();
  #waiting = 0;
  /** Keys of notes that the last look has left alone for a Machine of their name. */
  #held: ReadonlySet<string> = new Set();

  /** `key` is enqueued when a deletion has ended. */
  constructor(key: string, deps: Deps) {
    this.#key = key;
    this.#deps = deps;
  }

  /** Notes of the last look that are waited for. */
  get size(): number {
    return this.#waiting;
  }

  /** Whether nothing is left at the provider as far as its driver can tell. */
  isClean({ key }: ForcedRemoval): boolean {
    return this.#deps.isDryRun || this.#done.has(key);
  }

  /** Begins the deletions that the classes note, unless they are under way or done. */
  clean(survey: Survey): void {
    const { isDryRun } = this.#deps;
    if (isDryRun) return;
    const listed = new Set(survey.lists.flatMap(({ vms }) => vms).map(({ providerID }) => providerID));
    const owned = presentIn({ ...survey, lists: [] });
    const names = Map.groupBy(survey.machines, ({ metadata }) => metadata.name);
    const isTold = toldApart(survey);
    const noted = new Set<string>();
    const held = new Set<string>();
    this.#waiting = 0;
    for (const access of survey.lists) {
      for (const removal of forcedRemovalsOf(access.machineClass)) {
        noted.add(removal.key);
        const { machine, providerID } = removal;
        const isOwned = providerID !== undefined && owned.has(providerID);
        if (machine === undefined || isOwned) continue;
        const namesakes = [...this.#deps.namesakes(machine), ...(names.get(machine) ?? [])];
        // Of what the caches show, too, the survey knows more.
        const byUID = new Map(namesakes.map((one) => [one.metadata.uid, one]));
        if (![...byUID.values()].every(isTold)) {
          held.add(removal.key);
          this.#hold({ ...removal, machine }, access);
          continue;
        }
        const apart = new Set(byUID.keys());
        if (this.#isTaken({ ...removal, machine }, apart)) continue;
        this.#waiting += 1;
        const wasListed = providerID !== undefined && listed.has(providerID);
        this.#begin({ removal: { ...removal, machine }, access, wasListed, apart });
      }
    }
    this.#held = held;
    if (survey.failures.length === 0) for (const key of this.#done) if (!noted.has(key)) this.#done.delete(key);
  }

  /** Told from the second look on: that a Machine has no VM yet passes by itself. */
  #hold(removal: Named, { machineClass }: ClassAccess): void {
    const { recorder, log } = this.#deps;
    if (!this.#held.has(removal.key) || this.#done.has(removal.key)) return;
    recorder.event(keptForNamesake(machineClass, removal));
    log.warn(fieldsOf(removal, machineClass), 'kept the remains of a forced removal for a machine of the same name');
  }

  /** Takes note of deletions that have ended. */
  settle(): void {
    for (const [key, task] of this.#running) {
      const { machineUID } = task.removal;
      const activity = this.#deps.activities.get(machineUID, 'delete');
      if (activity?.state === 'running') continue;
      this.#running.delete(key);
      this.#deps.activities.forget(machineUID, 'delete');
      if (activity?.state !== 'failed' || DriverError.hasCode(activity.error, 'NotFound')) this.#cleaned(task);
      else this.#failed(task, activity.error);
    }
  }

  #begin(task: Task): void {
    const { removal, access, apart } = task;
    if (this.#done.has(removal.key) || this.#running.has(removal.key)) return;
    this.#running.set(removal.key, task);
    const { driver, machineClass, secretData } = access;
    const account = accountOf(driver.provider, machineClass);
    const owner = { uid: removal.machineUID, key: this.#key, account };
    this.#deps.activities.startOrGet(owner, 'delete', async (signal) => {
      await driver.turn(machineClass, signal);
      const live = await this.#deps.liveNamesakes(removal.machine, signal);
      if (live.some((uid) => !apart.has(uid)) || this.#isTaken(removal, apart))
        throw new DriverError('Canceled', 'a Machine with this name or VM exists now');
      await driver.delete({ machine: stubOf(removal, machineClass), machineClass, secretData }, signal);
    });
  }

  #isTaken({ machine, providerID }: Named, apart: ReadonlySet<string>): boolean {
    const { namesakes, isVMTaken } = this.#deps;
    return (
      namesakes(machine).some(({ metadata }) => !apart.has(metadata.uid)) ||
      (providerID !== undefined && isVMTaken(providerID))
    );
  }

  #cleaned({ removal, access: { machineClass }, wasListed, apart }: Task): void {
    const { recorder, log, collected } = this.#deps;
    const { key, machine, nodeName = machine, providerID = '' } = removal;
    this.#done.add(key);
    recorder.event(cleanedUp(machineClass, machine));
    log.info(fieldsOf(removal, machineClass), 'deleted the remains of a forced removal');
    // Its Node may have the name of that of the other one: two lists without the VM say which is which.
    if (wasListed && apart.size === 0) collected({ name: machine, nodeName, providerID });
  }

  #failed({ removal, access: { machineClass } }: Task, err: unknown): void {
    const { recorder, log } = this.#deps;
    const fields = { ...fieldsOf(removal, machineClass), err };
    const wasNotSent = err instanceof GateClosedError || err instanceof TurnAbandonedError;
    if (wasNotSent || DriverError.hasCode(err, 'Canceled'))
      return log.debug(fields, 'paused the deletion of the remains of a forced removal');
    recorder.event(failedToCleanUp(machineClass, removal.machine, err));
    log.warn(fields, 'could not delete the remains of a forced removal');
  }
}

/** Whether the VM of a Machine, which may be of another namespace, is listed with its UID. */
function toldApart({ lists }: Survey): (machine: Machine) => boolean {
  const listed = lists.flatMap(({ vms, foreign }) => [...vms, ...foreign]);
  const tagged = new Map(listed.map((vm) => [vm.providerID, vm.machineUID]));
  return (one) => tagged.get(providerIDOf(one)) === one.metadata.uid;
}

function stubOf({ machine, machineUID, providerID }: Named, { metadata }: MachineClass): MachineOrStub {
  return {
    metadata: { name: machine, namespace: metadata.namespace ?? '', uid: machineUID },
    spec: providerID === undefined ? {} : { providerID },
  };
}

function fieldsOf(
  { machine, providerID = '' }: Named,
  { metadata }: MachineClass,
): { providerID: string; machine: string; class: string } {
  return { providerID, machine: `${metadata.namespace ?? ''}/${machine}`, class: metadata.name };
}
