import type { ListedMachine } from '../../driver/driver.ts';

/** Type of the condition of a Machine that shows the state of its VM in the provider's words, as `reason`. */
export const VM_STATE = 'VMState';
/** Type of the condition of a Machine that says that somebody else has asked the provider to delete its VM. */
export const VM_DELETION_REQUESTED = 'VMDeletionRequested';

/** What lists tell of a VM beside that it is there; undefined: nothing of that. */
export type ReportedVM = Pick<ListedMachine, 'state' | 'deletion'>;

/**
 * What providers say of VMs, as the last lists showed it: that costs no call of its own. Written by the orphan loop, read by the machine
 * controller; empty in a process that does not run both.
 */
export class VMStates {
  #reported = new Map<string, ReportedVM>();
  #changed: (providerIDs: readonly string[]) => void = () => undefined;

  /** Who is told of VMs of which something else is said now; one only. */
  onChange(changed: (providerIDs: readonly string[]) => void): void {
    this.#changed = changed;
  }

  /** What lists have shown; `isComplete`: a VM that is not among them is in no list. */
  saw(vms: readonly ListedMachine[], isComplete: boolean): void {
    const before = this.#reported;
    const told = vms.map(({ providerID, state, deletion }) => [providerID, { state, deletion }] as const);
    this.#reported = new Map([...(isComplete ? [] : before), ...told]);
    const changed = told.filter(([providerID, { state, deletion }]) => {
      const known = before.get(providerID);
      return known?.state !== state || known?.deletion !== deletion;
    });
    if (changed.length > 0) this.#changed(changed.map(([providerID]) => providerID));
  }

  /** Undefined: nobody knows. */
  get(providerID: string): ReportedVM | undefined {
    return this.#reported.get(providerID);
  }
}
