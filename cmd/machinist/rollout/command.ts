import { Command, InvalidArgumentError, Option } from 'commander';

import { kubeconfigOption, namespaceOption, timeoutOption } from '../options.ts';
import { ownTerminal } from '../terminal.ts';
import type * as Tasks from './rollout.ts';
import type { CommonOptions, Task } from './rollout.ts';

/** The subcommand `rollout`: what `kubectl rollout` does for Deployments, which kubectl does for no other kind. */
export function rolloutCommand(): Command {
  const rollout = new Command('rollout').description(
    'Manage the rollouts of MachineDeployments, as kubectl rollout does.',
  );
  add(rollout, 'status', 'Show the status of the rollout, and wait for its end.', (tasks, options) =>
    tasks.status({
      watch: options['watch'] !== false,
      timeoutMs: Number(options['timeout']),
      revision: Number(options['revision']),
    }),
  )
    .option('-w, --watch', 'watch the rollout until it is done (default true)')
    .option('--no-watch', 'say where it stands, and end')
    .addOption(timeoutOption())
    .addOption(revision('--revision <n>', 'fail unless this revision is rolled out; 0 is the last one'));
  add(rollout, 'history', 'View the revisions that can be rolled back to.', (tasks, options) =>
    tasks.history(Number(options['revision'])),
  ).addOption(revision('--revision <n>', 'show the template of this revision'));
  add(rollout, 'undo', 'Roll back to an earlier revision.', (tasks, options) =>
    tasks.undo(Number(options['toRevision'])),
  ).addOption(revision('--to-revision <n>', 'revision to roll back to; 0 is the one before'));
  add(rollout, 'pause', 'Hold the rollout where it is; scaling goes on.', ({ pause }) => pause);
  add(rollout, 'resume', 'Let a paused rollout go on.', ({ resume }) => resume);
  add(rollout, 'restart', 'Replace every machine, as the strategy allows.', ({ restart }) => restart);
  return rollout;
}

function add(
  rollout: Command,
  name: string,
  description: string,
  taskOf: (tasks: typeof Tasks, options: Readonly<Record<string, unknown>>) => Task,
): Command {
  return rollout
    .command(`${name} <machinedeployment...>`)
    .description(description)
    .addOption(namespaceOption('namespace of the MachineDeployment'))
    .addOption(kubeconfigOption())
    .showSuggestionAfterError()
    .action(async (words: string[], options: CommonOptions & Readonly<Record<string, unknown>>) => {
      // Loaded only now, so that help and mistakes are answered at once.
      const tasks = await import('./rollout.ts');
      process.exitCode = await tasks.runRollout(words, options, taskOf(tasks, options), ownTerminal());
    });
}

function revision(flags: string, description: string): Option {
  return new Option(flags, description).default(0).argParser((text) => {
    if (!/^\d+$/.test(text)) throw new InvalidArgumentError('a whole number from 0 on is expected.');
    return Number(text);
  });
}
