import { keyOf } from '../../apis/meta.ts';
import { mayHaveMade } from '../../driver/creation-outcome.ts';
import { DriverError } from '../../driver/error.ts';
import type { Drivers } from '../../driver/drivers.ts';
import type { MachineDriver } from '../../driver/gated-driver.ts';
import type { LateVMs } from '../vms/late-vms.ts';

type CreationNotes = Pick<LateVMs, 'sent' | 'ended'>;

/** Who is told of the creations and deletions of VMs, each by the UID of its machine. */
export interface CallNotes {
  /** A driver is asked for a VM now. */
  creatingVM(uid: string): void;
  /** A driver is asked now. */
  deletingVM(uid: string): void;
  /** It has deleted the VM, or does not know it any more. */
  deletedVM(uid: string): void;
  /** The call has ended otherwise: nothing is known of the VM. */
  gaveUpVM(uid: string): void;
}

/**
 * The same drivers, with `notes` told of each creation and deletion: a Machine that vanishes without one was taken away behind our back. `late` is
 * told of creations, and whether each had an answer that says what was made.
 */
export function notingCalls(drivers: Drivers, notes: CallNotes, late: CreationNotes): Drivers {
  const noting = new Map(drivers.all().map((driver) => [driver, note(driver, notes, late)]));
  return {
    resolve(machineClass, machine) {
      const driver = drivers.resolve(machineClass, machine);
      return driver === undefined ? undefined : (noting.get(driver) ?? driver);
    },
    all: () => [...noting.values()],
  };
}

function note(driver: MachineDriver, notes: CallNotes, late: CreationNotes): MachineDriver {
  return {
    provider: driver.provider,
    turn: (machineClass, signal) => driver.turn(machineClass, signal),
    capabilities: (signal) => driver.capabilities(signal),
    getStatus: (request, signal) => driver.getStatus(request, signal),
    async create(request, signal, timeoutMs) {
      const { uid } = request.machine.metadata;
      const classKey = keyOf(request.machineClass);
      if (uid !== undefined) notes.creatingVM(uid);
      late.sent(classKey);
      try {
        const vm = await driver.create(request, signal, timeoutMs);
        late.ended(classKey, true);
        return vm;
      } catch (err) {
        late.ended(classKey, !mayHaveMade(err));
        throw err;
      }
    },
    initialize: (request, signal, timeoutMs) => driver.initialize(request, signal, timeoutMs),
    async delete(request, signal) {
      const { uid } = request.machine.metadata;
      if (uid === undefined) return await driver.delete(request, signal);
      notes.deletingVM(uid);
      try {
        const result = await driver.delete(request, signal);
        notes.deletedVM(uid);
        return result;
      } catch (err) {
        if (DriverError.hasCode(err, 'NotFound')) notes.deletedVM(uid);
        else notes.gaveUpVM(uid);
        throw err;
      }
    },
    list: (request, signal) => driver.list(request, signal),
    volumeIDs: (pvSpecs, signal) => driver.volumeIDs(pvSpecs, signal),
  };
}
