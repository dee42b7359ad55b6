import { Command } from 'commander';

import { HELP_HINT, withFlags } from '../../pkg/operator/config/command-line.ts';
import type { Program } from '../../pkg/operator/config/flag.ts';
import { parseCommand } from '../parse-command.ts';
import { answerCompletion, COMPLETE, completionCommand } from './completion/command.ts';
import { deleteCommand } from './delete/command.ts';
import { describeCommand } from './describe/command.ts';
import { driverToolsCommand } from './driver/command.ts';
import { maintenanceCommand } from './maintenance/command.ts';
import { preflightCommand } from './preflight/command.ts';
import { retryCommand } from './retry/command.ts';
import { rolloutCommand } from './rollout/command.ts';
import { withNegations } from './rollout/target.ts';
import { statusCommand } from './status/command.ts';
import { ownTerminal } from './terminal.ts';
import { topCommand } from './top/command.ts';
import { treeCommand } from './tree/command.ts';
import { tryCommand } from './try/command.ts';
import { version } from './version.ts';
import { WORLD_FLAGS } from '../../pkg/worlds/index.ts';

/** All commands, without their work, which is loaded when it is run. */
export function machinistProgram(): Command {
  const program = new Command('machinist')
    .description('Manages the lifecycle of the virtual machines behind the Nodes of a Kubernetes cluster.')
    .version(version(), '--version')
    .showHelpAfterError(HELP_HINT)
    .exitOverride();

  withControllers(program.command('run').description('Run the controllers.'), 'machinist run');
  program.addCommand(preflightCommand().copyInheritedSettings(program));
  for (const command of [
    rolloutCommand(),
    describeCommand(),
    treeCommand(),
    topCommand(),
    statusCommand(),
    maintenanceCommand(),
    deleteCommand(),
    retryCommand(),
    tryCommand(),
    driverToolsCommand(),
    completionCommand(),
  ]) {
    for (const one of [command, ...command.commands]) one.copyInheritedSettings(program);
    program.addCommand(command);
  }
  return program;
}

/** Runs the CLI with `argv` (without Node and script). Ends with exit code 2 for what was typed wrongly. */
export async function runCommandLine(argv: readonly string[]): Promise<void> {
  const program = machinistProgram();
  if (argv[0] === COMPLETE) return await answerCompletion(program, argv.slice(1), ownTerminal());
  await parseCommand(program, argv[0] === 'rollout' ? withNegations(argv) : argv);
}

/** Runs one of the original's programs: flags without a subcommand. */
export async function runProgram(
  name: 'machine-controller-manager' | 'machine-controller',
  argv: readonly string[],
): Promise<void> {
  await parseCommand(withControllers(new Command(name).version(version(), '--version').exitOverride(), name), argv);
}

/**
 * Has `command` run the controllers by the flags of `program`. They are loaded when the command line has been understood, so that help and
 * mistakes are answered at once.
 */
function withControllers(command: Command, program: Program): Command {
  return withFlags(command, program, WORLD_FLAGS, async (parsed) => {
    const { run } = await import('./run.ts');
    await run(parsed);
  });
}
