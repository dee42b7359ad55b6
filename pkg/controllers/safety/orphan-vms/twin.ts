import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { ListedMachine } from '../../../driver/driver.ts';
import { DriverError } from '../../../driver/error.ts';
import type { ClassAccess } from './survey.ts';

/** Whether a VM that has the name of a Machine is a second one; `unknown`: the provider does not say. */
export type TwinVerdict = 'twin' | 'of-machine' | 'unknown';

/**
 * Asks for the VM of `namesake`, as the second source beside the list, which shows the VM that it knows and `vm`:
 *
 * | GetMachineStatus says                         | verdict    |
 * |-----------------------------------------------|------------|
 * | another VM                                    | twin       |
 * | several (OutOfRange)                          | twin       |
 * | that it does not exist as a method            | twin       |
 * | this VM, initialized or not                   | of-machine |
 * | anything else, also that there is none        | unknown    |
 */
export async function judgeTwin(
  vm: ListedMachine,
  namesake: Machine,
  { driver, machineClass, secretData }: Pick<ClassAccess, 'driver' | 'machineClass' | 'secretData'>,
  signal: AbortSignal,
): Promise<TwinVerdict> {
  try {
    const { providerID } = await driver.getStatus({ machine: namesake, machineClass, secretData }, signal);
    return verdictOf(vm, providerID);
  } catch (err) {
    signal.throwIfAborted();
    if (DriverError.hasCode(err, 'OutOfRange', 'Unimplemented')) return 'twin';
    return DriverError.hasCode(err, 'Uninitialized') ? verdictOf(vm, err.result?.providerID) : 'unknown';
  }
}

function verdictOf(vm: ListedMachine, providerID: string | undefined): TwinVerdict {
  if (providerID === undefined || providerID === '') return 'unknown';
  return providerID === vm.providerID ? 'of-machine' : 'twin';
}
