import { readdirSync } from 'node:fs';
import path from 'node:path';

import { defineConfig } from 'oxlint';

/**
 * A folder of pkg imports only from tiers before its own in this list; folders of one tier do not know each other.
 * docs/development/architecture.md says what each is for.
 */
export const TIERS = [
  ['apis'],
  ['base'],
  ['kube'],
  ['driver', 'health'],
  ['work', 'drivers'],
  ['drain'],
  ['operator'],
  ['controllers'],
  ['autoscaler', 'fleet'],
  ['status-page'],
  ['worlds'],
];

/** Folders of pkg that only commands import: no other folder of pkg knows a provider, or how drivers are proven. */
const FOR_COMMANDS = ['drivers', 'driver/conformance'];

/** The APIs that are served beside ours: each has a folder in pkg/worlds, and none knows another. */
export const APIS = readdirSync(path.join(import.meta.dirname, 'pkg/worlds'), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);

/** The order in the folder of each of them, as far as it has these. */
export const API_TIERS = [['api'], ['runtime'], ['controllers', 'driver'], ['describe']];

/** Folders with an order of their own inside. What stands flat in one is bound by the order around it alone. */
export const INNER_TIERS: Readonly<Record<string, readonly (readonly string[])[]>> = {
  'pkg/base': [['clock'], ['random'], ['log'], ['metrics']],
  'pkg/kube': [['gate'], ['client'], ['cache', 'events', 'leader'], ['targets']],
  'pkg/driver': [['grpc'], ['conformance']],
  'pkg/work': [['workqueue', 'activity'], ['reconcile']],
  'pkg/operator': [['indexes'], ['process', 'config'], ['preflight'], ['cached'], ['cells']],
  'pkg/worlds': [APIS],
  ...Object.fromEntries(APIS.map((api) => [`pkg/worlds/${api}`, API_TIERS])),
  /** No provider knows another. */
  'packages/providers': [['local', 'sim', 'kwok', 'iri']],
  /** What controllers share lies below them, and no controller knows another. */
  'pkg/controllers': [
    ['machine-facts', 'class-secrets'],
    ['vms'],
    ['replicas'],
    ['machine', 'machine-set', 'machine-deployment', 'machine-class', 'secret', 'role-binding', 'safety'],
  ],
  /** The steps of the machine controller stand in folders by concern. */
  'pkg/controllers/machine': [
    ['calls', 'tokens', 'failure', 'identity'],
    ['node', 'drain'],
    ['node-hold'],
    ['in-place', 'preservation', 'maintenance'],
    ['health', 'creation', 'deletion'],
    ['preparation'],
    ['explain'],
    ['record'],
  ],
  'pkg/controllers/machine-deployment': [['sets'], ['scaling'], ['node-marks'], ['rollout'], ['in-place']],
  'pkg/controllers/safety': [['orphan-vms', 'overshoot', 'unmanaged-nodes']],
};

/** What no folder of pkg imports. */
const ABOVE_PKG = ['cmd', 'hack', 'test', 'packages'];
/**
 * Folders that may import what the order around them refuses: the drivers for machines of other APIs are made of what all drivers share; the
 * simulated runtime of IronCore speaks its messages.
 */
const EXCEPTIONS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(APIS.map((api) => [`pkg/worlds/${api}/driver`, '**/drivers/**'])),
  'packages/providers/iri': '**/worlds/**',
};

/** Generated code has folders of the wire's names. */
const EXCEPT = ['!**/gen/**'];

const CLIENT_NODE = {
  name: '@kubernetes/client-node',
  allowTypeImports: true,
  message: 'Only pkg/kube/client/config.ts loads client-node at run time; elsewhere import its types.',
};

/** What a simulation could not repeat. */
const CHANCE = {
  name: 'node:crypto',
  importNames: ['randomBytes', 'randomInt', 'randomUUID', 'getRandomValues'],
  message: 'Randomness is handed down from the operator (pkg/base/random).',
};
const TIMERS = ['node:timers', 'node:timers/promises'].map((name) => ({
  name,
  message: 'Timers are those of the Clock (pkg/base/clock).',
}));
/** What no process that is simulated runs, or is started before its time begins. */
const OF_THE_HOST = [
  'pkg/drivers',
  'packages/providers',
  'pkg/driver/conformance',
  ...APIS.flatMap((api) => [`pkg/worlds/${api}/runtime`, `pkg/worlds/${api}/driver`]),
  'pkg/base/random',
  'pkg/base/clock',
];

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

const everywhere = (folders: readonly string[]): string[] => folders.map((folder) => `**/${folder}/**`);
/** By folder, the imports that it refuses; those inside a folder refuse what that one does, too. */
const refused = new Map(
  laterThan(TIERS).map(({ folder, later }) => {
    const forCommands = FOR_COMMANDS.filter((other) => other !== folder);
    return [`pkg/${folder}`, everywhere([...new Set([...later, ...forCommands, ...ABOVE_PKG])])];
  }),
);
// Made of the same as the drivers for clouds, and of what those share.
refused.set('packages/providers', refused.get('pkg/drivers') ?? []);
for (const [parent, tiers] of Object.entries(INNER_TIERS)) {
  for (const { folder, later } of laterThan(tiers)) {
    // From its files a neighbour is `../machine-set/`, from those of its folders `../../machine-set/`.
    const neighbours = later.flatMap((other) => [`../${other}/**`, `../../${other}/**`]);
    const around = (refused.get(parent) ?? []).map((pattern) =>
      pattern.startsWith('../') ? `../${pattern}` : pattern,
    );
    const known = `${parent}/${folder}`;
    refused.set(
      known,
      [...around, ...neighbours].filter((pattern) => pattern !== EXCEPTIONS[known]),
    );
  }
}
const isOfTheHost = (folder: string): boolean =>
  OF_THE_HOST.some((host) => folder === host || folder.startsWith(`${host}/`)) && folder !== 'packages/providers/sim';
