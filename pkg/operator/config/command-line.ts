import { type Command, type CommanderError, Option } from 'commander';
import { configFrom, type Config } from './config.ts';
import type { FlagSection } from './flag-section.ts';
import { defaultOf, type Flag, type Program } from './flag.ts';
import { flagsWith, IGNORED_FLAGS, OWN_FLAGS } from './flags.ts';
import { FlagError } from './flag-error.ts';
import { MACHINE_LEASE } from '../../kube/leader/names.ts';
import type { TypedFlags } from './value-reader.ts';
import { formatDuration, parseDuration } from '../../apis/duration.ts';
import { parseGoInt } from '../../apis/go-number.ts';

/** What a command line came to. */
export interface ParsedCommandLine {
  readonly config: Config;
  /** One sentence for each flag that was accepted without effect, or with another value than the one given. */
  readonly warnings: readonly string[];
}

/** What follows each mistake. */
export const HELP_HINT = '(see --help for usage)';

/**
 * The flags of `program` on `command`. `act` runs with the parsed line; a FlagError ends the command with exit code 2,
 * as the original does.
 */
export function withFlags(
  command: Command,
  program: Program,
  sections: readonly FlagSection[],
  act: (parsed: ParsedCommandLine) => Promise<void>,
): Command {
  for (const flag of flagsWith(sections)) command.addOption(optionOf(flag, program));
  for (const name of IGNORED_FLAGS) command.addOption(new Option(`--${name} [value]`).hideHelp().argParser(collect));
  return command
    .allowExcessArguments(program !== 'machinist run')
    .showSuggestionAfterError()
    .showHelpAfterError(HELP_HINT)
    .configureHelp({ sortOptions: false, helpWidth: 110 })
    .action(async () => {
      const typed = new Map<string, readonly string[]>();
      for (const option of command.options) {
        const texts: unknown = command.getOptionValue(option.attributeName());
        if (Array.isArray(texts)) typed.set(option.name(), texts.map(String));
      }
      const config = parse(command, program, typed, sections);
      await act({
        config,
        warnings: [
          ...strayWords(command),
          ...warningsFor(program, typed, sections),
          ...idleIn(typed, config),
          ...adjustedIn(typed),
        ],
      });
    });
}

/**
 * Go spellings of flags: `_` for `-`, one dash, and `-v4`. Values are left alone. Of a flag that is not in the table the value is split
 * off, so that a mistyped name is compared with the known ones without it.
 */
export function normalizeFlags(argv: readonly string[], sections: readonly FlagSection[]): string[] {
  const known = new Set([...flagsWith(sections).map((flag) => flag.name), ...IGNORED_FLAGS]);
  return argv.flatMap((argument) => {
    const [, dashes, name = '', rest = ''] = /^(--?)([A-Za-z][\w-]*)(=.*)?$/s.exec(argument) ?? [];
    if (dashes === undefined) return [argument];
    const dashed = name.replaceAll('_', '-');
    if (known.has(dashed)) return [`--${dashed}${rest}`];
    if (dashes === '-' && /^v\d+$/.test(name)) return [`--v=${name.slice(1)}`];
    // As pflag does it: `-o=json`.
    if (dashes === '-' && name.length === 1 && rest !== '') return [argument.slice(0, 2), rest.slice(1)];
    return dashes === '--' && rest !== '' ? [`--${name}`, rest.slice(1)] : [argument];
  });
}

function optionOf(flag: Flag, program: Program): Option {
  const value = flag.kind === 'bool' ? '[bool]' : `<${placeholderOf(flag)}>`;
  const option = new Option(`--${flag.name} ${value}`, describe(flag, program))
    .argParser(collect)
    .helpGroup(`${flag.group}:`);
  // A bare `--leader-elect` means true; Go's `--leader-elect=false` and the more natural `--leader-elect false` both work.
  if (flag.kind === 'bool') option.preset('true');
  return flag.unused === true || !flag.programs.includes(program) ? option.hideHelp() : option;
}

function collect(text: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), text];
}

function placeholderOf(flag: Flag): string {
  if (flag.name === 'driver') return 'provider=address';
  return flag.kind === 'int' || flag.kind === 'float' ? 'n' : flag.kind;
}

function describe(flag: Flag, program: Program): string {
  const value = defaultOf(flag, program);
  return value === '' ? flag.help : `${flag.help} (default ${value})`;
}

/** The original's programs never look at them. */
function strayWords({ args }: Command): string[] {
  return args.map((word) => `${JSON.stringify(word)} is not a flag and has no effect`);
}

function parse(command: Command, program: Program, typed: TypedFlags, sections: readonly FlagSection[]): Config {
  try {
    return configFrom(program, typed, sections);
  } catch (err) {
    if (!(err instanceof FlagError)) throw err;
    return command.error(`error: ${err.message}`, { exitCode: 2, code: 'machinist.flag' });
  }
}

function warningsFor(program: Program, typed: TypedFlags, sections: readonly FlagSection[]): string[] {
  const flags = flagsWith(sections);
  return [...typed.keys()].flatMap((name) => {
    const flag = flags.find((candidate) => candidate.name === name);
    if (flag === undefined || flag.unused === true)
      return [`--${name} is accepted for compatibility and has no effect`];
    return flag.programs.includes(program) ? [] : [`--${name} has no effect in ${program}`];
  });
}

/**
 * One sentence for each flag that is of no use without another one. Only a warning: the pods of several processes may share their arguments.
 *
 * | flags                             | without                                        |
 * |-----------------------------------|------------------------------------------------|
 * | how cells are divided and limited | cells                                          |
 * | what autoscalers are shown        | a port for them                                |
 * | drivers                           | controllers of Machines, where there are others |
 */
function idleIn(typed: TypedFlags, { program, cells, autoscaler, leases }: Config): string[] {
  const isTyped = (name: string): boolean =>
    typed.has(name) && OWN_FLAGS.some((flag) => flag.name === name && flag.programs.includes(program));
  const idle = (isIdle: boolean, names: readonly string[], without: string): string[] =>
    isIdle ? names.filter(isTyped).map((name) => `--${name} has no effect without ${without}`) : [];
  return [
    ...idle(cells === undefined, ['cell-shards', 'cell-max-target-mib'], '--cells or --cell-namespaces'),
    ...idle(
      autoscaler === undefined,
      ['autoscaler-client-name', 'autoscaler-gpu-label', 'autoscaler-gpu-types'],
      '--autoscaler-grpc-address',
    ),
    ...idle(!leases.has(MACHINE_LEASE), ['driver', 'driver-qps'], 'the machine controllers; see --controllers'),
  ];
}

/** One sentence for each value that the original accepts and that is too small or too great to be obeyed. */
function adjustedIn(typed: TypedFlags): string[] {
  const tooShort = OWN_FLAGS.flatMap(({ name, atLeast }) => {
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
  const flag = OWN_FLAGS.find((candidate) => candidate.name === name);
  const text = typed.get(name)?.at(-1) ?? (flag === undefined ? '' : defaultOf(flag, 'machinist run'));
  return parseGoInt(text) ?? 0;
}

/** Exit code of a command that commander ended: 0 for help and version, 2 for what was typed wrongly. */
export function usageExitCode(err: CommanderError): number {
  return err.exitCode === 0 ? 0 : 2;
}
