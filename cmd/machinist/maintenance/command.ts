import { Command } from 'commander';

import { kubeconfigOption, namespaceOption, timeoutOption } from '../options.ts';
import { ownTerminal } from '../terminal.ts';
import type { MaintenanceOptions } from './maintenance.ts';

/** The subcommand `maintenance`: empties the Node of a machine for a reboot or a repair, and gives it back. */
export function maintenanceCommand(): Command {
  const maintenance = new Command('maintenance').description(
    'Take machines out of service for a reboot or repair without replacing them.',
  );
  add(
    maintenance,
    'start',
    'Cordon and drain the Node of a machine, which is not replaced until the maintenance ends.',
  );
  add(maintenance, 'end', 'End the maintenance and uncordon the Node.');
  add(maintenance, 'status', 'Show the state of the maintenance and what it is waiting for.');
  return maintenance;
}

function add(maintenance: Command, name: 'start' | 'end' | 'status', description: string): void {
  maintenance
    .command(`${name} <machine|node>`)
    .description(description)
    .addOption(namespaceOption('namespace of the Machine'))
    .addOption(kubeconfigOption())
    .option(
      '-w, --wait',
      'wait until the machine is in maintenance, or the maintenance has ended, and show the progress',
      false,
    )
    .addOption(timeoutOption())
    .showSuggestionAfterError()
    .action(async (target: string, options: MaintenanceOptions) => {
      const { runMaintenance } = await import('./maintenance.ts');
      process.exitCode = await runMaintenance(name, target, options, ownTerminal());
    });
}
