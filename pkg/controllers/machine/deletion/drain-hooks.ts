import { DRAIN_SINCE_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import { toTimestamp } from '../../../base/clock/clock.ts';
import { next } from '../../../work/reconcile/result.ts';
import { deletionStageOf } from '../../machine-facts/deletion-stage.ts';
import { hooksOf } from '../../machine-facts/hooks.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineStep } from '../context.ts';
import { continueAfterHooks, waitForHooks } from './hooks-wait.ts';

type Deps = Pick<Collaborators, 'clock' | 'reportedOnce' | 'drains'>;

/**
 * Waits with the drain, also one that has begun, for as long as the Machine has a hook; nothing overrules one, and a machine without Node
 * waits too. The time that it waited is given back to the drain: its timeout counts anew, by an annotation that is recorded before the
 * last operation says anything else.
 */
export const drainHooks = (deps: Deps): MachineStep => ({
  name: 'drain-hooks',

  run(ctx) {
    const { machine } = ctx;
    const { clock, drains } = deps;
    const stage = deletionStageOf(machine);
    if (stage !== 'vm-status' && stage !== 'drain') return next;

    const hooks = hooksOf(machine, 'deletion');
    if (hooks.length > 0) {
      drains.end(ctx);
      return waitForHooks(deps, ctx, stage, hooks);
    }
    return continueAfterHooks(deps, ctx, stage, () => {
      const since = { [DRAIN_SINCE_ANNOTATION]: toTimestamp(clock.now()) };
      machine.metadata.annotations = { ...machine.metadata.annotations, ...since };
    });
  },
});
