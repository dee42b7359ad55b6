import type { Mutation } from '../mutation.ts';

/** What keeps a maintenance from doing harm. */
export const MAINTENANCE: readonly Mutation[] = [
  {
    in: 'empty',
    from: 'broken-node',
    to: 'usual',
    why: 'Maintenance kills pods against their budgets.',
  },
  {
    in: 'empty',
    from: 'marked-',
    to: '',
    why: 'The Node stays cordoned after the maintenance.',
  },
];
