import type { Argument, Command, Option } from 'commander';

import { isNameOf, type KindName } from '../kinds.ts';
import type { ClusterOptions } from '../options.ts';
import { ReferenceArgument } from '../reference-argument.ts';

/** What may be typed next. */
export interface Candidate {
  readonly value: string;
  readonly description?: string;
}

export interface Completion {
  readonly candidates: readonly Candidate[];
  /** A path may be typed, too. */
  readonly isPath: boolean;
}

/** What only a cluster or a kubeconfig knows. Each resolves with nothing where that cannot be read. */
export interface Lookup {
  names(kind: KindName, access: ClusterOptions): Promise<readonly string[]>;
  namespaces(access: ClusterOptions): Promise<readonly string[]>;
  contexts(access: ClusterOptions): Promise<readonly string[]>;
}

const NOTHING: Completion = { candidates: [], isPath: false };

/** What can stand for the last of `words`, all that was typed after the name of the program. */
export async function complete(program: Command, words: readonly string[], lookup: Lookup): Promise<Completion> {
  const typed = words.slice(0, -1);
  const last = words.at(-1) ?? '';
  const line = read(program, typed);
  const all = await possible(line, last, lookup);
  return { ...all, candidates: all.candidates.filter(({ value }) => value.startsWith(last)) };
}

/** What was typed so far. */
interface Line {
  readonly command: Command;
  readonly access: ClusterOptions;
  readonly positionals: readonly string[];
  /** Its value comes next. */
  readonly open?: Option | undefined;
}

function read(program: Command, typed: readonly string[]): Line {
  let command = program;
  let open: Option | undefined;
  const positionals: string[] = [];
  const values: Record<string, string> = {};
  for (const word of typed) {
    if (open !== undefined) {
      values[open.attributeName()] = word;
      open = undefined;
    } else if (word.startsWith('-')) {
      const [flag, value] = splitOnce(word);
      const option = command.options.find(({ long, short }) => flag === long || flag === short);
      if (option !== undefined && value !== undefined) values[option.attributeName()] = value;
      else if (option?.required === true) open = option;
    } else {
      const next = positionals.length === 0 ? subcommand(command, word) : undefined;
      if (next === undefined) positionals.push(word);
      else command = next;
    }
  }
  const { kubeconfig = '', context = '', namespace = '' } = values;
  return { command, access: { kubeconfig, context, namespace }, positionals, open };
}

/** `--flag=value`. */
function splitOnce(word: string): [string, string?] {
  const at = word.indexOf('=');
  return at < 0 ? [word] : [word.slice(0, at), word.slice(at + 1)];
}

function subcommand({ commands }: Command, word: string): Command | undefined {
  return commands.find((one) => one.name() === word || one.aliases().includes(word));
}

async function possible(line: Line, last: string, lookup: Lookup): Promise<Completion> {
  const { command, access, positionals, open } = line;
  if (open !== undefined) return await valuesOf(open, '', access, lookup);
  if (last.startsWith('-')) {
    const [flag, value] = splitOnce(last);
    const option = value === undefined ? undefined : command.options.find(({ long }) => long === flag);
    if (option !== undefined) return await valuesOf(option, `${flag}=`, access, lookup);
    return listed(command.createHelp().visibleOptions(command).flatMap(flagOf));
  }
  const subcommands = command.createHelp().visibleCommands(command);
  if (subcommands.length > 0 && positionals.length === 0) {
    return listed(subcommands.map((one) => ({ value: one.name(), description: one.description() })));
  }
  const arguments_ = command.registeredArguments;
  const argument = arguments_[positionals.length] ?? arguments_.findLast(({ variadic }) => variadic);
  return argument === undefined ? NOTHING : await argumentsOf(argument, line, last, lookup);
}

function flagOf({ long, description }: Option): Candidate[] {
  return long === undefined || long === null ? [] : [{ value: long, description }];
}

function listed(candidates: readonly Candidate[]): Completion {
  return { candidates, isPath: false };
}

async function valuesOf(option: Option, prefix: string, access: ClusterOptions, lookup: Lookup): Promise<Completion> {
  const values = (texts: readonly string[]): Completion => listed(texts.map((text) => ({ value: `${prefix}${text}` })));
  if (option.argChoices !== undefined) return values(option.argChoices);
  switch (option.attributeName()) {
    case 'namespace':
      return values(await lookup.namespaces(access));
    case 'context':
      return values(await lookup.contexts(access));
    default:
      return { candidates: [], isPath: /<(?:path|file|directory)>/.test(option.flags) };
  }
}

async function argumentsOf(
  argument: Argument,
  { access, positionals }: Line,
  last: string,
  lookup: Lookup,
): Promise<Completion> {
  if (!(argument instanceof ReferenceArgument)) {
    return listed((argument.argChoices ?? []).map((value) => ({ value })));
  }
  const { kinds, mayOmitType } = argument;
  const [first = ''] = positionals;
  const [type = ''] = last.split('/');
  const of = (word: string): KindName | undefined => kinds.find((kind) => isNameOf(kind, word));
  const untyped = async (kind: KindName): Promise<Candidate[]> => {
    const names = await lookup.names(kind, access);
    return names.filter((name) => !positionals.includes(name)).map((value) => ({ value }));
  };
  if (last.includes('/')) {
    const kind = of(type);
    if (kind === undefined) return NOTHING;
    const names = await lookup.names(kind, access);
    return listed(
      names.map((name) => ({ value: `${type}/${name}` })).filter(({ value }) => !positionals.includes(value)),
    );
  }
  const named = of(first);
  if (named !== undefined) return listed(await untyped(named));
  const types = positionals.length === 0 ? kinds.map(({ name }) => ({ value: name })) : [];
  return listed(mayOmitType ? [...(await untyped(kinds[0])), ...types] : types);
}
