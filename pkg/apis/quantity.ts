/**
 * Kubernetes quantities (`1500m`, `4Gi`, `2e3`) by value. A value is kept as an exact fraction of two integers: the
 * suffixes reach from nano to exbi, which no number of JavaScript holds without loss.
 */

interface Exact {
  readonly numerator: bigint;
  /** Positive. */
  readonly denominator: bigint;
}

const BINARY = ['Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'];
const DECIMAL: Readonly<Record<string, number>> = { n: -9, u: -6, m: -3, '': 0, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 };

const QUANTITY = /^([+-]?)([0-9]*)(?:\.([0-9]*))?(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]|[eE][+-]?[0-9]+)?$/;

/** Beyond that, a value is no amount of anything, and computing it exactly would take memory without bound. */
const MAX_EXPONENT = 100;
/** Nobody writes longer ones, and exact arithmetic takes more than twice as long for twice as many digits. */
const LONGEST = 1_000;

function parse(quantity: string | number): Exact | undefined {
  const text = String(quantity);
  const match = text.length > LONGEST ? null : QUANTITY.exec(text);
  if (match === null) return undefined;
  const [, sign = '', whole = '', fraction = '', suffix = ''] = match;
  if (whole === '' && fraction === '') return undefined;

  const digits = BigInt(whole + fraction) * (sign === '-' ? -1n : 1n);
  const binary = BINARY.indexOf(suffix);
  if (binary !== -1)
    return { numerator: digits << BigInt(10 * (binary + 1)), denominator: 10n ** BigInt(fraction.length) };

  const exponent = DECIMAL[suffix] ?? Number(suffix.slice(1));
  if (Math.abs(exponent) > MAX_EXPONENT) return undefined;
  const power = exponent - fraction.length;
  return power >= 0
    ? { numerator: digits * 10n ** BigInt(power), denominator: 1n }
    : { numerator: digits, denominator: 10n ** BigInt(-power) };
}

export function isQuantity(value: string | number): boolean {
  return parse(value) !== undefined;
}

/** The nearest number to a quantity, in base units (`500m` is 0.5, `1Ki` is 1024); undefined when it is none. */
export function quantityAsNumber(quantity: string | number): number | undefined {
  const exact = parse(quantity);
  return exact === undefined ? undefined : Number(exact.numerator) / Number(exact.denominator);
}

/** Negative, zero or positive as `a` is less than, equal to or more than `b`; undefined when one of them is no quantity. */
export function compareQuantities(a: string | number, b: string | number): number | undefined {
  const left = parse(a);
  const right = parse(b);
  if (left === undefined || right === undefined) return undefined;
  const difference = left.numerator * right.denominator - right.numerator * left.denominator;
  if (difference === 0n) return 0;
  return difference < 0n ? -1 : 1;
}

/** True when both are the same amount, however spelled (`1000m` and `1`); what is no quantity equals its own text only. */
export function quantitiesEqual(a: string | number, b: string | number): boolean {
  const order = compareQuantities(a, b);
  return order === undefined ? String(a) === String(b) : order === 0;
}

/** What is left of `a` without `b`, at least nothing, to the thousandth below; undefined when one of them is no quantity. */
export function subtractQuantities(a: string | number, b: string | number): string | undefined {
  const left = parse(a);
  const right = parse(b);
  if (left === undefined || right === undefined) return undefined;
  const numerator = left.numerator * right.denominator - right.numerator * left.denominator;
  const thousandths = numerator <= 0n ? 0n : (1_000n * numerator) / (left.denominator * right.denominator);
  return thousandths % 1_000n === 0n ? String(thousandths / 1_000n) : `${thousandths}m`;
}
