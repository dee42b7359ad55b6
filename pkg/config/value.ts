import { isIP } from 'node:net';

import { DURATION_PATTERN, formatDuration, parseDuration } from '../apis/duration.ts';
import { parseGoBool } from '../apis/go-bool.ts';
import type { Flag } from './flags.ts';

/** A flag's value once parsed: durations in milliseconds, lists split and trimmed. */
export type FlagValue = boolean | number | string | readonly string[];

/** A flag or a combination of flags that cannot be obeyed; the message names flag, value and what is allowed. */
export class FlagError extends Error {
  override readonly name = 'FlagError';
}

/** Parses what was typed for `flag`. Throws FlagError. */
export function parseValue(flag: Flag, text: string): FlagValue {
  const refuse = (allowed: string): never => {
    throw new FlagError(`--${flag.name}: ${JSON.stringify(text)} is not valid, ${allowed} is expected`);
  };
  if (flag.oneOf !== undefined && !flag.oneOf.includes(text)) return refuse(`one of ${flag.oneOf.join(', ')}`);

  switch (flag.kind) {
    case 'bool':
      return parseGoBool(text) ?? refuse('true or false');
    case 'int':
      return (
        inRange(flag, /^[+-]?\d+$/.test(text) ? Number(text) : Number.NaN) ?? refuse(`a whole number${range(flag)}`)
      );
    case 'float':
      return inRange(flag, text.trim() === '' ? Number.NaN : Number(text)) ?? refuse(`a number${range(flag)}`);
    case 'duration':
      return (
        inRange(flag, parseDuration(text) ?? Number.NaN) ??
        refuse(isTooLong(text) ? LONGEST : `a duration with a unit, ${leastDuration(flag)}, such as 30s, 10m or 1h30m`)
      );
    case 'list':
      return text
        .split(',')
        .map((item) => item.trim())
        .filter((item) => item !== '');
    case 'address':
      return isIP(text) === 0 ? refuse('an IP address such as 0.0.0.0 or ::1') : text;
    case 'media-type':
      return /^[\w.+-]+\/[\w.+-]+(\s*;.*)?$/.test(text) ? text : refuse('a media type such as application/json');
    case 'string':
      return text;
  }
}

function inRange(flag: Flag, value: number): number | undefined {
  if (!Number.isFinite(value)) return undefined;
  return value < (flag.min ?? -Infinity) || value > (flag.max ?? Infinity) ? undefined : value;
}

function range({ min, max }: Flag): string {
  if (min !== undefined && max !== undefined) return ` from ${min} to ${max}`;
  if (min !== undefined) return ` of at least ${min}`;
  return max === undefined ? '' : ` of at most ${max}`;
}

/** 2^63 ns, as in Go. */
const LONGEST = 'a duration of less than 2562047h48m (292 years)';

function isTooLong(text: string): boolean {
  return parseDuration(text) === undefined && new RegExp(DURATION_PATTERN).test(text);
}

function leastDuration({ min = 0 }: Flag): string {
  return min <= 0 ? 'not negative' : `of at least ${formatDuration(min)}`;
}
