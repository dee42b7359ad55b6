import type { Mutation } from '../mutation.ts';

const CONTROLLER = 'pkg/controllers/mirantis/machine-controller.ts';
const ITS_TEST = ['pkg/controllers/mirantis/machine-controller.test.ts'];

const POOLS = 'pkg/controllers/mirantis/pool-controller.ts';
const TEST_OF_POOLS = ['pkg/controllers/mirantis/pool-controller.test.ts'];
const TEST_OF_CLUSTERS = ['pkg/controllers/mirantis/cluster-controller.test.ts'];

/** The front end for Mirantis Container Cloud. */
export const MIRANTIS: readonly Mutation[] = [
  {
    file: CONTROLLER,
    from: 'if (!isHeld(machine)) {',
    to: 'if (false) {',
    why: 'A Machine is made for an object that may vanish without taking it along.',
    tests: ITS_TEST,
  },
  {
    file: CONTROLLER,
    from: "if (!(await this.#isGone(machine, signal))) return lookAgain('the cache to show its Machine');\n    const { uid",
    to: 'const { uid',
    why: 'An object is deleted because a cache is late.',
    tests: ITS_TEST,
  },
  {
    file: CONTROLLER,
    from: '?.startsWith(noteOf(machine)) === true ||',
    to: ' !== undefined ||',
    why: 'An object that was restored from a backup is deleted.',
    tests: ITS_TEST,
  },
  {
    file: CONTROLLER,
    from: 'if (!isServed(machine)) return stop;',
    to: '',
    why: 'Machines of other providers are taken over.',
    tests: ITS_TEST,
  },
  {
    file: 'pkg/operator/cluster-caches.ts',
    from: 'hold.failed(isRefusal(err) ? told(err) : err)',
    to: 'hold.failed(err)',
    why: 'Readiness says "404 page not found" of a definition that is missing.',
    tests: ['pkg/operator/cluster-caches.test.ts'],
  },
  {
    file: 'cmd/machinist/preflight/findings.ts',
    from: "status: lost === undefined ? 'fail' : 'warn', detail: `${name} is not served",
    to: "status: 'warn', detail: `${name} is not served",
    why: 'Preflight passes although the front end cannot start.',
    tests: ['cmd/machinist/preflight/findings.test.ts'],
  },
  {
    file: 'pkg/controllers/mirantis/wanted.ts',
    from: '`kubernetes.io-cluster-${namespace}.${clusterNameOf(holder)}`',
    to: '`kubernetes.io-cluster-${clusterNameOf(holder)}`',
    why: 'Servers of a Cluster of the same name in another namespace count as nobody’s, and are deleted.',
    tests: ['pkg/controllers/mirantis/wanted.test.ts'],
  },
  {
    file: POOLS,
    from: 'if (!isHeld(pool)) {',
    to: 'if (false) {',
    why: 'A MachineDeployment is made for a pool that may vanish without taking it along.',
    tests: TEST_OF_POOLS,
  },
  {
    file: POOLS,
    from: "if (finalizers.includes(ORPHAN_FINALIZER)) return waitFor('its MachineDeployment to be orphaned');",
    to: '',
    why: 'The Machines of a pool that was deleted with --cascade=orphan are deleted.',
    tests: TEST_OF_POOLS,
  },
  {
    file: 'pkg/controllers/mirantis/machine-controller.ts',
    from: 'isOfPool(machine) ||',
    to: '',
    why: 'A Machine of a pool that is gone is made once more, outside of the pool.',
    tests: TEST_OF_POOLS,
  },
  {
    file: 'pkg/controllers/mirantis/pool-wanted.ts',
    from: 'if (known !== String(asked)) return { scaleTo: asked };',
    to: 'if (known === undefined) return { scaleTo: asked };',
    why: 'A pool that is scaled is set back to what an autoscaler chose.',
    tests: ['pkg/controllers/mirantis/pool-wanted.test.ts'],
  },
  {
    file: 'pkg/controllers/mirantis/cluster-wanted.ts',
    from: 'if (isHeld || !isPausedHere)',
    to: 'if (isHeld)',
    why: 'A rollout that a user has paused goes on.',
    tests: TEST_OF_CLUSTERS,
  },
  {
    file: 'pkg/controllers/mirantis/clusters.ts',
    from: '(value === undefined || this.inMaintenance(cluster).length > 0)',
    to: '(value !== undefined && this.inMaintenance(cluster).length > 0)',
    why: 'A value that cannot be read lets rollouts of a Cluster in maintenance go on.',
    tests: TEST_OF_CLUSTERS,
  },
  {
    file: 'pkg/controllers/machine/node/allowed-labels.ts',
    from: 'all.filter((policy) => concerns(policy, machine))',
    to: 'all',
    why: 'A Cluster limits the labels of all the others of its namespace.',
    tests: ['pkg/controllers/machine/node/allowed-labels.test.ts'],
  },
];
