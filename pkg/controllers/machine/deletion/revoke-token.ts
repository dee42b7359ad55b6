import { next } from '../../../reconcile/result.ts';
import type { MachineStep } from '../context.ts';
import { mayHaveToken, removeLeftTokens, removeTokens } from '../steps/bootstrap.ts';
import { isAt, isNodeAbandoned } from './cursor.ts';

/**
 * Deletes the bootstrap token before the VM, so that a VM that boots while it is deleted cannot join any more. Tokens of
 * machines older than their longest life have expired.
 */
export const revokeToken: MachineStep = {
  name: 'revoke-token',

  async run(ctx) {
    const { machine, memory } = ctx;
    if (!isAt(ctx, 'delete-vm') || isNodeAbandoned(ctx) || !mayHaveToken(ctx)) return next;
    // One that cannot be deleted is no reason to keep a VM that costs money.
    if (memory.leftTokens.has(machine.metadata.uid)) await removeLeftTokens(ctx);
    else await removeTokens(ctx);
    return next;
  },
};
