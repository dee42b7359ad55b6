import { next } from '../../../work/reconcile/result.ts';
import { hooksOf } from '../../machine-facts/hooks.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineStep } from '../context.ts';
import { isAt } from './cursor.ts';
import { continueAfterHooks, waitForHooks } from './hooks-wait.ts';

type Deps = Pick<Collaborators, 'clock' | 'reportedOnce'>;

/**
 * Waits with the VM, whose Node is empty by then, for as long as the Machine has a hook; nothing overrules one, no deletion policy either,
 * and a machine that never had a VM waits too.
 */
export const terminationHooks = (deps: Deps): MachineStep => ({
  name: 'termination-hooks',

  run(ctx) {
    if (!isAt(ctx, 'delete-vm')) return next;
    const hooks = hooksOf(ctx.machine, 'termination');
    return hooks.length > 0 ? waitForHooks(deps, ctx, 'delete-vm', hooks) : continueAfterHooks(deps, ctx, 'delete-vm');
  },
});
