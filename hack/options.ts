import path from 'node:path';

import { Command, CommanderError, Option } from 'commander';

import { usageExitCode, HELP_HINT } from '../pkg/operator/config/command-line.ts';
import { count } from '../pkg/drivers/command.ts';

/** One option of a script: `--name <value>`, `--name`, or the words that belong to no option. */
export interface ScriptOption<T> {
  readonly takes?: 'nothing' | 'words';
  readonly placeholder: string;
  readonly description: string;
  readonly parse: (text: string) => T;
  /** Its value when it is left out. */
  readonly otherwise: T;
}

/** The options of a script by name; `managerFlags` is typed as `--manager-flags`. */
type ScriptOptions = Readonly<Record<string, ScriptOption<unknown>>>;

/** What was typed, or stands for it. */
type Values<O extends ScriptOptions> = { readonly [K in keyof O]: O[K] extends ScriptOption<infer T> ? T : never };

/** An option that takes a whole number of at least 0. */
export function number(description: string): ScriptOption<number | undefined>;
export function number(description: string, otherwise: number): ScriptOption<number>;
export function number(description: string, otherwise?: number): ScriptOption<number | undefined> {
  return { placeholder: 'n', description, parse: count, otherwise };
}

/** An option that takes any text. */
export function text(description: string): ScriptOption<string | undefined>;
export function text(description: string, otherwise: string): ScriptOption<string>;
export function text(description: string, otherwise?: string): ScriptOption<string | undefined> {
  return { placeholder: 'text', description, parse: (typed) => typed, otherwise };
}

/** An option that takes nothing: it is there or not. */
export function flag(description: string): ScriptOption<boolean> {
  return { takes: 'nothing', placeholder: '', description, parse: () => true, otherwise: false };
}

/** Arguments that belong to no option. */
export function positionals(placeholder: string, description: string): ScriptOption<readonly string[]> {
  return { takes: 'words', placeholder, description, parse: (typed) => [typed], otherwise: [] };
}

/** The options in `argv`. Throws CommanderError, when it has said what was typed wrongly or given the help asked for. */
export function parseOptions<O extends ScriptOptions>(description: string, options: O, argv: readonly string[]) {
  const script = path.relative(process.cwd(), process.argv[1] ?? '');
  const command = new Command(`node ${script}`)
    .description(description)
    .allowExcessArguments(false)
    .showHelpAfterError(HELP_HINT)
    .exitOverride();
  for (const [name, { takes, placeholder, description: what, parse, otherwise }] of Object.entries(options)) {
    if (takes === 'words') command.argument(`[${placeholder}...]`, what);
    else if (takes === 'nothing') command.option(`--${dashed(name)}`, what, false);
    else {
      const option = new Option(`--${dashed(name)} <${placeholder}>`, what).argParser(parse);
      command.addOption(otherwise === undefined ? option : option.default(otherwise));
    }
  }
  command.parse([...argv], { from: 'user' });
  // Made by the parsers of these options, and camel-cased as their names.
  const typed = command.opts<Partial<Values<O>>>();
  const valueOf = (name: string): unknown => (options[name]?.takes === 'words' ? command.args : typed[name]);
  return Object.fromEntries(Object.keys(options).map((name) => [name, valueOf(name)])) as Values<O>;
}

/** The options of this process. Ends it for `--help`, and with exit code 2 for what was typed wrongly. */
export function readOptions<O extends ScriptOptions>(description: string, options: O): Values<O> {
  try {
    return parseOptions(description, options, process.argv.slice(2));
  } catch (err) {
    if (!(err instanceof CommanderError)) throw err;
    return process.exit(usageExitCode(err));
  }
}

function dashed(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
