import type { Mutation } from '../mutation.ts';

const READING = ['pkg/apis/cluster-api/reading.test.ts'];

/** Cluster API. */
export const CLUSTER_API: readonly Mutation[] = [
  {
    file: 'pkg/apis/cluster-api/contract.ts',
    from: '.toSorted(newestFirst)',
    to: '.toSorted()',
    why: 'Objects are read at an older version than the one that follows the contract best.',
    tests: ['pkg/apis/cluster-api/contract.test.ts'],
  },
  {
    file: 'pkg/apis/cluster-api/infrastructure.ts',
    from: "(contract === 'v1beta2' ? status : spec)['failureDomain']",
    to: "status['failureDomain']",
    why: 'The failure domain that a provider of the older contract has used is not seen.',
    tests: READING,
  },
  {
    file: 'pkg/apis/cluster-api/bootstrap.ts',
    from: "contract === 'v1beta2'",
    to: "contract === 'v1beta1'",
    why: 'A machine is begun before its bootstrap data is there.',
    tests: READING,
  },
];
