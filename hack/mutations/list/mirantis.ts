import type { Mutation } from '../mutation.ts';

const CONTROLLER = 'pkg/controllers/mirantis/controller.ts';
const ITS_TEST = ['pkg/controllers/mirantis/controller.test.ts'];

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
    from: 'if (machine.metadata.labels?.[PROVIDER_LABEL] !== PROVIDER) return stop;',
    to: '',
    why: 'Machines of other providers are taken over.',
    tests: ITS_TEST,
  },
  {
    file: 'pkg/controllers/mirantis/wanted.ts',
    from: '`kubernetes.io-cluster-${namespace}.${clusterNameOf(machine)}`',
    to: '`kubernetes.io-cluster-${clusterNameOf(machine)}`',
    why: 'Servers of a Cluster of the same name in another namespace count as nobody’s, and are deleted.',
    tests: ['pkg/controllers/mirantis/wanted.test.ts'],
  },
];
