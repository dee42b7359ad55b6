import type { Mutation } from '../mutation.ts';

/** What keeps a maintenance from doing harm. */
export const MAINTENANCE: readonly Mutation[] = [
  {
    in: 'MAINTENANCE_HOLD',
    from: 'broken-node',
    to: 'usual',
    why: 'Maintenance kills pods against their budgets.',
  },
  {
    in: 'MAINTENANCE_HOLD',
    from: 'marked-',
    to: '',
    why: 'The Node stays cordoned after the maintenance.',
  },
];
