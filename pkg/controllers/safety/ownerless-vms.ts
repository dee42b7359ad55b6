export interface OwnerlessVM {
  readonly providerID: string;
  /** Name of the Machine that it was made for, as the driver tells it. */
  readonly machineName: string;
}

/**
 * The VMs without a Machine of the last lists, united over classes by provider id. Written by the orphan loop, read by the
 * overshoot safety; empty in a process that does not run both.
 */
export class OwnerlessVMs {
  #vms: ReadonlyMap<string, OwnerlessVM> = new Map();

  /** What the present lists show. */
  replace(vms: Iterable<OwnerlessVM>): void {
    this.#vms = new Map([...vms].map((vm) => [vm.providerID, vm]));
  }

  /** A VM is known to be gone. */
  remove(providerID: string): void {
    if (!this.#vms.has(providerID)) return;
    this.replace(this.list().filter((vm) => vm.providerID !== providerID));
  }

  list(): readonly OwnerlessVM[] {
    return [...this.#vms.values()];
  }
}
