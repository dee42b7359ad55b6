import { Command } from 'commander';

import { MACHINE, MACHINE_CLASS } from '../kinds.ts';
import { type ClusterOptions, withClusterOptions } from '../options.ts';
import { ReferenceArgument } from '../reference-argument.ts';
import { ownTerminal } from '../terminal.ts';

/** A class stands for all of its Machines. */
export const RETRIED_KINDS = [MACHINE, MACHINE_CLASS] as const;

/** The subcommand `retry`: repeats failed calls to the provider now, instead of when their delays end. */
export function retryCommand(): Command {
  const retry = new Command('retry')
    .description(
      'Retry failed calls to the provider immediately, for example after a quota was raised: those of Machines, or those of all Machines of a MachineClass.',
    )
    .addArgument(new ReferenceArgument('<type/name...>', RETRIED_KINDS, { mayOmitType: true }));
  return withClusterOptions(retry).action(async (words: string[], options: ClusterOptions) => {
    const { requestRetries } = await import('./retry.ts');
    process.exitCode = await requestRetries(words, options, ownTerminal());
  });
}
