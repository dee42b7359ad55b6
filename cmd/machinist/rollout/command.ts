import { Command, InvalidArgumentError, Option } from 'commander';

import { selectorOption, timeoutOption, withClusterOptions } from '../options.ts';
import { ReferenceArgument } from '../reference-argument.ts';
import { ownTerminal } from '../terminal.ts';
import type * as Tasks from './rollout.ts';
import type { RolloutOptions, Task } from './rollout.ts';
import { ROLLED_OUT_KINDS } from './target.ts';

/** The subcommand `rollout`: what `kubectl rollout` does for Deployments, which kubectl does for no other kind. */
export function rolloutCommand(): Command {
  const rollout = new Command('rollout').description('Manage the rollout of MachineDeployments, like kubectl rollout.');
  add(rollout, 'status', 'Show the status of the rollout, and wait until it is complete.', (tasks, options) =>
    tasks.status({
      watch: options['watch'] !== false,
      timeoutMs: Number(options['timeout']),
      revision: Number(options['revision']),
    }),
  )
    .option('-w, --watch', 'watch the rollout until it is complete (default true)')
    .option('--no-watch', 'show the current status and exit')
    .addOption(timeoutOption())
    .addOption(revision('--revision <n>', 'fail unless this revision is rolled out; 0 means the latest'));
  add(rollout, 'history', 'View the revisions that can be rolled back to.', (tasks, options) =>
    tasks.history(Number(options['revision']), options['diff'] === true),
  )
    .addOption(revision('--revision <n>', 'show the template of this revision'))
    .option('--diff', 'show how the template of the latest revision, or of --revision, differs from the one before');
  add(rollout, 'undo', 'Roll back to an earlier revision.', (tasks, options) =>
    tasks.undo(Number(options['toRevision'])),
  ).addOption(revision('--to-revision <n>', 'revision to roll back to; 0 means the previous one'));
  add(rollout, 'pause', 'Pause the rollout; scaling continues.', ({ pause }) => pause);
  add(rollout, 'resume', 'Resume a paused rollout.', ({ resume }) => resume);
  add(rollout, 'restart', 'Replace all machines, as the rollout strategy allows.', ({ restart }) => restart);
  return rollout;
}

function add(
  rollout: Command,
  name: string,
  description: string,
  taskOf: (tasks: typeof Tasks, options: Readonly<Record<string, unknown>>) => Task,
): Command {
  const command = rollout
    .command(name)
    .description(description)
    .addArgument(new ReferenceArgument('[machinedeployment...]', ROLLED_OUT_KINDS, { mayOmitType: true }))
    .addOption(selectorOption());
  return withClusterOptions(command, 'MachineDeployment').action(
    async (words: string[], options: RolloutOptions & Readonly<Record<string, unknown>>) => {
      // Loaded only now, so that help and mistakes are answered at once.
      const tasks = await import('./rollout.ts');
      process.exitCode = await tasks.runRollout(words, options, taskOf(tasks, options), ownTerminal());
    },
  );
}

function revision(flags: string, description: string): Option {
  return new Option(flags, description).default(0).argParser((text) => {
    if (!/^\d+$/.test(text)) throw new InvalidArgumentError('Expected a whole number of at least 0.');
    return Number(text);
  });
}
