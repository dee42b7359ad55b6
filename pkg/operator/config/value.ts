import { isIP } from 'node:net';

import { DURATION_PATTERN, formatDuration, parseDuration } from '../../apis/duration.ts';
import { parseGoBool } from '../../apis/go-bool.ts';
import { parseGoFloat, parseGoInt } from '../../apis/go-number.ts';
import { FlagError } from './flag-error.ts';
import type { Flag } from './flag.ts';

/** A flag's value once parsed: durations in milliseconds, lists split and trimmed. */
export type FlagValue = boolean | number | string | readonly string[];

/** Parses what was typed for `flag`. Throws FlagError. */
export function parseValue(flag: Flag, text: string): FlagValue {
  const refuse = (allowed: string): never => {
    throw new FlagError(`--${flag.name}: ${JSON.stringify(text)} is not valid: expected ${allowed}`);
  };
  if (flag.oneOf !== undefined && !flag.oneOf.includes(text)) return refuse(`one of ${flag.oneOf.join(', ')}`);

  switch (flag.kind) {
    case 'bool':
      return parseGoBool(text) ?? refuse('true or false');
    case 'int':
      return inRange(flag, parseGoInt(text)) ?? refuse(`a whole number${range(flag)}`);
    case 'float':
      return inRange(flag, parseGoFloat(text)) ?? refuse(`a number${range(flag)}`);
    case 'rate': {
      const rate = parseGoFloat(text);
      // Not a number is no limit either: client-go limits only what is greater than zero.
      const isUnlimited = rate !== undefined && (rate === Infinity || Number.isNaN(rate));
      return isUnlimited ? 0 : (inRange(flag, rate) ?? refuse(`a number${range(flag)}`));
    }
    case 'duration':
      return (
        inRange({ min: 0, ...flag }, parseDuration(text)) ??
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
      return MEDIA_TYPE.test(text) ? text : refuse('a media type such as application/json');
    case 'string':
      return text;
  }
}

/** As Go's mime.ParseMediaType reads it: the part after the slash may be missing. */
const MEDIA_TYPE = /^\s*[\w!#$%&'*+.^`|~-]+(\/[\w!#$%&'*+.^`|~-]+)?\s*(;.*)?$/;

function inRange({ min = -Infinity, max = Infinity, atLeast }: Flag, value: number | undefined): number | undefined {
  if (value === undefined || !Number.isFinite(value) || value < min || value > max) return undefined;
  return Math.max(value, atLeast ?? value);
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
