import { next } from '../../../work/reconcile/result.ts';
import type { MachineStep } from '../context.ts';
import type { MachineTokens } from './machine-tokens.ts';

/** A bootstrap token that could not be deleted when its machine joined is deleted later. Never ends the pass. */
export const retryTokenRevocation = ({ tokens }: { readonly tokens: MachineTokens }): MachineStep => ({
  name: 'left-token',

  async run(ctx) {
    const againMs = await tokens.removeLeft(ctx);
    if (againMs !== undefined) ctx.pass.alsoAfter(againMs, 'its bootstrap token to be deleted');
    return next;
  },
});
