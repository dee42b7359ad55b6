const MAX_INT32 = 2 ** 31 - 1;

/** A percentage in text, with digits few enough that a number holds it exactly. */
export const PERCENT_PATTERN = '^[0-9]{1,9}%$';

const PERCENT = new RegExp(PERCENT_PATTERN);

/** True for a whole number from 0 to the largest 32-bit integer. */
function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MAX_INT32;
}

/** True for what can be resolved: a count, or a percentage such as `25%`. */
export function isIntOrPercent(value: unknown): value is number | string {
  return isCount(value) || (typeof value === 'string' && PERCENT.test(value));
}

/**
 * The number that a count or percentage stands for, of `total`; undefined when it is malformed, negative or larger than
 * a 32-bit integer. A fraction that a percentage leaves is rounded as asked for.
 */
export function resolveIntOrPercent(value: unknown, total: number, rounding: 'up' | 'down'): number | undefined {
  if (isCount(value)) return value;
  if (!isIntOrPercent(value)) return undefined;

  const product = Number(String(value).slice(0, -1)) * total;
  const count = rounding === 'up' ? Math.ceil(product / 100) : Math.floor(product / 100);
  return isCount(count) ? count : undefined;
}
