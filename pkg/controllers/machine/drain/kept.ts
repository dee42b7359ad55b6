import { FORCE_DRAIN_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import { isBeingDeleted } from '../../../apis/meta.ts';
import type { MachineMetrics } from '../../../metrics/machine.ts';
import type { MachineContext } from '../context.ts';
import type { DrainPlan } from './plan.ts';
import type { Drains, DrainState } from './session.ts';

/** A drain of a Node whose machine is kept. */
export type KeptDrain = Pick<DrainPlan, 'target' | 'node' | 'barrier' | 'startMs'> & {
  readonly purpose: Exclude<DrainPlan['purpose'], 'deletion'>;
};

/** What such a drain works with. */
export interface KeptDrainDeps {
  readonly drains: Drains;
  readonly metrics: Pick<MachineMetrics, 'drained'>;
}

/** Drains a Node whose machine is kept, as any. One that fails, forced or not, is never taken for done. */
export async function advanceKeptDrain(
  { drains, metrics }: KeptDrainDeps,
  ctx: MachineContext,
  drain: KeptDrain,
): Promise<Exclude<DrainState, { kind: 'left-pods' }>> {
  const { machine, pass } = ctx;
  const isAsked = machine.metadata.labels?.[FORCE_DRAIN_LABEL] === 'True';
  const state = await drains.advance(ctx, {
    ...drain,
    forcedBy: isAsked ? `the Machine carries label ${FORCE_DRAIN_LABEL}` : undefined,
    isWanted: (live) => !isBeingDeleted(live),
    onForcedFailure: 'retry',
  });
  if (state.kind === 'left-pods') throw new Error('a drain that is retried cannot have been given up');
  if (state.kind === 'drained' && state.isNews) {
    const how = state.isForced ? 'by force ' : '';
    pass.event('Drained', `The Node was drained ${how}in ${Math.round(state.tookMs / 1_000)} s, the machine is kept.`);
    pass.afterWrite(() => metrics.drained(machine, state.tookMs));
  }
  return state;
}
