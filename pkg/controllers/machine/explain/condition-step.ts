import { next } from '../../../work/reconcile/result.ts';
import type { MachineContext, MachineStep } from '../context.ts';

/**
 * A step that shows something in a condition of the Machine, and never ends the pass. `reported`: what it said last of Machines, by UID, since
 * the original's definition stores no such condition.
 */
export function conditionStep(
  name: string,
  show: (ctx: MachineContext, reported: Map<string, string>) => void,
): MachineStep {
  const reported = new Map<string, string>();
  return {
    name,
    run(ctx) {
      show(ctx, reported);
      return next;
    },
    forget: (uid) => void reported.delete(uid),
  };
}
