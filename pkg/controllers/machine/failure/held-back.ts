import { setOperation } from '../../machine-facts/status.ts';
import { holdOf, withHold, type Hold } from '../../machine-facts/replacement-hold.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineContext } from '../context.ts';

/** When to look again while others are being replaced; their changes concern other keys. */
export const REPLACEMENT_RETRY_MS = 10_000;

/**
 * Says why the machine is held back, once for as long as it is for the same reason; a young process says it without an Event. The first reason
 * of a pass is the one that counts. `cause`: what is wrong with it, where its last operation does not say that.
 */
export function reportHold(deps: Pick<Collaborators, 'clock'>, ctx: MachineContext, held: Hold, cause?: string): void {
  const isNews = noteHold(deps, ctx, held, cause);
  if (isNews && held.kind !== 'grace') ctx.pass.event('ReplacementDelayed', `Not replaced yet: ${held.text}`);
}

/** The same in the last operation alone; whether that is news. */
export function noteHold(
  { clock }: Pick<Collaborators, 'clock'>,
  ctx: MachineContext,
  held: Hold,
  cause?: string,
): boolean {
  if (ctx.held !== undefined) return false;
  ctx.held = held;
  const { machine, observed } = ctx;
  const { type = 'HealthCheck', state = 'Processing', description = '' } = machine.status.lastOperation ?? {};
  const told = { type, state, errorCode: held.code, description: withHold(cause ?? description, held) };
  setOperation(machine, told, clock.now());
  return machine.status.lastOperation?.description !== observed.status?.lastOperation?.description;
}

/** Takes back what a machine says of a hold, unless this pass has said it. */
export function endHold({ clock }: Pick<Collaborators, 'clock'>, { machine, held }: MachineContext): void {
  if (held !== undefined || holdOf(machine) === undefined) return;
  const { type = 'HealthCheck', state = 'Processing', description = '' } = machine.status.lastOperation ?? {};
  setOperation(machine, { type, state, description: withHold(description, undefined) }, clock.now());
}
