import { defaultOf, type Flag, type Program } from '../../pkg/operator/config/flag.ts';
import { flagsWith, IGNORED_FLAGS } from '../../pkg/operator/config/flags.ts';
import { WORLD_FLAGS } from '../../pkg/worlds/index.ts';
import { formatDuration } from '../../pkg/apis/duration.ts';
import { table } from './table.ts';

const FLAGS = flagsWith(WORLD_FLAGS);
const PROGRAMS: readonly Program[] = ['machinist run', 'machine-controller-manager', 'machine-controller'];

const INTRODUCTION = `# Flags

Generated from \`pkg/operator/config/flags.ts\`, and \`flags.ts\` of each API in \`pkg/worlds\`.

Names and defaults are those of the original where it has the flag. \`_\` can be used instead of \`-\`. Durations are Go durations and need a unit (\`30s\`, \`1h30m\`).
Every value that the original accepts is accepted; a period that is too short is raised to the minimum, with a warning.
An exception is an empty \`--namespace\`, which means all namespaces in the original.
A flag that has no effect in a program is accepted with a warning, so that manifests can be shared; an unknown flag ends the program with
exit code 2.
`;

/** docs/reference/flags.md, from the table that the command line is made of. */
export async function flagsReference(): Promise<string> {
  const groups = [...new Set(FLAGS.map((flag) => flag.group))];
  const sections = await Promise.all(groups.map(sectionOf));
  const ignored = IGNORED_FLAGS.map((name) => `\`--${name}\``).join(', ');
  return [
    INTRODUCTION,
    ...sections,
    `## Accepted without effect\n\nFlags of klog and of older releases: ${ignored}.\n`,
  ].join('\n');
}

async function sectionOf(group: string): Promise<string> {
  const rows = FLAGS.filter((flag) => flag.group === group).map((flag) => [
    `\`--${flag.name}\``,
    defaultsOf(flag),
    programsOf(flag),
    asMarkdown(flag.atLeast === undefined ? flag.help : `${flag.help} At least ${formatDuration(flag.atLeast)}.`),
  ]);
  return `## ${group}\n\n${await table(['flag', 'default', 'programs', 'meaning'], rows)}`;
}

/** Plain text as Markdown that shows it as it is: `*` would begin emphasis, and `<` an element that nobody sees. */
export function asMarkdown(text: string): string {
  return text.replaceAll(/[*_<]/g, '\\$&');
}

function defaultsOf(flag: Flag): string {
  const values = [...new Set(flag.programs.map((program) => defaultOf(flag, program)))];
  return values.map((value) => (value === '' ? '""' : `\`${value}\``)).join(' or ');
}

function programsOf(flag: Flag): string {
  if (flag.unused === true) return 'none';
  return flag.programs.length === PROGRAMS.length ? 'all' : flag.programs.map((program) => `\`${program}\``).join(', ');
}
