import type { Mutation } from '../mutation.ts';

/** What metrics say: a figure that is wrong misleads more than one that is missing. */
export const MONITORING: readonly Mutation[] = [
  {
    in: 'eachMetric',
    from: 'failures.failed(name, err);',
    to: 'throw err;',
    why: 'One metric that cannot be read fails the whole scrape.',
  },
  {
    in: 'Drains.blocked',
    from: ': force === undefined ? forceAtMs : undefined',
    to: '',
    why: 'A drain whose pods are deleted already is shown as one that waits until then.',
    tests: ['drain.test.ts'],
  },
];
