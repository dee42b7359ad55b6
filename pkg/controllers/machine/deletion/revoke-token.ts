import { next } from '../../../work/reconcile/result.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineStep } from '../context.ts';
import { isAt } from './cursor.ts';

type Deps = Pick<Collaborators, 'tokens' | 'cursor'>;

/**
 * Deletes the bootstrap token before the VM, so that a VM that boots while it is deleted cannot join any more. Tokens of
 * machines older than their longest life have expired.
 */
export const revokeToken = (deps: Deps): MachineStep => ({
  name: 'revoke-token',

  async run(ctx) {
    if (!isAt(ctx, 'delete-vm') || deps.cursor.isNodeAbandoned(ctx) || !deps.tokens.mayHave(ctx.machine)) return next;
    // One that cannot be deleted is no reason to keep a VM that costs money.
    if (deps.tokens.isLeft(ctx.machine)) await deps.tokens.removeLeft(ctx);
    else await deps.tokens.remove(ctx);
    return next;
  },
});
