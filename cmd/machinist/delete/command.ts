import { Command, Option } from 'commander';

import { DELETION_POLICIES } from '../../../pkg/controllers/machine-facts/deletion-policy.ts';
import { MACHINE } from '../kinds.ts';
import { timeoutOption, withClusterOptions } from '../options.ts';
import { ReferenceArgument } from '../reference-argument.ts';
import { ownTerminal } from '../terminal.ts';
import type { DeleteCommandOptions } from './delete.ts';

/** What kubectl deletes with fewer options. */
export const DELETED_KINDS = [MACHINE] as const;

/** The subcommand `delete`: what `kubectl delete` cannot be asked for. Its work is loaded only when it is run. */
export function deleteCommand(): Command {
  const remove = new Command('delete')
    .description(
      'Delete a Machine with a deletion policy, or drain its Node first, so that the deletion can be aborted until the Node is empty.',
    )
    .addArgument(new ReferenceArgument('<type/name...>', DELETED_KINDS))
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
    .addOption(timeoutOption());
  return withClusterOptions(remove, 'Machine').action(async (words: string[], options: DeleteCommandOptions) => {
    const { deleteMachines } = await import('./delete.ts');
    process.exitCode = await deleteMachines(words, options, ownTerminal());
  });
}
