import type { Mutation } from '../mutation.ts';

/** The front end for Mirantis Container Cloud. */
export const MIRANTIS: readonly Mutation[] = [
  {
    in: 'hasHadItsMachine',
    from: '?.startsWith(noteOf(machine)) === true',
    to: ' !== undefined',
    why: 'An object that was restored from a backup is deleted.',
  },
  {
    in: 'providerSpecFor',
    from: 'namespace}.${',
    to: '',
    why: 'Servers of a Cluster of the same name in another namespace count as nobody’s, and are deleted.',
  },
  {
    in: 'replicasPlan',
    from: '!== String(asked)',
    to: '=== undefined',
    why: 'A pool that is scaled is set back to what an autoscaler chose.',
  },
  {
    in: 'MirantisClusters.holdsRollouts',
    from: '=== undefined ||',
    to: '!== undefined &&',
    why: 'A value that cannot be read lets rollouts of a Cluster in maintenance go on.',
  },
];
