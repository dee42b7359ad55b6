/** Files that this run leaves out: see hack/test/levels.ts. */
const leftOut = (process.env.MACHINIST_TEST_LEFT_OUT ?? '').split(' ').filter((file) => file !== '');

/** Tests run the very bytes that Node runs: type stripping only, no compiler. */
const common = {
  testEnvironment: '<rootDir>/hack/jest-environment.js',
  injectGlobals: false,
  extensionsToTreatAsEsm: ['.ts'],
  testPathIgnorePatterns: ['/node_modules/', '<rootDir>/dist/', ...leftOut],
  modulePathIgnorePatterns: ['<rootDir>/dist/', '<rootDir>/.demo/'],
  transform: { '^.+\\.ts$': '<rootDir>/hack/jest-strip-types.js' },
};

/** For levels whose test files leave nothing behind. */
const leavingNothing = { testEnvironment: '<rootDir>/hack/jest-leaving-nothing.js' };
/** MACHINIST_TEST_LEAKS=all: of all levels, where a busy machine takes its time to close connections of servers that were killed. */
const leavingNothingByName = process.env.MACHINIST_TEST_LEAKS === 'all' ? leavingNothing : {};

const TIMEOUT = '<rootDir>/test/env/timeout.ts';

/** Levels whose tests use the real control plane; jest starts it before the first test of any of them. */
const withControlPlane = {
  ...leavingNothingByName,
  globalSetup: '<rootDir>/test/env/global-setup.ts',
  globalTeardown: '<rootDir>/test/env/global-teardown.ts',
  setupFilesAfterEnv: [TIMEOUT],
};

function level(displayName, folders, more = {}) {
  return { ...common, ...more, displayName, testMatch: [`<rootDir>/${folders}/**/*.test.ts`] };
}

/** One project a level: `--selectProjects unit`; a path alone selects the projects that it belongs to. */
export default {
  projects: [
    level('unit', '{cmd,pkg,packages,hack,test/expect,test/crash-points,test/simulation}', {
      ...leavingNothing,
      setupFilesAfterEnv: [TIMEOUT, '<rootDir>/test/env/properties.ts'],
    }),
    level('integration', 'test/integration', withControlPlane),
    level('faults', 'test/faults', withControlPlane),
    level('e2e', 'test/e2e', withControlPlane),
    level('openstack', 'test/openstack', withControlPlane),
  ],
  coverageProvider: 'v8',
  testSequencer: '<rootDir>/hack/test/longest-first.ts',
  // What jest's loader of ES modules never frees; a worker that is started anew costs two seconds.
  workerIdleMemoryLimit: '1GB',
  // With half a second, as usual, a busy machine has workers told of as leaking that hold nothing and have not had their turn yet: one that is
  // over the limit above with its last file is even started anew, only to be ended.
  workerGracefulExitTimeout: 10_000,
  reporters: ['default', '<rootDir>/hack/summary-reporter.js'],
};
