import { CONTROL } from '../../../gate/gate.ts';
import type { MachineContext } from '../context.ts';
import { beginPhase } from '../../machines/status.ts';

/** The clusters whose life a verdict on this machine depends on. */
export function clustersOf({ target }: Pick<MachineContext, 'target'>): string[] {
  return target === undefined ? [CONTROL] : [CONTROL, target.cluster];
}

/**
 * Makes the copy Failed, which is the end of the machine: its set deletes and replaces it. Throws GateClosedError unless every
 * cluster concerned has given a recent proof of life, also the target, to which the status write does not go.
 */
export async function becomeFailed(ctx: MachineContext): Promise<void> {
  await ctx.gate.admit('destroy', clustersOf(ctx), ctx.signal);
  beginPhase(ctx.machine, 'Failed', ctx.clock.now());
  ctx.pass.intent = 'destroy';
}
