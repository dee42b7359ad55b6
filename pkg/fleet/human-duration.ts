const SECONDS = { m: 60, h: 3_600, d: 86_400, y: 31_536_000 };

/** A duration in milliseconds with no more digits than somebody needs, as kubectl shows ages: `42s`, `3m20s`, `5h`, `2d3h`. */
export function humanDuration(durationMs: number): string {
  const seconds = Math.floor(durationMs / 1_000);
  const { m, h, d, y } = SECONDS;
  if (seconds < 2 * m) return `${seconds}s`;
  if (seconds < 10 * m) return two(seconds, m, 'm', 1, 's');
  if (seconds < 3 * h) return `${Math.floor(seconds / m)}m`;
  if (seconds < 8 * h) return two(seconds, h, 'h', m, 'm');
  if (seconds < 2 * d) return `${Math.floor(seconds / h)}h`;
  if (seconds < 8 * d) return two(seconds, d, 'd', h, 'h');
  if (seconds < 2 * y) return `${Math.floor(seconds / d)}d`;
  return seconds < 8 * y ? two(seconds, y, 'y', d, 'd') : `${Math.floor(seconds / y)}y`;
}

function two(seconds: number, large: number, largeUnit: string, small: number, smallUnit: string): string {
  const rest = Math.floor((seconds % large) / small);
  return `${Math.floor(seconds / large)}${largeUnit}${rest === 0 ? '' : `${rest}${smallUnit}`}`;
}