const importsOf = (folder: string, patterns: readonly string[]) => {
  const message = `${folder} imports only from the tiers before it (oxlint.config.ts).`;
  return {
    files: [`${folder}/**`],
    rules: {
      'typescript/no-restricted-imports': [
        'error',
        {
          paths: isOfTheHost(folder) ? [CLIENT_NODE] : [CLIENT_NODE, CHANCE, ...TIMERS],
          patterns: [{ group: [...patterns, ...EXCEPT], message }],
        },
      ],
    },
  };
};
const layers = [...refused].map(([folder, patterns]) => importsOf(folder, patterns));

const NETWORK = ['fetch', 'WebSocket', 'EventSource'].map((name) => ({
  name,
  message: 'Every request goes through pkg/kube/client or a driver, behind the gate.',
}));
const HOST_TIMERS = ['setTimeout', 'setInterval', 'setImmediate'].map((name) => ({
  name,
  message: 'Timers are those of the Clock (pkg/base/clock).',
}));
const PROPERTIES = [
  { object: 'Date', property: 'now', message: 'Use the Clock (pkg/base/clock).' },
  {
    object: 'globalThis',
    property: 'fetch',
    message: 'Every request goes through pkg/kube/client or a driver, behind the gate.',
  },
];
/** What makes markup of a text. */
const MARKUP = ['innerHTML', 'outerHTML', 'insertAdjacentHTML', 'setHTMLUnsafe', 'srcdoc'].map((property) => ({
  property,
  message: 'Names and messages of others are text, never markup (pkg/status-page/web/dom.ts).',
}));
const PROPERTIES_OF_THE_HOST = [
  { object: 'Math', property: 'random', message: 'Randomness is handed down from the operator (pkg/base/random).' },
  { object: 'performance', property: 'now', message: 'Use the Clock (pkg/base/clock).' },
];
const DATE = {
  name: 'Date',
  message: 'Time comes from the Clock, and is read and written by fromTimestamp and toTimestamp (pkg/base/clock).',
};

const TESTS = ['pkg/**/*.test.ts', 'packages/providers/**/*.test.ts'];

export default defineConfig({
  plugins: ['typescript', 'unicorn', 'import', 'promise', 'node', 'jest'],
  categories: { correctness: 'error', suspicious: 'error' },
  ignorePatterns: [
    'node_modules',
    'dist',
    'examples',
    'pkg/driver/grpc/gen',
    'pkg/autoscaler/gen',
    'pkg/worlds/ironcore/runtime/gen',
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
    'no-restricted-properties': ['error', ...PROPERTIES],
    'import/no-cycle': 'error',
    'import/no-default-export': 'error',
    'import/no-named-as-default-member': 'off',
    'jest/no-focused-tests': 'error',
    'jest/no-disabled-tests': 'error',
    'jest/no-standalone-expect': ['error', { additionalTestBlockFunctions: ['testInTurn'] }],
    'jest/expect-expect': 'off',
    'unicorn/consistent-function-scoping': 'off',
  },
  overrides: [
    {
      files: ['pkg/**', 'packages/providers/**'],
      rules: {
        'no-restricted-globals': ['error', ...NETWORK, DATE, ...HOST_TIMERS],
        'no-restricted-properties': ['error', ...PROPERTIES, ...PROPERTIES_OF_THE_HOST],
      },
    },
    {
      // Drivers are processes of their own; the others keep a process alive, or end its connections.
      files: [
        '{pkg/drivers,packages/providers,pkg/driver/conformance}/**',
        'pkg/worlds/*/{driver,runtime}/**',
        'pkg/operator/process/lifecycle.ts',
        'pkg/health/server.ts',
      ],
      rules: {
        'no-restricted-globals': ['error', ...NETWORK, DATE],
        'no-restricted-properties': ['error', ...PROPERTIES],
      },
    },
    {
      // It runs in a browser.
      files: ['pkg/status-page/web/**'],
      rules: { 'no-restricted-globals': 'off', 'no-restricted-properties': ['error', ...MARKUP] },
    },
    { files: TESTS, rules: { 'no-restricted-properties': ['error', ...PROPERTIES] } },
    { files: ['pkg/base/clock/*.ts', 'hack/**', 'test/**'], rules: { 'no-restricted-properties': 'off' } },
    { files: ['cmd/**'], rules: { 'no-restricted-globals': ['error', DATE] } },
    { files: ['pkg/base/clock/**', ...TESTS], rules: { 'no-restricted-globals': ['error', ...NETWORK] } },
    { files: ['cmd/**/*.test.ts'], rules: { 'no-restricted-globals': 'off' } },
    {
      files: ['*.config.js', '*.config.ts', 'hack/**/*.js', 'hack/**/*.cjs'],
      rules: { 'import/no-default-export': 'off', 'no-console': 'off' },
    },
    { files: ['bin/**', 'cmd/**', 'hack/**'], rules: { 'no-console': 'off' } },
    ...layers,
    { files: [...TESTS, 'pkg/kube/client/config.ts'], rules: { 'typescript/no-restricted-imports': 'off' } },
  ] as never, // the type of a rule's options is narrower than what the linter takes
});
