import { defineConfig } from 'oxlint';

/**
 * A folder of pkg imports only from tiers before its own in this list; folders of one tier do not know each other.
 * docs/development/architecture.md says what each is for.
 */
const TIERS = [
  ['apis'],
  ['clock'],
  ['log'],
  ['metrics'],
  ['gate'],
  ['kube', 'driver'],
  ['cache', 'events', 'leader', 'health', 'ironcore-runtime'],
  ['workqueue', 'activity'],
  ['reconcile', 'targets', 'drivers', 'indexes', 'conformance'],
  ['drain'],
  ['process', 'config'],
  ['preflight'],
  ['operator'],
  ['controllers'],
  ['autoscaler'],
];

/** The same inside pkg/controllers: what controllers share lies below them, and no controller knows another. */
const CONTROLLER_TIERS = [
  ['machines', 'class-secrets'],
  ['vms'],
  ['replicas'],
  [
    'machine',
    'machine-set',
    'machine-deployment',
    'machine-class',
    'secret',
    'safety',
    'mirantis',
    'cluster-api',
    'ironcore',
  ],
];

/** The same inside the machine controller, whose steps stand in folders by concern. */
const MACHINE_TIERS = [
  ['calls', 'tokens', 'failure', 'identity'],
  ['node', 'drain'],
  ['in-place', 'preservation', 'maintenance'],
  ['explain', 'health', 'creation', 'deletion'],
  ['record'],
];

/** What no folder of pkg imports. */
const ABOVE_PKG = ['cmd', 'hack', 'test'];
/** Generated code has folders of the wire's names. */
const EXCEPT = ['!**/gen/**'];

const CLIENT_NODE = {
  name: '@kubernetes/client-node',
  allowTypeImports: true,
  message: 'Only pkg/kube/config.ts loads client-node at run time; elsewhere import its types.',
};

/** Each folder, with what it must not import: the others of its tier, and the tiers after it. */
function laterThan(tiers: readonly (readonly string[])[]): { folder: string; later: string[] }[] {
  return tiers.flatMap((tier, i) =>
    tier.map((folder) => ({
      folder,
      later: tiers
        .slice(i)
        .flat()
        .filter((other) => other !== folder),
    })),
  );
}

function layer(folder: string, later: readonly string[]) {
  const message = `${folder} imports only from the tiers before it (oxlint.config.ts).`;
  const patterns = [{ group: [...later, ...EXCEPT], message }];
  return {
    files: [`${folder}/**`],
    rules: { 'typescript/no-restricted-imports': ['error', { paths: [CLIENT_NODE], patterns }] },
  };
}

const everywhere = (folders: readonly string[]): string[] => folders.map((folder) => `**/${folder}/**`);
const tiersOfPkg = laterThan(TIERS).map(({ folder, later }) => ({ folder, later: [...later, ...ABOVE_PKG] }));
const aboveControllers = tiersOfPkg.find(({ folder }) => folder === 'controllers')?.later ?? [];
/** A controller's folder is imported from its neighbours as `../machine-set/`, from their folders as `../../machine-set/`. */
const aboveController = (later: readonly string[]): string[] => [
  ...everywhere(aboveControllers),
  ...later.flatMap((other) => [`../${other}/**`, `../../${other}/**`]),
];
const OTHER_CONTROLLERS = laterThan(CONTROLLER_TIERS).find(({ folder }) => folder === 'machine')?.later ?? [];
const layers = [
  ...tiersOfPkg.map(({ folder, later }) => layer(`pkg/${folder}`, everywhere(later))),
  ...laterThan(CONTROLLER_TIERS).map(({ folder, later }) => layer(`pkg/controllers/${folder}`, aboveController(later))),
  ...laterThan(MACHINE_TIERS).map(({ folder, later }) =>
    layer(`pkg/controllers/machine/${folder}`, [
      ...aboveController(OTHER_CONTROLLERS),
      ...later.map((other) => `../${other}/**`),
    ]),
  ),
];

const NETWORK = ['fetch', 'WebSocket', 'EventSource'].map((name) => ({
  name,
  message: 'Every request goes through pkg/kube or a driver, behind the gate.',
}));
const DATE = {
  name: 'Date',
  message: 'Time comes from the Clock, and is read and written by fromTimestamp and toTimestamp (pkg/clock).',
};

export default defineConfig({
  plugins: ['typescript', 'unicorn', 'import', 'promise', 'node', 'jest'],
  categories: { correctness: 'error', suspicious: 'error' },
  ignorePatterns: [
    'node_modules',
    'dist',
    'examples',
    'pkg/driver/grpc/gen',
    'pkg/autoscaler/gen',
    'pkg/ironcore-runtime/gen',
    '.demo',
  ],
  rules: {
    'typescript/no-explicit-any': 'error',
    'typescript/no-floating-promises': 'error',
    'typescript/no-misused-promises': 'error',
    'typescript/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
    'typescript/consistent-type-imports': 'error',
    'typescript/no-unsafe-type-assertion': 'off',
    'typescript/consistent-return': 'off',
    'no-await-in-loop': 'off',
    'no-underscore-dangle': 'off',
    eqeqeq: 'error',
    'no-console': 'error',
    'no-empty': 'error',
    'no-restricted-properties': [
      'error',
      { object: 'Date', property: 'now', message: 'Use the Clock (pkg/clock).' },
      {
        object: 'globalThis',
        property: 'fetch',
        message: 'Every request goes through pkg/kube or a driver, behind the gate.',
      },
    ],
    'import/no-cycle': 'error',
    'import/no-default-export': 'error',
    'import/no-named-as-default-member': 'off',
    'jest/no-focused-tests': 'error',
    'jest/no-disabled-tests': 'error',
    'jest/expect-expect': 'off',
    'unicorn/consistent-function-scoping': 'off',
  },
  overrides: [
    { files: ['pkg/clock/*.ts', 'hack/**', 'test/**'], rules: { 'no-restricted-properties': 'off' } },
    { files: ['pkg/**'], rules: { 'no-restricted-globals': ['error', ...NETWORK, DATE] } },
    { files: ['cmd/**'], rules: { 'no-restricted-globals': ['error', DATE] } },
    { files: ['pkg/clock/**', 'pkg/**/*.test.ts'], rules: { 'no-restricted-globals': ['error', ...NETWORK] } },
    { files: ['cmd/**/*.test.ts'], rules: { 'no-restricted-globals': 'off' } },
    {
      files: ['*.config.js', '*.config.ts', 'hack/**/*.js', 'hack/**/*.cjs'],
      rules: { 'import/no-default-export': 'off', 'no-console': 'off' },
    },
    { files: ['cmd/**', 'hack/**'], rules: { 'no-console': 'off' } },
    ...layers,
    { files: ['pkg/**/*.test.ts', 'pkg/kube/config.ts'], rules: { 'typescript/no-restricted-imports': 'off' } },
  ] as never, // the type of a rule's options is narrower than what the linter takes
});
