import { Command } from 'commander';

import { kubeconfigOption, namespaceOption, timeoutOption } from '../options.ts';
import { ownTerminal } from '../terminal.ts';
import type { MaintenanceOptions } from './maintenance.ts';

/** The subcommand `maintenance`: empties the Node of a machine for a reboot or a repair, and gives it back. */
export function maintenanceCommand(): Command {
  const maintenance = new Command('maintenance').description(
    'Take machines out of service for a reboot or a repair, without their being replaced.',
  );
  add(maintenance, 'start', 'Cordon and drain the Node of a machine; it is not replaced meanwhile.');
  add(maintenance, 'end', 'Give the Node back to its pods.');
  add(maintenance, 'status', 'Show where it stands, and what it waits for.');
  return maintenance;
}

function add(maintenance: Command, name: 'start' | 'end' | 'status', description: string): void {
  maintenance
    .command(`${name} <machine|node>`)
    .description(description)
    .addOption(namespaceOption('namespace of the Machine'))
    .addOption(kubeconfigOption())
    .option('-w, --wait', 'show how it goes on, and end when it is there', false)
    .addOption(timeoutOption())
    .showSuggestionAfterError()
    .action(async (target: string, options: MaintenanceOptions) => {
      const { runMaintenance } = await import('./maintenance.ts');
      process.exitCode = await runMaintenance(name, target, options, ownTerminal());
    });
}
