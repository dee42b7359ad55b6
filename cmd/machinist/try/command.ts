import { Command } from 'commander';

import { contextOption, kubeconfigOption, requestTimeoutOption } from '../options.ts';
import { ownTerminal } from '../terminal.ts';
import type { TryOptions } from './try.ts';

/** The subcommand `try`: the manager with a simulated provider, on this host, for a cluster of somebody's own. */
export function tryCommand(): Command {
  return new Command('try')
    .description(
      'Try Machinist on a cluster of your own, such as one of kind, minikube or k3d: run the manager and a simulated provider on this host, without an image, with example machines in a namespace of their own. Ctrl-C stops; --undo removes everything.',
    )
    .option('--undo', 'remove everything that the command has created in the cluster, and exit', false)
    .option('-y, --yes', 'do not ask', false)
    .addOption(contextOption())
    .addOption(kubeconfigOption('cluster'))
    .addOption(requestTimeoutOption())
    .showSuggestionAfterError()
    .action(async (options: TryOptions) => {
      const { tryMachinist } = await import('./try.ts');
      process.exitCode = await tryMachinist(options, ownTerminal());
    });
}
