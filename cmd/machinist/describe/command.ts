import { Command } from 'commander';

import {
  allNamespacesOption,
  type ClusterOptions,
  outputOption,
  type OutputFormat,
  type ManagerOptions,
  managerNamespaceOption,
  processURLOption,
  type SelectionOptions,
  selectorOption,
  withClusterOptions,
} from '../options.ts';
import { ReferenceArgument } from '../reference-argument.ts';
import { ownTerminal } from '../terminal.ts';
import { DESCRIBED_KINDS } from './described-kinds.ts';

export interface DescribeOptions extends ClusterOptions, SelectionOptions, ManagerOptions {
  readonly output: OutputFormat;
}

/** The subcommand `describe`: what `kubectl describe` shows, and what it means. Its work is loaded only when it is run. */
export function describeCommand(): Command {
  const describe = new Command('describe')
    .description(
      'Explain the state of an object: its phase and why, what it is waiting for and since when, and what happens next.',
    )
    .addArgument(new ReferenceArgument('<type/name...>', DESCRIBED_KINDS))
    .addOption(allNamespacesOption())
    .addOption(selectorOption())
    .addOption(managerNamespaceOption())
    .addOption(processURLOption())
    .addOption(outputOption(['text', 'json', 'yaml', 'name']));
  return withClusterOptions(describe).action(async (words: string[], options: DescribeOptions) => {
    const { describeObjects } = await import('./describe-objects.ts');
    process.exitCode = await describeObjects(words, options, ownTerminal());
  });
}
