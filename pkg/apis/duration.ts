/** Durations as Go's time.Duration spells them: signed 64-bit nanoseconds, `1h2m3.5s`. */

const NS_PER_MS = 1_000_000;
const NS_PER_UNIT: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1_000n,
  µs: 1_000n, // U+00B5, micro sign
  μs: 1_000n, // U+03BC, Greek letter mu
  ms: 1_000_000n,
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
};

/** A duration without sign, as a pattern that Go, CEL and JavaScript read alike. */
export const DURATION_PATTERN = '^[+]?(0|(([0-9]+([.][0-9]*)?|[.][0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$';

const WHOLE = new RegExp(DURATION_PATTERN);
const PART = /([0-9]*)(?:[.]([0-9]*))?(ns|us|µs|μs|ms|s|m|h)/gy;

const MAX_NS = 2n ** 63n;

/** Nobody writes longer ones, and exact arithmetic takes more than twice as long for twice as many digits. */
const LONGEST = 1_000;

/** Parses what Go's time.ParseDuration accepts, to nanoseconds; undefined for everything else. A fraction of a nanosecond is cut off. */
export function parseDurationNs(text: string): bigint | undefined {
  if (text.length > LONGEST) return undefined;
  const isNegative = text.startsWith('-');
  const unsigned = isNegative ? text.slice(1) : text;
  if (!WHOLE.test(unsigned) || (isNegative && unsigned.startsWith('+'))) return undefined;

  let ns = 0n;
  for (const [, whole = '', fraction = '', unit = ''] of unsigned.replace(/^[+]/, '').matchAll(PART)) {
    const unitNs = NS_PER_UNIT[unit] ?? 0n;
    ns += BigInt(whole === '' ? 0 : whole) * unitNs;
    if (fraction !== '') ns += (BigInt(fraction) * unitNs) / 10n ** BigInt(fraction.length);
  }
  if (isNegative) return ns > MAX_NS ? undefined : -ns;
  return ns >= MAX_NS ? undefined : ns;
}

/** Parses a Go duration to milliseconds, with a fraction below one; undefined when it is none. Negative ones are parsed too. */
export function parseDuration(text: string): number | undefined {
  const ns = parseDurationNs(text);
  return ns === undefined ? undefined : Number(ns) / NS_PER_MS;
}

/** Spells nanoseconds as Go's Duration.String does: `1h0m0s`, `1.5s`, `300ms`, `0s`. */
export function formatDurationNs(ns: bigint): string {
  if (ns === 0n) return '0s';
  const sign = ns < 0n ? '-' : '';
  const size = ns < 0n ? -ns : ns;
  if (size < 1_000n) return `${sign}${size}ns`;
  if (size < 1_000_000n) return `${sign}${decimal(size, 1_000n)}µs`;
  if (size < 1_000_000_000n) return `${sign}${decimal(size, 1_000_000n)}ms`;

  const minutes = size / 60_000_000_000n;
  const seconds = `${decimal(size % 60_000_000_000n, 1_000_000_000n)}s`;
  if (minutes === 0n) return `${sign}${seconds}`;
  return minutes < 60n ? `${sign}${minutes}m${seconds}` : `${sign}${minutes / 60n}h${minutes % 60n}m${seconds}`;
}

/** Spells milliseconds as Go's Duration.String does, rounded to the nanosecond. */
export function formatDuration(durationMs: number): string {
  return formatDurationNs(BigInt(Math.round(durationMs * NS_PER_MS)));
}

function decimal(value: bigint, unit: bigint): string {
  const digits = unit.toString().length - 1;
  const fraction = (value % unit).toString().padStart(digits, '0').replace(/0+$/, '');
  return fraction === '' ? `${value / unit}` : `${value / unit}.${fraction}`;
}
