import { next } from '../../reconcile/result.ts';
import type { MachineStep } from './context.ts';

/** Points at which others will be able to hold a deletion. */
export type HookPoint = 'pre-drain' | 'pre-terminate';

/** The step that waits for whoever holds a deletion at this point: nobody can yet. */
export function hooks(point: HookPoint): MachineStep {
  return { name: `hooks.${point}`, run: () => next };
}
