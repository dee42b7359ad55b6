import { Command, Option } from 'commander';

import { DELETION_POLICIES } from '../../../pkg/controllers/machines/deletion-policy.ts';
import { kubeconfigOption, namespaceOption, timeoutOption } from '../options.ts';
import { ownTerminal } from '../terminal.ts';
import type { DeleteOptions } from './delete.ts';

/** The subcommand `delete`: what `kubectl delete` cannot be asked for. Its work is loaded only when it is run. */
export function deleteCommand(): Command {
  const remove = new Command('delete').description('Delete an object, with more say than kubectl delete gives.');
  remove
    .command('machine <name>')
    .aliases(['machines', 'mc'])
    .description('Delete a Machine by a policy; or drain it first, so that this can be aborted until it is empty.')
    .addOption(
      new Option('--policy <policy>', 'how: graceful never deletes a pod, unsafe does not drain, forced does not wait')
        .choices(DELETION_POLICIES)
        .conflicts('abort'),
    )
    .addOption(
      new Option('--prepare', 'drain the Node first, and delete the Machine when it is empty').conflicts('abort'),
    )
    .option('--abort', 'take back what was prepared, if the Machine is not deleted yet')
    .option('-w, --wait', 'show how it goes on, and end when the Machine is gone, or is as before an abort', false)
    .addOption(namespaceOption('namespace of the Machine'))
    .addOption(kubeconfigOption())
    .addOption(timeoutOption())
    .showSuggestionAfterError()
    .action(async (name: string, options: DeleteOptions) => {
      const { deleteMachine } = await import('./delete.ts');
      process.exitCode = await deleteMachine(name, options, ownTerminal());
    });
  return remove;
}
