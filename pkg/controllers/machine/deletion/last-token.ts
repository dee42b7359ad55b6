import { fromTimestamp, MINUTE_MS } from '../../../clock/clock.ts';
import { next, requeue } from '../../../reconcile/result.ts';
import type { MachineStep } from '../context.ts';
import { removeLeftTokens } from '../steps/bootstrap.ts';
import { isAt, isNodeAbandoned } from './cursor.ts';

/** So long, from its deletion on, a Machine stays for a bootstrap token that cannot be deleted; it expires by itself. */
const PATIENCE_MS = 2 * MINUTE_MS;

/** Nobody knows of the bootstrap token once its Machine is gone, so one that is left is tried again before that. */
export const lastToken: MachineStep = {
  name: 'last-token',

  async run(ctx) {
    if (!isAt(ctx, 'release-finalizer') || isNodeAbandoned(ctx)) return next;
    const { machine, clock } = ctx;
    const againMs = await removeLeftTokens(ctx);
    const sinceMs = clock.now() - (fromTimestamp(machine.metadata.deletionTimestamp) ?? 0);
    if (againMs === undefined || sinceMs > PATIENCE_MS) return next;
    return requeue(againMs, 'its bootstrap token to be deleted');
  },
};
