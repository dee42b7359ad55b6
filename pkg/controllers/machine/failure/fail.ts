import type { Clock } from '../../../clock/clock.ts';
import { CONTROL, type Gate } from '../../../gate/gate.ts';
import { beginPhase } from '../../machines/status.ts';
import type { MachineContext } from '../context.ts';
import type { MachineMetrics } from '../metrics.ts';

/** Why a machine fails, for metrics. */
export type FailureReason = 'health-timeout' | 'creation-timeout' | 'stale-node';

export interface FailDeps {
  readonly gate: Gate;
  readonly clock: Clock;
  readonly metrics: Pick<MachineMetrics, 'failed'>;
}

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
