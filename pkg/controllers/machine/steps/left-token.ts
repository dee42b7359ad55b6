import { next } from '../../../reconcile/result.ts';
import type { MachineStep } from '../context.ts';
import { removeLeftTokens } from './bootstrap.ts';

/** A bootstrap token that could not be deleted when its machine joined is deleted later. Never ends the pass. */
export const leftToken: MachineStep = {
  name: 'left-token',

  async run(ctx) {
    const againMs = await removeLeftTokens(ctx);
    if (againMs !== undefined) ctx.pass.alsoAfter(againMs, 'its bootstrap token to be deleted');
    return next;
  },
};
