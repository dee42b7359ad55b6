import { Command } from 'commander';

import { MANAGER_SELECTOR } from '../manager-processes.ts';
import {
  allNamespacesOption,
  type ClusterOptions,
  outputOption,
  type OutputFormat,
  type ManagerOptions,
  managerNamespaceOption,
  processURLOption,
  withClusterOptions,
} from '../options.ts';
import { ownTerminal } from '../terminal.ts';

export interface TopOptions extends ClusterOptions, ManagerOptions {
  readonly allNamespaces?: boolean;
  readonly output: OutputFormat;
  /** Of the pods of the manager. */
  readonly selector: string;
}

/** The subcommand `top`: everything about machines, live. Its work, and what draws the screen, is loaded only when it is run. */
export function topCommand(): Command {
  const top = new Command('top')
    .description(
      'Watch pools, machines, drains, retries, outages, leaders and Events live. Without a terminal, or with -o json, prints a line for each change.',
    )
    .addOption(allNamespacesOption())
    .option('-l, --selector <selector>', 'labels of the pods of the manager', MANAGER_SELECTOR)
    .addOption(managerNamespaceOption())
    .addOption(processURLOption())
    .addOption(outputOption(['text', 'json']));
  return withClusterOptions(top, 'manager and of its Machines').action(async (options: TopOptions) => {
    const { showTop } = await import('./show-top.ts');
    process.exitCode = await showTop(options, ownTerminal());
  });
}
