import type { MachineOrStub } from './driver.ts';
import type { MachineClass } from '../apis/machine/v1alpha1/machine-class.ts';
import type { MachineDriver } from './gated-driver.ts';

/** Finds the driver of a machine. A function of both, so that a scheduler can place a machine on one of several providers. */
export interface Drivers {
  /** Undefined: nothing is configured for the class's `provider`. */
  resolve(machineClass: MachineClass, machine?: MachineOrStub): MachineDriver | undefined;
  all(): readonly MachineDriver[];
}

/**
 * The drivers of `--driver <provider>=<address>`, found by the class's `provider`. With exactly one configured, classes that
 * name no provider use it, as the original's classes need not name the one provider that is linked in.
 */
export class ConfiguredDrivers implements Drivers {
  readonly #byProvider: ReadonlyMap<string, MachineDriver>;

  constructor(drivers: readonly MachineDriver[]) {
    this.#byProvider = new Map(drivers.map((driver) => [driver.provider, driver]));
  }

  resolve(machineClass: MachineClass): MachineDriver | undefined {
    const provider = machineClass.provider ?? '';
    if (provider === '' && this.#byProvider.size === 1) return this.all()[0];
    return this.#byProvider.get(provider);
  }

  all(): readonly MachineDriver[] {
    return [...this.#byProvider.values()];
  }
}
