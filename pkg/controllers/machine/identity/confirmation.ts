import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { VirtualMachine } from '../../../driver/driver.ts';
import { DriverError } from '../../../driver/error.ts';
import { UNRECORDED } from '../../../operator/indexes/machine-indexes.ts';
import type { MachineIndex } from '../../machine-facts/node-owner.ts';
import { isSameVM } from '../../../apis/machine/v1alpha1/same-vm.ts';
import type { MachineContext, ResolvedClass } from '../context.ts';
import { rivalFor, type VMIdentity } from './identity-claims.ts';

/**
 * Throws when the driver tells something else of a VM that it has just said to have made: CreateMachine may have answered with the VM of
 * another machine in creation, of which no record tells yet. Anyone who recorded that first would keep it from its owner, so that
 * GetMachineStatus is asked before. When it says nothing (providers may be slow to show a VM), CreateMachine is believed.
 *
 * | other Machines                       | GetMachineStatus tells of           | CreateMachine is              |
 * |--------------------------------------|-------------------------------------|-------------------------------|
 * | all have recorded their VMs          | (not asked)                         | believed                      |
 * | one is known to have this VM or Node | (not asked)                         | refused by step `claim`       |
 * | one has recorded none                | the same VM, none, or fails         | believed                      |
 * | one has recorded none                | another VM or Node, finished or not | refused, and asked again      |
 */
export async function requireConfirmed(
  { machines }: { readonly machines: MachineIndex },
  { nodes, log }: Pick<MachineContext, 'nodes' | 'log'>,
  { driver, machineClass, secretData }: ResolvedClass,
  machine: Machine,
  told: VMIdentity,
  signal: AbortSignal,
): Promise<void> {
  if (rivalFor(told, machine, machines, nodes) !== undefined || !isAnyOpen(machines, machine)) return;
  const seen = await driver.getStatus({ machine, machineClass, secretData }, signal).catch(resultOf);
  if (!contradicts(told, seen)) return;
  log.warn({ told: textOf(told), seen: textOf(seen) }, 'driver gave two identities for a VM');
  throw new DriverError(
    'Internal',
    `driver returned ${textOf(told)} from CreateMachine, but ${textOf(seen)} from GetMachineStatus; the result is not recorded, and the driver is called again`,
    { unanswered: true },
  );
}

/** Whether two answers of a driver are of different VMs, or of one VM with different Nodes; what is not told contradicts nothing. */
export function contradicts(told: VMIdentity, seen: Partial<VMIdentity>): boolean {
  if (isSameVM(told.providerID, seen.providerID) === false) return true;
  const { nodeName = '' } = seen;
  return nodeName !== '' && told.nodeName !== '' && nodeName !== told.nodeName;
}

/** Whether a Machine other than this one may have a VM that it has not recorded. */
function isAnyOpen(machines: MachineIndex, { metadata: { uid } }: Machine): boolean {
  return machines.byIndex('unrecorded', UNRECORDED).some(({ metadata }) => metadata.uid !== uid);
}

function resultOf(err: unknown): Partial<VirtualMachine> {
  return DriverError.hasCode(err, 'Uninitialized') ? (err.result ?? {}) : {};
}

function textOf({ providerID = '', nodeName = '' }: Partial<VMIdentity>): string {
  return `VM ${providerID}${nodeName === '' ? '' : ` with Node name ${nodeName}`}`;
}
