import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { HOLD_KINDS, holdOf } from './replacement-hold.ts';
import type { OperationCode } from './operation-codes.ts';

/** Condition type on a MachineDeployment of which unhealthy machines wait to be replaced. There is none while none waits. */
export const REPLACEMENT_HELD = 'ReplacementHeld';

/**
 * What keeps machines of one MachineDeployment from being replaced although their health timeout has passed; undefined when
 * nothing does. The reason that concerns most of the fleet is told. Read from the Machines alone, which say it themselves, so
 * that a process without the machine controllers knows it too.
 */
export function replacementHold(machines: readonly Machine[]): { reason: OperationCode; message: string } | undefined {
  const holds = machines.map(holdOf).filter((held) => held !== undefined);
  const kind = HOLD_KINDS.find((one) => holds.some((held) => held.kind === one));
  const told = holds.find((held) => held.kind === kind);
  if (told === undefined) return undefined;
  const waiting = holds.length === 1 ? 'One unhealthy machine is' : `${holds.length} unhealthy machines are`;
  return { reason: told.code, message: `${waiting} not replaced: ${told.text}` };
}
