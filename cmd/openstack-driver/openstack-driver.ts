import type { Command } from 'commander';

import { serveDriver, commandOf, type DriverProgram } from '../../pkg/drivers/serve-driver.ts';
import { count, durationOption } from '../../pkg/drivers/command.ts';
import { OpenStackDriver } from '../../pkg/drivers/openstack/driver.ts';
import { DEFAULT_SETTINGS } from '../../pkg/drivers/openstack/settings.ts';

interface Options {
  readonly answerTimeout: number;
  readonly buildTimeout: number;
  readonly pageSize: number;
}

const { answerMs, buildMs, pageSize } = DEFAULT_SETTINGS;

const PROGRAM: DriverProgram<Options> = {
  name: 'openstack-driver',
  description: `A driver for OpenStack, which takes the MachineClasses and Secrets of Gardener's provider.

Clouds, projects and credentials come with each call, from the Secret of the MachineClass.`,
  flags: (command) =>
    command
      .addOption(
        durationOption(
          '--answer-timeout <duration>',
          'how long a request for a server that was not answered may still make one; none is asked for again before',
          answerMs,
        ),
      )
      .addOption(
        durationOption('--build-timeout <duration>', 'a server that is built for longer is made anew', buildMs),
      )
      .option('--page-size <n>', 'servers on one page of a list', count, pageSize),
  open: ({ options, clock, log }) => {
    const settings = { answerMs: options.answerTimeout, buildMs: options.buildTimeout, pageSize: options.pageSize };
    return new OpenStackDriver({ settings, clock, log });
  },
};

/** Runs the driver for OpenStack until SIGTERM. */
export async function runOpenStackDriver(argv: readonly string[]): Promise<void> {
  await serveDriver(PROGRAM, argv);
}

/** The command with its flags. */
export function openStackDriverCommand(): Command {
  return commandOf(PROGRAM);
}
