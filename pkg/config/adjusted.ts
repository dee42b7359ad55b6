import { formatDuration, parseDuration } from '../apis/duration.ts';
import { parseGoInt } from '../apis/go-number.ts';
import type { TypedFlags } from './config.ts';
import { defaultOf, FLAGS } from './flags.ts';

/** One sentence for each value that the original accepts and that is too small or too great to be obeyed. */
export function adjustedIn(typed: TypedFlags): string[] {
  const tooShort = FLAGS.flatMap(({ name, atLeast }) => {
    const text = typed.get(name)?.at(-1);
    if (text === undefined || atLeast === undefined) return [];
    const ms = parseDuration(text);
    if (ms === undefined || ms >= atLeast) return [];
    return [`--${name}=${text} is too short, using the minimum of ${formatDuration(atLeast)}`];
  });
  const up = margin(typed, 'safety-up');
  const down = margin(typed, 'safety-down');
  if (down <= up) return tooShort;
  return [
    ...tooShort,
    `--safety-down=${down} is greater than --safety-up, so a frozen MachineSet would be unfrozen only below its own size; using ${up}`,
  ];
}

function margin(typed: TypedFlags, name: string): number {
  const flag = FLAGS.find((candidate) => candidate.name === name);
  const text = typed.get(name)?.at(-1) ?? (flag === undefined ? '' : defaultOf(flag, 'machinist run'));
  return parseGoInt(text) ?? 0;
}
