import type { Mutation } from '../mutation.ts';

const READING = ['pkg/apis/cluster-api/reading.test.ts'];
const DELETION = ['pkg/controllers/cluster-api/deletion-steps.test.ts'];

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
  {
    file: 'pkg/controllers/cluster-api/deletion-steps.ts',
    from: '    located,\n',
    to: '',
    why: 'A drain is left out because a cache is not filled yet.',
    tests: DELETION,
  },
  {
    file: 'pkg/controllers/cluster-api/deletion-steps.ts',
    from: 'if (await externals.isGone(machine, reference, signal)) return next;',
    to: 'return next;',
    why: 'A Machine goes because a cache is late, and its server stays.',
    tests: DELETION,
  },
  {
    file: 'pkg/controllers/cluster-api/creation-steps.ts',
    from: 'if (status.nodeRef === undefined && holder !== undefined) {',
    to: 'if (false) {',
    why: 'The deletion of a copy of a Machine takes the Node of the first one along.',
    tests: ['pkg/controllers/cluster-api/creation-steps.test.ts'],
  },
  {
    file: 'pkg/controllers/cluster-api/creation-steps.ts',
    from: " || infrastructure.kind === 'foreign'",
    to: '',
    why: 'The Node of a server goes with a Machine that is not its owner.',
    tests: ['pkg/controllers/cluster-api/creation-steps.test.ts'],
  },
  {
    file: 'pkg/drivers/cluster-api/driver.ts',
    from: 'const isLeft = machineIn(pieces) === undefined;',
    to: 'const isLeft = true;',
    why: 'A VM that its provider has not finished counts as made, and its failure is not seen.',
    tests: ['pkg/drivers/cluster-api/driver.test.ts'],
  },
  {
    file: 'pkg/controllers/cluster-api/ownership.ts',
    from: 'controller.uid !== uid && !isCreator',
    to: 'false',
    why: 'The server of one Machine is deleted with another.',
    tests: ['pkg/controllers/cluster-api/ownership.test.ts'],
  },
  {
    file: 'pkg/controllers/cluster-api/node-change.ts',
    from: 'domain === one || domain.endsWith(`.${one}`)',
    to: 'domain.endsWith(one)',
    why: 'Any label reaches Nodes whose domain ends like one that may.',
    tests: ['pkg/controllers/cluster-api/node-change.test.ts'],
  },
  {
    file: 'pkg/controllers/cluster-api/served.ts',
    from: "filter === '' || ",
    to: 'true || ',
    why: 'Machines that another manager looks after are fought over.',
    tests: ['pkg/controllers/cluster-api/served.test.ts'],
  },
  {
    file: 'pkg/controllers/cluster-api/machine-controller.ts',
    from: 'if (!isBeingDeleted(observed) && !isHeld(observed)) {',
    to: 'if (false) {',
    why: 'A server is made for a Machine that may vanish without taking it along.',
    tests: ['pkg/controllers/cluster-api/machine-controller.test.ts'],
  },
  {
    file: 'pkg/drain/pods.ts',
    from: '.toSorted((a, b) => a - b)',
    to: '',
    why: 'Pods that rules have go last are evicted first.',
    tests: ['pkg/drain/pods.test.ts'],
  },
  {
    file: 'pkg/controllers/machines/pod-rules.ts',
    from: 'ruleByLabel(pod) ?? ',
    to: '',
    why: 'Pods are evicted although their label says that they stay.',
    tests: ['pkg/controllers/machines/pod-rules.test.ts'],
  },
  {
    file: 'pkg/controllers/machines/pod-rules.ts',
    from: 'own(labels) && cluster(clusterLabels)',
    to: 'own(labels)',
    why: 'Rules for the Machines of one Cluster spare pods of all Clusters.',
    tests: ['pkg/controllers/machines/pod-rules.test.ts'],
  },
  {
    file: 'pkg/controllers/machines/drain-rules.ts',
    from: 'if (informer.hasSynced) return',
    to: 'if (true) return',
    why: 'Pods are evicted while it is not known which of them stay.',
    tests: ['pkg/controllers/machines/drain-rules.test.ts'],
  },
  {
    file: 'pkg/controllers/cluster-api/defaults.ts',
    from: 'const date = own ?? other;',
    to: 'const date = other ?? own;',
    why: 'Certificates are renewed too late, as the annotation of the Machine does not count.',
    tests: ['pkg/controllers/cluster-api/defaults.test.ts'],
  },
];
