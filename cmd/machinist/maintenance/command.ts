import { Command } from 'commander';

import { MACHINE, NODE } from '../kinds.ts';
import { timeoutOption, withClusterOptions } from '../options.ts';
import { ReferenceArgument } from '../reference-argument.ts';
import { ownTerminal } from '../terminal.ts';
import type { MaintenanceOptions } from './maintenance.ts';

/** A Machine is also known by its Node. */
export const MAINTAINED_KINDS = [MACHINE, NODE] as const;

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
  const command = maintenance
    .command(name)
    .description(description)
    .addArgument(new ReferenceArgument('<machine|node...>', MAINTAINED_KINDS, { mayOmitType: true }))
    .option(
      '-w, --wait',
      'wait until the machine is in maintenance, or the maintenance has ended, and show the progress',
      false,
    )
    .addOption(timeoutOption());
  withClusterOptions(command, 'Machine').action(async (words: string[], options: MaintenanceOptions) => {
    const { runMaintenance } = await import('./maintenance.ts');
    process.exitCode = await runMaintenance(name, words, options, ownTerminal());
  });
}
