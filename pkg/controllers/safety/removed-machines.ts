import { nodeNameOf, phaseOf, providerIDOf } from '../../apis/machine/v1alpha1/defaults.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { isBeingDeleted } from '../../apis/meta.ts';
import type { ListedMachine } from '../../driver/driver.ts';
import { BoundedMap } from '../../kube/events/bounded-map.ts';
import { classIndex } from '../../operator/indexes/class-index.ts';
import { deletionStageOf, hasReached } from '../machine-facts/deletion-stage.ts';
import { isBeingCreated, wasNeverRequested } from '../machine-facts/status.ts';
import type { CallNotes } from './noted-calls.ts';

/** So many of each kind are remembered; the oldest are forgotten first. */
const CAPACITY = 8_192;

/** How a Machine went; `deleting`: its VM is being deleted, and the end of that call tells the rest. */
export type MachineRemoval = 'in-order' | 'deleting' | 'unexpectedly';

/** A Machine that vanished while its VM was being deleted, now that the call has ended. */
export type LateEnd = (machine: Machine, how: Exclude<MachineRemoval, 'deleting'>) => void;

/**
 * How Machines go. Those whose VM was deleted first go in order; one that vanishes otherwise (somebody took its finalizer away,
 * or the control cluster was set back to an older state) is remembered through one whole look of the orphan loop, in
 * which its VM still counts as owned. Of one that vanishes while its VM is being deleted the end of the call decides.
 */
export class RemovedMachines implements CallNotes {
  readonly #deletedVMs = new BoundedMap<string, true>(CAPACITY);
  /** Machines for which a driver was asked for a VM, by UID. */
  readonly #askedFor = new BoundedMap<string, true>(CAPACITY);
  /** Machines whose VM is being deleted, by UID; with a value those that have vanished meanwhile. */
  readonly #deleting = new Map<string, Machine | undefined>();
  /** UIDs and names of Machines that were deleted on request, and whose VM the driver reported as deleted. */
  readonly #finished = new BoundedMap<string, true>(2 * CAPACITY);
  #missed: Machine[] = [];
  /** Keys of classes of Machines that vanished unexpectedly. */
  readonly #lostOf = new BoundedMap<string, true>(CAPACITY);
  #lateEnd: LateEnd = () => undefined;

  /** Who is told of Machines that vanished while their VM was being deleted; one only. */
  onLateEnd(told: LateEnd): void {
    this.#lateEnd = told;
  }

  creatingVM(uid: string): void {
    this.#askedFor.set(uid, true);
  }

  deletingVM(uid: string): void {
    if (!this.#deleting.has(uid)) this.#deleting.set(uid, undefined);
  }

  deletedVM(uid: string): void {
    const removed = this.#endCall(uid);
    if (removed === undefined) {
      this.#deletedVMs.set(uid, true);
      return;
    }
    this.#finish(removed);
    this.#lateEnd(removed, 'in-order');
  }

  /** Whether it is believed that the VM is gone, as a driver has said: else a Machine that vanishes now leaves one behind, perhaps. */
  judgedVM(uid: string, isGone: boolean): void {
    if (isGone) this.#deletedVMs.set(uid, true);
    else this.#deletedVMs.delete(uid);
  }

  gaveUpVM(uid: string): void {
    const removed = this.#endCall(uid);
    if (removed === undefined) return;
    this.#miss(removed);
    this.#lateEnd(removed, 'unexpectedly');
  }

  /** Records that a Machine is gone; how. */
  record(machine: Machine): MachineRemoval {
    const { uid } = machine.metadata;
    const stage = deletionStageOf(machine);
    const wasAskedFor = this.#askedFor.get(uid) === true;
    const isFinished = this.#deletedVMs.get(uid) === true || hasReached(stage, 'delete-node');
    const isInOrder = isFinished || (!wasAskedFor && neverHadVM(machine)) || wasGivenUp(machine);
    this.#deletedVMs.delete(uid);
    this.#askedFor.delete(uid);
    if (isFinished) this.#finish(machine);
    else for (const identity of identitiesOf(machine)) this.#finished.delete(identity);
    if (isInOrder) return 'in-order';
    if (this.#deleting.has(uid)) {
      this.#deleting.set(uid, machine);
      return 'deleting';
    }
    this.#miss(machine);
    return 'unexpectedly';
  }

  /** Machines that vanished unexpectedly and that no look has counted yet. */
  get missed(): readonly Machine[] {
    return this.#missed;
  }

  /** Whether a Machine of a class has ever vanished unexpectedly: its VM may be there, whatever one list says. */
  hasLost(classKey: string): boolean {
    return this.#lostOf.get(classKey) === true;
  }

  /** A look has counted these. */
  counted(machines: readonly Machine[]): void {
    const counted = new Set(machines);
    this.#missed = this.#missed.filter((one) => !counted.has(one));
  }

  /** Machines that have vanished and whose VM is being deleted. */
  deleting(): readonly Machine[] {
    return [...this.#deleting.values()].filter((machine) => machine !== undefined);
  }

  /**
   * Whether a VM is that of a Machine whose deletion was requested and has ended: the creation ended later than the Machine. Goes by UID
   * where the provider shows one, else by name, unless a later Machine of that name vanished in another way.
   */
  isLate({ machineUID, machineName }: ListedMachine): boolean {
    return this.#finished.get(machineUID ?? machineName) === true;
  }

  /** The cluster was set back: Machines whose deletion had ended may exist again, and vanish in another way. */
  forgetFinished(): void {
    this.#finished.clear();
  }

  #miss(machine: Machine): void {
    this.#missed.push(machine);
    for (const key of classIndex(machine)) this.#lostOf.set(key, true);
  }

  #finish(machine: Machine): void {
    if (isBeingDeleted(machine)) for (const identity of identitiesOf(machine)) this.#finished.set(identity, true);
  }

  #endCall(uid: string): Machine | undefined {
    const removed = this.#deleting.get(uid);
    this.#deleting.delete(uid);
    return removed;
  }
}

function identitiesOf({ metadata: { name, uid } }: Machine): readonly string[] {
  return [uid, name];
}

/** One whose creation came to nothing, and whose deletion has begun. */
function wasGivenUp(machine: Machine): boolean {
  return isBeingDeleted(machine) && isBeingCreated(machine) && providerIDOf(machine) === '';
}

/**
 * One for which no driver was asked for a VM, as far as the Machine tells: it waited for its class all the time, was never worked on, or
 * is being deleted. A VM that a former leader got for it all the same is found by the next look that is due.
 */
function neverHadVM(machine: Machine): boolean {
  const isUntouched = phaseOf(machine) === '' && machine.status?.lastOperation === undefined;
  const knowsNoVM = providerIDOf(machine) === '' && nodeNameOf(machine) === '';
  return knowsNoVM && (isBeingDeleted(machine) || isUntouched || wasNeverRequested(machine));
}
