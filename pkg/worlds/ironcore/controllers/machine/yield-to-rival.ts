import { next, requeue } from '../../../../work/reconcile/result.ts';
import type { PassCollaborators, IronCoreStep } from './machine-pass.ts';
import { SOON_MS } from './rechecks.ts';
import { CLAIMED_BY_ANOTHER } from './rivals.ts';

type Deps = Pick<PassCollaborators, 'rivals' | 'pools' | 'keptUses' | 'hurry' | 'reports' | 'waiting'>;

/** Does nothing while somebody else claims machines of the pool, or nobody has looked yet. */
export const yieldToRival = ({ rivals, pools, keptUses, hurry, reports, waiting }: Deps): IronCoreStep => ({
  name: 'yield-to-rival',
  async run(pass) {
    const { observed, isGoing, poolName, existing, signal } = pass;
    const message = rivals.whyNot(poolName, pools.get(poolName), existing);
    if (message !== undefined) {
      const [seen] = existing;
      const isThere = seen !== undefined && !isGoing;
      const problem = { reason: CLAIMED_BY_ANOTHER, message, ...(isThere && { status: 'Unknown' as const }) };
      return await waiting.hold(pass, problem, seen);
    }
    if (rivals.has(poolName)) return next;
    const why = keptUses.whyNot(poolName);
    if (why === undefined) hurry(poolName);
    else if (existing.length === 0 || isGoing) {
      const unknown = `MachinePool ${poolName}: its runtime cannot list its machines: ${why}`;
      await reports.report(observed, { problem: { reason: 'RuntimeUnreachable', message: unknown } }, signal);
    }
    return requeue(SOON_MS, 'the first list of all machines of the runtime');
  },
});
