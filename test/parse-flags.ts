import { Command } from 'commander';

import { normalizeFlags, type ParsedCommandLine, withFlags } from '../pkg/operator/config/command-line.ts';
import type { Program } from '../pkg/operator/config/flag.ts';
import { WORLD_FLAGS } from '../pkg/worlds/index.ts';

/** What `program` makes of its arguments; of `machinist run`, those after `run`. Throws CommanderError for what was mistyped. */
export async function parseFlags(program: Program, argv: readonly string[]): Promise<ParsedCommandLine> {
  let parsed: ParsedCommandLine | undefined;
  const command = withFlags(
    new Command(program).exitOverride(),
    program,
    WORLD_FLAGS,
    async (line) => void (parsed = line),
  );
  await command.parseAsync(normalizeFlags(argv, WORLD_FLAGS), { from: 'user' });
  if (parsed === undefined) throw new Error('the action did not run');
  return parsed;
}
