import type { Mutation } from '../mutation.ts';

/** Cluster API. */
export const CLUSTER_API: readonly Mutation[] = [
  {
    in: 'secondsIn',
    from: 'ceil',
    to: 'trunc',
    why: 'A drain that may take half a second takes for ever.',
  },
  {
    in: 'machineStatusTo',
    from: ': nodeInfo === undefined ? undefined : system',
    to: '',
    why: 'Each sign of life of a Node is a write of its Machine that changes nothing.',
  },
  {
    in: 'withCluster',
    from: '?.apiVersion === apiVersion',
    to: ' !== undefined',
    why: 'The garbage collector does not find the owner once its version is gone.',
  },
  {
    in: 'contractOf',
    from: 'newestFirst',
    to: '',
    why: 'Objects are read at an older version than the one that follows the contract best.',
  },
  {
    in: 'readBootstrap',
    from: 'v1beta2',
    to: 'v1beta1',
    why: 'A machine is begun before its bootstrap data is there.',
  },
  {
    in: 'isEmpty',
    from: ' || node.metadata.uid !== nodeUID',
    to: '',
    why: 'A server goes with the Pods of a Node that has registered anew since it was drained.',
  },
  {
    in: 'resolveNodeRef',
    from: ")) return { kind: 'found', node: live };",
    to: ")) return { kind: 'gone' };",
    why: 'A server goes undrained because its kubelet has registered anew.',
  },
  {
    in: 'AFTER_DRAIN',
    from: 'OF_PRE_TERMINATE,',
    to: '',
    why: 'A Node is drained again after an outage although hooks hold its machine that need it without Pods.',
  },
  {
    in: 'isIn',
    from: 'domain === one || domain.endsWith(`.${one}`)',
    to: 'domain.endsWith(one)',
    why: 'Any label reaches Nodes whose domain ends like one that may.',
  },
  {
    in: 'servedWith',
    from: "filter === '' ||",
    to: 'true || ',
    why: 'Machines that another manager looks after are fought over.',
  },
  {
    in: 'certificatesExpiryOf',
    from: 'own ?? other',
    to: 'other ?? own',
    why: 'Certificates are renewed too late, as the annotation of the Machine does not count.',
  },
];
