import type { ListedMachine } from '../../driver/driver.ts';

/** Type of the condition of a Machine that shows the state of its VM in the provider's words, as `reason`. */
export const VM_STATE = 'VMState';

/**
 * The states of VMs in their providers' words, as the last lists showed them: they cost no call of their own. Written by the orphan loop,
 * read by the machine controller; empty in a process that does not run both, and for drivers that do not tell.
 */
export class VMStates {
  #states = new Map<string, string>();
  #changed: (providerIDs: readonly string[]) => void = () => undefined;

  /** Who is told of VMs whose state has changed; one only. */
  onChange(changed: (providerIDs: readonly string[]) => void): void {
    this.#changed = changed;
  }

  /** What lists have shown; `isComplete`: a VM that is not among them is in no list. */
  saw(vms: readonly ListedMachine[], isComplete: boolean): void {
    const before = this.#states;
    const told = vms.flatMap(({ providerID, state }) => (state === undefined ? [] : [[providerID, state] as const]));
    this.#states = new Map([...(isComplete ? [] : before), ...told]);
    const changed = told.filter(([providerID, state]) => before.get(providerID) !== state);
    if (changed.length > 0) this.#changed(changed.map(([providerID]) => providerID));
  }

  /** Undefined: nobody knows. */
  get(providerID: string): string | undefined {
    return this.#states.get(providerID);
  }
}
