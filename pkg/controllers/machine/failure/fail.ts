import { CONTROL } from '../../../kube/gate/gate.ts';
import { beginPhase } from '../../machine-facts/status.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineContext } from '../context.ts';

export type FailureReason = 'health-timeout' | 'creation-timeout' | 'stale-node';

export type FailDeps = Pick<Collaborators, 'gate' | 'clock'> & {
  readonly metrics: Pick<Collaborators['metrics'], 'failed'>;
};

/** The clusters whose life a verdict on this machine depends on. */
export function clustersOf({ nodes }: Pick<MachineContext, 'nodes'>): string[] {
  return nodes === undefined ? [CONTROL] : [CONTROL, nodes.cluster];
}

/**
 * Makes the copy Failed, which is the end of the machine: its set deletes and replaces it. Throws GateClosedError unless every
 * cluster concerned has given a recent proof of life, also the target, to which the status write does not go.
 */
export async function becomeFailed(
  { gate, clock, metrics }: FailDeps,
  ctx: MachineContext,
  reason: FailureReason,
): Promise<void> {
  await gate.admit('destroy', clustersOf(ctx), ctx.signal);
  beginPhase(ctx.machine, 'Failed', clock.now());
  ctx.pass.intent = 'destroy';
  ctx.pass.afterWrite(() => metrics.failed(reason));
}
