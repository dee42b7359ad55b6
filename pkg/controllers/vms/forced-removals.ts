import { nodeNameOf, providerIDOf } from '../../apis/machine/v1alpha1/defaults.ts';
import { FORCED_REMOVAL_PREFIX } from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineClass } from '../../apis/machine/v1alpha1/machine-class.ts';
import type { ListedMachine } from '../../driver/driver.ts';

/** A Machine that was let go by force, as its class notes it; what is undefined nobody can read any more. */
export interface ForcedRemoval {
  readonly key: string;
  readonly machineUID: string;
  readonly machine: string | undefined;
  readonly nodeName: string | undefined;
  /** Undefined where it was never known, too. */
  readonly providerID: string | undefined;
}

/** What a class is annotated with before a Machine of it is let go by force: one annotation for each, so that they do not hinder each other. */
export function noteOfForcedRemoval(machine: Machine): Record<string, string> {
  const { name, uid } = machine.metadata;
  const [providerID, node] = [providerIDOf(machine), nodeNameOf(machine)];
  const note = { machine: name, ...(providerID !== '' && { providerID }), ...(node !== '' && { node }) };
  return { [`${FORCED_REMOVAL_PREFIX}/${uid}`]: JSON.stringify(note) };
}

/** The Machines of a class that were let go by force, until a list has shown that their VMs are gone. */
export function forcedRemovalsOf({ metadata }: Pick<MachineClass, 'metadata'>): readonly ForcedRemoval[] {
  return Object.entries(metadata.annotations ?? {}).flatMap(([key, value]) => {
    const [prefix, machineUID = ''] = key.split('/');
    return prefix === FORCED_REMOVAL_PREFIX ? [{ key, machineUID, ...readNote(value) }] : [];
  });
}

/**
 * Whether a listed VM that no living Machine has by its provider id may be that of a Machine which was let go: one that has only the name
 * of a living Machine is no proof that it is that one's. A note that nobody can read may mean any VM.
 */
export function mayBeLeftBy(vm: ListedMachine, { machineUID, machine, providerID }: ForcedRemoval): boolean {
  if (machine === undefined) return true;
  return vm.machineName === machine || vm.providerID === providerID || vm.machineUID === machineUID;
}

function readNote(text: string): Pick<ForcedRemoval, 'machine' | 'nodeName' | 'providerID'> {
  try {
    const note = JSON.parse(text) as { machine?: unknown; node?: unknown; providerID?: unknown } | null;
    return {
      machine: textIn(note?.machine),
      nodeName: textIn(note?.node),
      providerID: textIn(note?.providerID),
    };
  } catch {
    return { machine: undefined, nodeName: undefined, providerID: undefined };
  }
}

function textIn(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
