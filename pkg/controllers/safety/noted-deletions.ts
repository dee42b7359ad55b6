import { DriverError } from '../../driver/error.ts';
import type { Drivers } from '../../driver/drivers.ts';
import type { MachineDriver } from '../../driver/gated-driver.ts';

/**
 * The same drivers, with `deleted` told the UID of each machine whose VM a driver has deleted or does not know any more: a
 * Machine that vanishes without was taken away behind our back.
 */
export function notingDeletions(drivers: Drivers, deleted: (uid: string) => void): Drivers {
  const noting = new Map(drivers.all().map((driver) => [driver, note(driver, deleted)]));
  return {
    resolve(machineClass, machine) {
      const driver = drivers.resolve(machineClass, machine);
      return driver === undefined ? undefined : (noting.get(driver) ?? driver);
    },
    all: () => [...noting.values()],
  };
}

function note(driver: MachineDriver, deleted: (uid: string) => void): MachineDriver {
  return {
    provider: driver.provider,
    capabilities: (signal) => driver.capabilities(signal),
    getStatus: (request, signal) => driver.getStatus(request, signal),
    create: (request, signal, timeoutMs) => driver.create(request, signal, timeoutMs),
    initialize: (request, signal, timeoutMs) => driver.initialize(request, signal, timeoutMs),
    async delete(request, signal, timeoutMs) {
      const { uid } = request.machine.metadata;
      try {
        const result = await driver.delete(request, signal, timeoutMs);
        if (uid !== undefined) deleted(uid);
        return result;
      } catch (err) {
        if (uid !== undefined && DriverError.hasCode(err, 'NotFound')) deleted(uid);
        throw err;
      }
    },
    list: (request, signal) => driver.list(request, signal),
    volumeIDs: (pvSpecs, signal) => driver.volumeIDs(pvSpecs, signal),
  };
}
