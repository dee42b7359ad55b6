import { next } from '../../../reconcile/result.ts';
import type { MachineStep } from '../context.ts';
import type { MachineTokens } from '../machine-tokens.ts';

interface Deps {
  readonly tokens: MachineTokens;
}

/** A bootstrap token that could not be deleted when its machine joined is deleted later. Never ends the pass. */
export const leftToken = (deps: Deps): MachineStep => ({
  name: 'left-token',

  async run(ctx) {
    const againMs = await deps.tokens.removeLeft(ctx);
    if (againMs !== undefined) ctx.pass.alsoAfter(againMs, 'its bootstrap token to be deleted');
    return next;
  },
});
