import { availableParallelism } from 'node:os';

/** The levels of tests, in the order of their cost. */
export const LEVELS = ['unit', 'integration', 'faults', 'e2e', 'openstack'] as const;

/** One of the levels above; its project in jest has the same name. */
export type Level = (typeof LEVELS)[number];

/** Files that run only when their level is named: what takes minutes, and shows more of what others show. */
export const ONLY_WHEN_NAMED: readonly string[] = ['test/openstack/scale.test.ts'];

/** Levels that run in one jest. */
export interface Run {
  readonly levels: readonly Level[];
  /** Whether a real control plane must be built first. */
  readonly needsControlPlane: boolean;
  /** Files that run side by side. */
  readonly workers: number;
}

/**
 * What is run for these levels, and in which order: the unit level first, so that a plain mistake is seen at once, then all others
 * together, so that both cores of a small machine have work until the end. Their tests wait for half of their time: three files keep two
 * cores busy. Four do too, and take no less than the CPU time; what is left over is for a host that others share.
 */
export function runsOf(levels: readonly Level[], cores: number = availableParallelism()): readonly Run[] {
  const withServer = levels.filter((level) => level !== 'unit');
  const runs: Run[] = [
    { levels: levels.filter((level) => level === 'unit'), needsControlPlane: false, workers: Math.max(1, cores) },
    { levels: withServer, needsControlPlane: true, workers: 3 },
  ];
  return runs.filter((run) => run.levels.length > 0);
}
