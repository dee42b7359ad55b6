import { Command } from 'commander';

import { MANAGER_SELECTOR } from '../manager-processes.ts';
import {
  type ClusterOptions,
  outputOption,
  type OutputFormat,
  type ManagerOptions,
  managerNamespaceOption,
  processURLOption,
  withClusterOptions,
} from '../options.ts';
import { ownTerminal } from '../terminal.ts';

export interface StatusOptions extends ClusterOptions, ManagerOptions {
  readonly output: OutputFormat;
  /** Of the pods of the manager. */
  readonly selector: string;
}

/** The subcommand `status`: whether an installation works. Its work is loaded only when it is run. */
export function statusCommand(): Command {
  const status = new Command('status')
    .description(
      'Check a running installation: leaders, versions, drivers, outages, held work, stopped zones, machines, and alerts. Exits with code 1 if something needs attention.',
    )
    .option('-l, --selector <selector>', 'labels of the pods of the manager', MANAGER_SELECTOR)
    .addOption(managerNamespaceOption())
    .addOption(processURLOption())
    .addOption(outputOption(['text', 'json', 'yaml']));
  return withClusterOptions(status, 'manager and of its Machines').action(async (options: StatusOptions) => {
    const { showStatus } = await import('./show-status.ts');
    process.exitCode = await showStatus(options, ownTerminal());
  });
}
