import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { isBeingDeleted } from '../../apis/meta.ts';
import { BoundedMap } from '../../events/bounded-map.ts';
import { deletionStageOf, hasReached } from '../machine/deletion/stage.ts';
import { isBeingCreated } from '../machine/status.ts';

/** Deletions of VMs that are remembered until their Machine is gone, which follows at once. */
const CAPACITY = 8_192;

/**
 * How Machines go. Those whose VM was deleted first go in order; one that vanishes otherwise (somebody took its finalizer away,
 * or the control cluster was set back to an older state) is remembered through one whole look of the orphan loop, in
 * which its VM still counts as owned.
 */
export class Departures {
  readonly #deletedVMs = new BoundedMap<string, true>(CAPACITY);
  #missed: Machine[] = [];

  /** The driver has deleted the VM of the machine with this UID. */
  deletedVM(uid: string): void {
    this.#deletedVMs.set(uid, true);
  }

  /** A Machine is gone; whether in order. */
  left(machine: Machine): 'in-order' | 'unexpectedly' {
    const { uid } = machine.metadata;
    const stage = deletionStageOf(machine);
    const isInOrder = this.#deletedVMs.get(uid) === true || hasReached(stage, 'delete-node') || neverHadVM(machine);
    this.#deletedVMs.delete(uid);
    if (isInOrder) return 'in-order';
    this.#missed.push(machine);
    return 'unexpectedly';
  }

  /** Machines that vanished unexpectedly since this was last asked, for one look. */
  takeMissed(): readonly Machine[] {
    return this.#missed.splice(0);
  }
}

/** One whose deletion asked nobody, because nothing was ever made for it. */
function neverHadVM(machine: Machine): boolean {
  const providerID = (machine.spec as Machine['spec'] | undefined)?.providerID ?? '';
  return isBeingDeleted(machine) && isBeingCreated(machine) && providerID === '';
}
