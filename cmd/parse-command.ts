import { type Command, CommanderError } from 'commander';

import { usageExitCode, normalizeFlags } from '../pkg/operator/config/command-line.ts';
import { WORLD_FLAGS } from '../pkg/worlds/index.ts';

/** Runs a program with `argv` (without Node and script). What was mistyped ends it with exit code 2, after commander has said it. */
export async function parseCommand(program: Command, argv: readonly string[]): Promise<void> {
  try {
    await program.parseAsync(normalizeFlags(argv, WORLD_FLAGS), { from: 'user' });
  } catch (err) {
    if (!(err instanceof CommanderError)) throw err;
    process.exitCode = usageExitCode(err);
  }
}
