import type { IronCoreMachine } from '../../api/machine.ts';
import type { RuntimeMachine } from '../../runtime/runtime.ts';
import { NAME_LABEL, MACHINE_NAMESPACE_LABEL, UID_LABEL } from './keys.ts';

const SEPARATOR = '://';

/** The id at the runtime of the machine that a Machine has; empty: it knows none. */
export function runtimeIDOf({ status }: Pick<IronCoreMachine, 'status'>): string {
  const { machineID = '' } = status ?? {};
  const at = machineID.indexOf(SEPARATOR);
  return at === -1 ? '' : machineID.slice(at + SEPARATOR.length);
}

/** The name of the runtime that it is at; empty: it knows none. */
export function runtimeNameOf({ status }: Pick<IronCoreMachine, 'status'>): string {
  const { machineID = '' } = status ?? {};
  return machineID.slice(0, Math.max(0, machineID.indexOf(SEPARATOR)));
}

/**
 * Whether a machine is that of a Machine although its label with the UID is lost: the Machine has its id, and what labels are left name no
 * other one.
 */
export function isMachineOf(machine: IronCoreMachine, { metadata: { id, labels } }: RuntimeMachine): boolean {
  const { uid, namespace = '', name } = machine.metadata;
  const names = [
    [UID_LABEL, uid],
    [MACHINE_NAMESPACE_LABEL, namespace],
    [NAME_LABEL, name],
  ] as const;
  return id === runtimeIDOf(machine) && names.every(([key, own]) => ['', own].includes(labels[key] ?? ''));
}
