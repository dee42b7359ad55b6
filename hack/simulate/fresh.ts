import type { WorldName } from '../../test/simulation/worlds/worlds.ts';

/** Digits of a commit that make a seed: as many as leave it an exact number with room to count on. */
const DIGITS = 7;

/** The first of the seeds of a commit, which hardly any other commit has. Throws for what is no commit. */
export function firstSeedOf(commit: string): number {
  const seed = Number.parseInt(commit.slice(0, DIGITS), 16);
  if (!/^[0-9a-f]{7,}$/.test(commit) || !Number.isSafeInteger(seed)) throw new Error(`${commit} is no commit`);
  return seed;
}

/** Worlds take their turns, those more often in which more can happen. */
const TURNS: readonly WorldName[] = [
  'machines',
  'cells',
  'autoscaler',
  'ironcore',
  'machines',
  'cells',
  'cluster-api',
  'mirantis',
];

/** The world of a seed of a commit. */
export function worldOf(seed: number): WorldName {
  return TURNS[seed % TURNS.length]!;
}

/** A fresh seed, and the world in which it was run. */
export interface FreshSeed {
  readonly seed: number;
  readonly world: WorldName;
}

/** What is said at the end of a run of fresh seeds. */
export function reportOf(run: readonly FreshSeed[], failed: readonly FreshSeed[], commit: string): readonly string[] {
  const seeds = run.length === 0 ? 'none' : `${run[0]?.seed} to ${run.at(-1)?.seed}`;
  const counts = Map.groupBy(run, ({ world }) => world);
  const worlds = [...counts].map(([world, all]) => `${all.length} of ${world}`).join(', ');
  const what = `${run.length} (${seeds}${worlds === '' ? '' : `: ${worlds}`})`;
  if (failed.length === 0) return [`fresh seeds of ${commit}: ${what}, none broke a promise`];
  return [
    `!!! FRESH SEEDS of ${commit}: ${failed.length} of ${what} BROKE A PROMISE: ${failed.map(({ seed }) => seed).join(', ')}`,
    '!!! The change need not be the reason, and is not refused for it: run them on the commit before, too.',
    ...failed.map(({ seed, world }) => `!!!   npm run simulate -- --seed ${seed} --world ${world}`),
  ];
}
