/** Digits of a commit that make a seed: as many as leave it an exact number with room to count on. */
const DIGITS = 7;

/** The first of the seeds of a commit, which hardly any other commit has. Throws for what is no commit. */
export function firstSeedOf(commit: string): number {
  const seed = Number.parseInt(commit.slice(0, DIGITS), 16);
  if (!/^[0-9a-f]{7,}$/.test(commit) || !Number.isSafeInteger(seed)) throw new Error(`${commit} is no commit`);
  return seed;
}

/** What is said at the end of a run of fresh seeds. */
export function reportOf(run: readonly number[], failed: readonly number[], commit: string): readonly string[] {
  const seeds = run.length === 0 ? 'none' : `${run[0]} to ${run.at(-1)}`;
  if (failed.length === 0) return [`fresh seeds of ${commit}: ${run.length} (${seeds}), none broke a promise`];
  return [
    `!!! FRESH SEEDS of ${commit}: ${failed.length} of ${run.length} (${seeds}) BROKE A PROMISE: ${failed.join(', ')}`,
    '!!! The change need not be the reason, and is not refused for it: run them on the commit before, too.',
    ...failed.map((seed) => `!!!   npm run simulate -- --seed ${seed} --shrink 60`),
  ];
}
