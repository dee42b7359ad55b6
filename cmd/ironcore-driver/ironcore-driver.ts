import type { Command } from 'commander';

import { IronCoreDriver } from '../../pkg/worlds/ironcore/driver/driver.ts';
import { commandOf, serveDriver, type DriverProgram } from '../../pkg/drivers/serve-driver.ts';

interface Options {
  readonly csiDriverName: string;
}

const DESCRIPTION = `A driver that creates Machines of IronCore, for the MachineClasses of Gardener's provider.

Clusters and credentials are taken from the Secrets of the MachineClasses.`;

const PROGRAM: DriverProgram<Options> = {
  name: 'ironcore-driver',
  description: DESCRIPTION,
  flags: (command) =>
    command.option(
      '--csi-driver-name <name>',
      'name of the CSI driver whose volumes the machines use',
      'csi.ironcore.dev',
    ),
  open: ({ options: { csiDriverName }, clock, log }) => new IronCoreDriver({ clock, log, csiDriverName }),
};

/** Runs the driver for IronCore until SIGTERM. */
export async function runIronCoreDriver(argv: readonly string[]): Promise<void> {
  await serveDriver(PROGRAM, argv);
}

export function ironCoreDriverCommand(): Command {
  return commandOf(PROGRAM);
}
