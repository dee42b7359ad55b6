import { hasFinalizer } from '../../../../apis/finalizers.ts';
import type { IronCoreMachine } from '../../api/machine.ts';
import { keyOf } from '../../../../apis/meta.ts';
import type { Lister } from '../../../../kube/cache/lister.ts';
import type { RuntimeMachine } from '../../runtime/runtime.ts';
import { poolUIDOf } from './former-pools.ts';
import { IRONCORE_MACHINE_FINALIZER, MACHINE_NAMESPACE_LABEL, NAME_LABEL, UID_LABEL } from './keys.ts';
import { isMachineOf } from './runtime-id.ts';

/**
 * Whose a machine at a runtime is: of a Machine; of none, and made for this MachinePool; of none, and made for a MachinePool that is not
 * there; of anybody else.
 */
export type MachineOwner = 'machine' | 'none' | 'former' | 'other';
export const OWNERS: readonly MachineOwner[] = ['machine', 'none', 'former', 'other'];

/** Machines of a pool by the ids that they have at its runtime. */
export type ByID = ReadonlyMap<string, IronCoreMachine>;

/** The MachinePools that machines may have been made for. */
export interface PoolsByUID {
  /** Of the pool that is looked at, and former ones of it. */
  readonly own: ReadonlySet<string>;
  readonly all: ReadonlySet<string>;
}

/** Whose a machine is. Others may use the same runtime, with the same labels. */
export function ownerOf(
  machines: Lister<IronCoreMachine>,
  machine: RuntimeMachine,
  pools: PoolsByUID,
  byID: ByID,
): MachineOwner {
  if (!isNamed(machine)) return knownByID(machine, byID) === undefined ? 'other' : 'machine';
  const owner = cachedMachineOf(machines, machine);
  if (owner !== undefined && isHeld(owner)) return 'machine';
  const poolUID = poolUIDOf(machine);
  if (pools.own.has(poolUID)) return 'none';
  return poolUID === '' || pools.all.has(poolUID) ? 'other' : 'former';
}

/** Key of the Machine of a machine, by what it says of itself, or else by its id; empty: it is of none. */
export function wokenBy(machine: RuntimeMachine, byID: ByID): string {
  if (isNamed(machine)) return machineKey(machine);
  const owner = knownByID(machine, byID);
  return owner === undefined ? '' : keyOf(owner);
}

/** The Machine of a machine, by what it says of itself, or else by its id; undefined: it is not there. */
export function presentOwner(
  machines: Lister<IronCoreMachine>,
  machine: RuntimeMachine,
  byID: ByID,
): IronCoreMachine | undefined {
  return isNamed(machine) ? cachedMachineOf(machines, machine) : knownByID(machine, byID);
}

/** The Machine of a machine, as its labels have it; undefined: it is not there. */
export function cachedMachineOf(
  machines: Lister<IronCoreMachine>,
  machine: RuntimeMachine,
): IronCoreMachine | undefined {
  const found = machines.get(machineKey(machine));
  return found !== undefined && found.metadata.uid === machine.metadata.labels[UID_LABEL] ? found : undefined;
}

/** Key of the Machine of a machine, as its labels have it. */
export function machineKey({ metadata }: RuntimeMachine): string {
  const { [MACHINE_NAMESPACE_LABEL]: namespace = '', [NAME_LABEL]: name = '' } = metadata.labels;
  return keyOf({ metadata: { namespace, name } });
}

/** The Machine that knows a machine by its id. */
function knownByID(machine: RuntimeMachine, byID: ByID): IronCoreMachine | undefined {
  const owner = byID.get(machine.metadata.id);
  return owner !== undefined && isMachineOf(owner, machine) ? owner : undefined;
}

/** Whether it says of which Machine it is: without that nobody can be asked whether there is one. */
function isNamed({ metadata: { labels } }: RuntimeMachine): boolean {
  return [UID_LABEL, MACHINE_NAMESPACE_LABEL, NAME_LABEL].every((key) => (labels[key] ?? '') !== '');
}

/** One whose finalizer was taken away while it was being deleted goes without its machine. */
function isHeld({ metadata }: IronCoreMachine): boolean {
  return metadata.deletionTimestamp === undefined || hasFinalizer({ metadata }, IRONCORE_MACHINE_FINALIZER);
}
