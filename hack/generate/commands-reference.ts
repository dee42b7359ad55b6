import type { Command, Option } from 'commander';

import { machinistProgram } from '../../cmd/machinist/command-line.ts';
import { asMarkdown } from './flags-reference.ts';
import { formatted } from './format.ts';
import { table } from './table.ts';

const INTRODUCTION = `# Commands

Generated from the definitions of the commands in \`cmd/machinist\`. [The command line](../operations/command-line.md) describes how to
install the program, and what the commands have in common. Each command also has \`-h\`, \`--help\`.
`;

/** Options that are those of \`machinist run\`. */
const WITH_FLAGS: ReadonlySet<string> = new Set(['run', 'preflight']);

/** docs/reference/commands.md, from the tree that the command line is made of. */
export async function commandsReference(): Promise<string> {
  const program = machinistProgram();
  const commands = program.commands.flatMap((one) => (one.commands.length === 0 ? [one] : one.commands));
  const sections = await Promise.all(commands.map((one) => sectionOf(one, program)));
  return await formatted('md', [INTRODUCTION, ...sections].join('\n'));
}

async function sectionOf(command: Command, program: Command): Promise<string> {
  const path = command.parent === program || command.parent === null ? [] : [command.parent.name()];
  const words = ['machinist', ...path, command.name(), ...command.registeredArguments.map(placeholderOf)];
  const own = command.options.filter(({ long, hidden }) => !hidden && !isFlagOfRun(command, long ?? ''));
  const arguments_ = command.registeredArguments.map((one) => [placeholderOf(one), '', asMarkdown(descriptionOf(one))]);
  const rows = [...arguments_, ...own.map(rowOf)].map(([name = '', ...rest]) => [`\`${name}\``, ...rest]);
  const flags = WITH_FLAGS.has(command.name()) ? ['Takes the [flags](flags.md) of `machinist run`.\n'] : [];
  return [
    `## ${words.slice(0, path.length + 2).join(' ')}\n`,
    `\`${words.join(' ')}\`\n\n${asMarkdown(command.description())}\n`,
    ...flags,
    ...(rows.length === 0 ? [] : [await table(['argument or option', 'default', 'meaning'], rows)]),
  ].join('\n');
}

function isFlagOfRun(command: Command, long: string): boolean {
  return WITH_FLAGS.has(command.name()) && !['--as', '--output'].includes(long);
}

function placeholderOf(argument: Command['registeredArguments'][number]): string {
  const name = `${argument.name()}${argument.variadic ? '...' : ''}`;
  return argument.required ? `<${name}>` : `[${name}]`;
}

function descriptionOf({ description, argChoices }: Command['registeredArguments'][number]): string {
  return argChoices === undefined ? description : `${description}: ${argChoices.join(', ')}`;
}

function rowOf({ flags, description, defaultValue, defaultValueDescription, argChoices }: Option): string[] {
  const value = defaultValueDescription ?? (isShown(defaultValue) ? String(defaultValue) : '');
  const choices = argChoices === undefined ? '' : `: ${argChoices.join(', ')}`;
  return [flags, asMarkdown(value), asMarkdown(`${description}${choices}`)];
}

function isShown(value: unknown): boolean {
  return value !== undefined && value !== false && value !== '' && !(Array.isArray(value) && value.length === 0);
}
