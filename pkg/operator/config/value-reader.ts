import { defaultOf, type Flag, type Program } from './flag.ts';
import { type FlagValue, parseValue } from './value.ts';

/** What was typed, by flag name; a repeated flag has several texts. */
export type TypedFlags = ReadonlyMap<string, readonly string[]>;

/** Values of flags, by name. */
export interface ValueReader {
  readonly text: (name: string) => string;
  readonly number: (name: string) => number;
  readonly bool: (name: string) => boolean;
  readonly list: (name: string) => readonly string[];
}

/** Parses what was typed for `flags`. Throws FlagError. */
export function valuesOf(flags: readonly Flag[], program: Program, typed: TypedFlags): ReadonlyMap<string, FlagValue> {
  return new Map(
    flags.map((flag) => {
      const texts = typed.get(flag.name) ?? [defaultOf(flag, program)];
      return [flag.name, parseValue(flag, flag.kind === 'list' ? texts.join(',') : (texts.at(-1) ?? ''))];
    }),
  );
}

export function readerOf(values: ReadonlyMap<string, FlagValue>): ValueReader {
  return {
    text: (name) => String(values.get(name)),
    number: (name) => Number(values.get(name)),
    bool: (name) => values.get(name) === true,
    list: (name) => {
      const value = values.get(name);
      return Array.isArray(value) ? value : [];
    },
  };
}
