import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { HOLD_KINDS, holdOf, type HoldKind } from './hold.ts';

/** Condition type on a MachineDeployment of which unhealthy machines wait to be replaced. There is none while none waits. */
export const REPLACEMENT_HELD = 'ReplacementHeld';

/** What the condition says. */
export interface ReplacementHold {
  readonly reason: 'ZoneUnhealthy' | 'ReplacementStopped' | 'ReplacementPaced' | 'TooManyReplacements' | 'SafetyGrace';
  readonly message: string;
}

const REASONS: Readonly<Record<HoldKind, ReplacementHold['reason']>> = {
  zone: 'ZoneUnhealthy',
  stopped: 'ReplacementStopped',
  pace: 'ReplacementPaced',
  limit: 'TooManyReplacements',
  grace: 'SafetyGrace',
};

/**
 * What keeps machines of one MachineDeployment from being replaced although their health timeout has passed; undefined when
 * nothing does. The reason that concerns most of the fleet is told. Read from the Machines alone, which say it themselves, so
 * that a process without the machine half knows it too.
 */
export function replacementHold(machines: readonly Machine[]): ReplacementHold | undefined {
  const holds = machines.map(holdOf).filter((held) => held !== undefined);
  const kind = HOLD_KINDS.find((one) => holds.some((held) => held.kind === one));
  const told = holds.find((held) => held.kind === kind);
  if (kind === undefined || told === undefined) return undefined;
  const waiting = holds.length === 1 ? 'One unhealthy machine is' : `${holds.length} unhealthy machines are`;
  return { reason: REASONS[kind], message: `${waiting} not replaced: ${told.text}` };
}
