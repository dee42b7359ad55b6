import { Command, Option } from 'commander';

import { DELETION_POLICIES } from '../../../pkg/controllers/machines/deletion-policy.ts';
import { kubeconfigOption, namespaceOption, timeoutOption } from '../options.ts';
import { ownTerminal } from '../terminal.ts';
import type { DeleteCommandOptions } from './delete.ts';

/** The subcommand `delete`: what `kubectl delete` cannot be asked for. Its work is loaded only when it is run. */
export function deleteCommand(): Command {
  const remove = new Command('delete').description('Delete an object with options that kubectl delete does not have.');
  remove
    .command('machine <name>')
    .aliases(['machines', 'mc'])
    .description(
      'Delete a Machine with a deletion policy, or drain its Node first, so that the deletion can be aborted until the Node is empty.',
    )
    .addOption(
      new Option(
        '--policy <policy>',
        'deletion policy: graceful never deletes a pod, unsafe does not drain, forced does not wait',
      )
        .choices(DELETION_POLICIES)
        .conflicts('abort'),
    )
    .addOption(
      new Option('--prepare', 'drain the Node first, and delete the Machine when the Node is empty').conflicts('abort'),
    )
    .option('--abort', 'abort a prepared deletion, unless the Machine is already being deleted')
    .option('-w, --wait', 'wait until the Machine is deleted, or the abort is complete, and show the progress', false)
    .addOption(namespaceOption('namespace of the Machine'))
    .addOption(kubeconfigOption())
    .addOption(timeoutOption())
    .showSuggestionAfterError()
    .action(async (name: string, options: DeleteCommandOptions) => {
      const { runDelete } = await import('./delete.ts');
      process.exitCode = await runDelete(name, options, ownTerminal());
    });
  return remove;
}
