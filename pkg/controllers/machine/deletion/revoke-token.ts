import { fromTimestamp, MINUTE_MS } from '../../../base/clock/clock.ts';
import { next, requeue } from '../../../work/reconcile/result.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineStep } from '../context.ts';
import { isAt } from './cursor.ts';

/** So long, from its deletion on, a Machine stays for a bootstrap token that cannot be deleted; it expires by itself. */
const PATIENCE_MS = 2 * MINUTE_MS;

/**
 * Deletes the bootstrap token before the VM, so that a VM that boots while it is deleted cannot join any more. Tokens of
 * machines older than their longest life have expired.
 */
export const revokeToken = (deps: Pick<Collaborators, 'tokens' | 'cursor'>): MachineStep => ({
  name: 'revoke-token',

  async run(ctx) {
    if (!isAt(ctx, 'delete-vm') || deps.cursor.isNodeAbandoned(ctx) || !deps.tokens.mayHave(ctx.machine)) return next;
    // One that cannot be deleted is no reason to keep a VM that costs money.
    if (deps.tokens.isLeft(ctx.machine)) await deps.tokens.removeLeft(ctx);
    else await deps.tokens.remove(ctx);
    return next;
  },
});

/** Nobody knows of the bootstrap token once its Machine is gone, so one that is left is tried again before that. */
export const awaitTokenRevocation = (deps: Pick<Collaborators, 'clock' | 'tokens' | 'cursor'>): MachineStep => ({
  name: 'last-token',

  async run(ctx) {
    if (!isAt(ctx, 'release-finalizer') || deps.cursor.isNodeAbandoned(ctx)) return next;
    const { machine } = ctx;
    const againMs = await deps.tokens.removeLeft(ctx);
    const sinceMs = deps.clock.now() - (fromTimestamp(machine.metadata.deletionTimestamp) ?? 0);
    if (againMs === undefined || sinceMs > PATIENCE_MS) return next;
    return requeue(againMs, 'its bootstrap token to be deleted');
  },
});
