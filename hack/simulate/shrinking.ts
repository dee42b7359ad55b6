/** Long enough for a dozen runs of a seed. */
const SHRINK_S = 60;

/** For how many seconds a seed with findings is simplified: one that is run alone, unless its whole trace is asked for. */
export function secondsToShrink({
  shrink,
  seed,
  trace,
}: {
  readonly shrink: number | undefined;
  readonly seed: number | undefined;
  readonly trace: string | undefined;
}): number {
  return shrink ?? (seed !== undefined && trace === undefined ? SHRINK_S : 0);
}
