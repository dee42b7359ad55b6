import { defaultOf, type Flag, FLAGS, type FlagGroup, IGNORED_FLAGS, type Program } from '../../pkg/config/flags.ts';
import { type Generated, table } from './generated.ts';

const PROGRAMS: readonly Program[] = ['machinist run', 'machine-controller-manager', 'machine-controller'];

/** docs/reference/flags.md, from the table that the command line is made of. */
export const flagsReference: Generated = {
  path: 'docs/reference/flags.md',
  text: () => `# Flags

Generated from \`pkg/config/flags.ts\`.

Names and defaults are the original's where it has them. \`_\` may be written for \`-\`; durations are Go durations and need a unit
(\`30s\`, \`1h30m\`). A flag that has no effect in a program is accepted there with a warning, so that manifests can be shared; an unknown flag
ends the program with exit code 2.

${groups()
  .map(
    (group) => `## ${group}

${table(
  ['flag', 'default', 'programs', 'meaning'],
  FLAGS.filter((flag) => flag.group === group).map((flag) => [
    `\`--${flag.name}\``,
    defaultsOf(flag),
    programsOf(flag),
    flag.help,
  ]),
)}
`,
  )
  .join('\n')}
## Accepted without effect

Flags of klog and of older releases: ${IGNORED_FLAGS.map((name) => `\`--${name}\``).join(', ')}.
`,
};

function groups(): FlagGroup[] {
  return [...new Set(FLAGS.map((flag) => flag.group))];
}

function defaultsOf(flag: Flag): string {
  const values = [...new Set(flag.programs.map((program) => defaultOf(flag, program)))];
  return values.map((value) => (value === '' ? '""' : `\`${value}\``)).join(' or ');
}

function programsOf(flag: Flag): string {
  if (flag.unused === true) return 'none';
  return flag.programs.length === PROGRAMS.length ? 'all' : flag.programs.map((program) => `\`${program}\``).join(', ');
}
