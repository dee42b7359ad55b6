import { fromTimestamp, MINUTE_MS } from '../../../base/clock/clock.ts';
import { next, requeue } from '../../../work/reconcile/result.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineStep } from '../context.ts';
import { isAt } from './cursor.ts';

/** So long, from its deletion on, a Machine stays for a bootstrap token that cannot be deleted; it expires by itself. */
const PATIENCE_MS = 2 * MINUTE_MS;

type Deps = Pick<Collaborators, 'clock' | 'tokens' | 'cursor'>;

/** Nobody knows of the bootstrap token once its Machine is gone, so one that is left is tried again before that. */
export const awaitTokenRevocation = (deps: Deps): MachineStep => ({
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
