import type { Command } from 'commander';

import { SystemClock } from '../../pkg/clock/system-clock.ts';
import { FencingFile } from '../../pkg/driver/fencing-file.ts';
import { FencingGuard } from '../../pkg/driver/fencing.ts';
import { DriverServer } from '../../pkg/driver/grpc/server.ts';
import { count, driverCommand, durationOption, runCommand, untilTerminated } from '../../pkg/drivers/command.ts';
import type { CommonOptions } from '../../pkg/drivers/command.ts';
import { OpenStackDriver } from '../../pkg/drivers/openstack/driver.ts';
import { DEFAULT_SETTINGS } from '../../pkg/drivers/openstack/settings.ts';
import { StateDirectory } from '../../pkg/drivers/state-directory.ts';
import { createLogger } from '../../pkg/log/logger.ts';

interface Options extends CommonOptions {
  readonly stateDirectory: string;
  readonly answerTimeout: number;
  readonly buildTimeout: number;
  readonly pageSize: number;
}

const DESCRIPTION = `A driver for OpenStack, which takes the MachineClasses and Secrets of Gardener's provider.

Clouds, projects and credentials come with each call, from the Secret of the MachineClass.`;

/** Runs the driver for OpenStack until SIGTERM. */
export async function runOpenStackDriver(argv: readonly string[]): Promise<void> {
  await runCommand(openStackDriverCommand(), argv);
}

/** The command with its flags. */
export function openStackDriverCommand(): Command {
  const { answerMs, buildMs, pageSize } = DEFAULT_SETTINGS;
  return driverCommand('openstack-driver', DESCRIPTION)
    .requiredOption('--state-directory <path>', 'where fencing tokens are kept over restarts')
    .addOption(
      durationOption(
        '--answer-timeout <duration>',
        'how long a request for a server that was not answered may still make one; none is asked for again before',
        answerMs,
      ),
    )
    .addOption(durationOption('--build-timeout <duration>', 'a server that is built for longer is made anew', buildMs))
    .option('--page-size <n>', 'servers on one page of a list', count, pageSize)
    .action(serve);
}

async function serve(options: Options): Promise<void> {
  const clock = new SystemClock();
  const log = createLogger(options.logLevel);
  const { address, answerTimeout: answerMs, buildTimeout: buildMs, pageSize } = options;
  using state = StateDirectory.open(options.stateDirectory);
  const fencing = await FencingGuard.open({ clock, store: new FencingFile(state.file('fencing.json')) });
  const driver = new OpenStackDriver({ settings: { answerMs, buildMs, pageSize }, clock, log });
  await using server = await DriverServer.start({ driver, fencing, address, clock, log });
  log.info({ address: server.address }, 'serving');

  const signal = await untilTerminated();
  log.info({ signal }, 'stopping');
  await driver.close();
}
