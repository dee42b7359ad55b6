import { availableParallelism } from 'node:os';

import type { ProgramName } from '../control-plane/programs.ts';

/** The levels of tests, in the order of their cost. */
export const LEVELS = ['unit', 'integration', 'faults', 'e2e', 'openstack'] as const;

/** One of the levels above; its project in jest has the same name. */
export type Level = (typeof LEVELS)[number];

/** Files that run only when their level is named: what takes minutes, and shows more of what others show. */
export const ONLY_WHEN_NAMED: readonly string[] = [
  'test/integration/cluster-api-programs.test.ts',
  'test/openstack/scale.test.ts',
];

/** Files that run only where IronCore's own programs were built: by `npm run test:ironcore`. */
export const WITH_IRONCORE: readonly string[] = ['test/integration/ironcore-original.test.ts'];

/** Files that run only where there is a Chromium; in CI there has to be one. */
export const WITH_CHROMIUM: readonly string[] = ['test/e2e/status-page.test.ts'];

/** Tests with a real provider of machine-controller-manager. */
export interface ProviderTests {
  readonly level: Level;
  readonly files: readonly string[];
}

/** By providers; they run only where the driver of the provider was made: by `npm run test:providers`. */
export const WITH_MCM_PROVIDERS: Readonly<Record<'aws' | 'openstack', ProviderTests>> = {
  aws: {
    level: 'integration',
    files: ['test/integration/mcm-provider-aws.test.ts', 'test/integration/mcm-provider-migration.test.ts'],
  },
  openstack: { level: 'openstack', files: ['test/openstack/mcm-provider.test.ts'] },
};

/** Programs that few files need: they are built for these, and not for every run with a server. */
const NEEDED_BY: readonly (readonly [ProgramName, readonly string[]])[] = [
  ['kwok', ['test/integration/kwok-driver.test.ts', 'test/e2e/demo.test.ts']],
  [
    'cluster-api',
    ['test/integration/cluster-api-contestants.test.ts', 'test/integration/cluster-api-programs.test.ts'],
  ],
  ['clusterctl', ['test/integration/cluster-api-programs.test.ts']],
];

/** Which of those programs a run of these levels needs; `jestArguments` may choose files by parts of their paths. */
export function optionalProgramsOf(levels: readonly Level[], jestArguments: readonly string[]): readonly ProgramName[] {
  return NEEDED_BY.filter(([, files]) => runsAnyOf(files, levels, jestArguments)).map(([name]) => name);
}

/** Whether a run of these levels runs any of these files. */
export function runsAnyOf(
  files: readonly string[],
  levels: readonly Level[],
  jestArguments: readonly string[],
): boolean {
  const paths = jestArguments.filter((argument) => !argument.startsWith('-'));
  return files.some(
    (file) =>
      levels.some((level) => file.startsWith(`test/${level}/`)) &&
      (paths.length === 0 ? !ONLY_WHEN_NAMED.includes(file) : paths.some((part) => file.includes(part))),
  );
}

/** Levels that run in one jest. */
export interface Run {
  readonly levels: readonly Level[];
  /** Whether a real control plane must be built first. */
  readonly needsControlPlane: boolean;
  /** Files that run side by side. */
  readonly workers: number;
}

/** With a single worker, jest runs all files in its own process, which then keeps the modules of all of them. */
const LEAST_WORKERS = 2;

/**
 * What is run for these levels, side by side. Tests with a server wait for two thirds of their time, and six of their files leave cores of a
 * small machine idle: the unit level, which never waits, takes what they leave. Alone, it takes all cores.
 */
export function runsOf(levels: readonly Level[], cores: number = availableParallelism()): readonly Run[] {
  const withServer = levels.filter((level) => level !== 'unit');
  const ofUnits = withServer.length === 0 ? cores : Math.floor(cores / 2);
  const runs: Run[] = [
    {
      levels: levels.filter((level) => level === 'unit'),
      needsControlPlane: false,
      workers: Math.max(LEAST_WORKERS, ofUnits),
    },
    { levels: withServer, needsControlPlane: true, workers: 6 },
  ];
  return runs.filter((run) => run.levels.length > 0);
}
