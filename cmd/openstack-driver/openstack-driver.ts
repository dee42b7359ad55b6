import type { Command } from 'commander';

import { serveDriver, commandOf, type DriverProgram } from '../../pkg/drivers/serve-driver.ts';
import { atLeastOne, durationOption, positiveDurationMs } from '../../pkg/drivers/command.ts';
import { OpenStackDriver } from '../../pkg/drivers/openstack/driver.ts';
import { OPENSTACK_REQUESTS } from '../../pkg/base/metrics/openstack.ts';
import { DEFAULT_OPENSTACK_SETTINGS, proxiesIn } from '../../pkg/drivers/openstack/settings.ts';

interface Options {
  readonly answerTimeout: number;
  readonly buildTimeout: number;
  readonly pageSize: number;
}

const { answerMs, buildMs, pageSize } = DEFAULT_OPENSTACK_SETTINGS;

const PROGRAM: DriverProgram<Options> = {
  name: 'openstack-driver',
  description: `A driver for OpenStack that accepts the MachineClasses and Secrets of Gardener's provider.

Cloud, project and credentials are taken from the Secret of the MachineClass in each call.
The driver uses the proxies of HTTP_PROXY, HTTPS_PROXY and NO_PROXY.`,
  flags: (command) =>
    command
      .addOption(
        durationOption(
          '--answer-timeout <duration>',
          'how long an unanswered request for a server or disk may still take effect; it is not repeated earlier; a longer one allows for slow services',
          answerMs,
        ).argParser(positiveDurationMs),
      )
      .addOption(
        durationOption(
          '--build-timeout <duration>',
          'replace a server that has been building for longer than this',
          buildMs,
        ).argParser(positiveDurationMs),
      )
      .option('--page-size <n>', 'number of objects per page of a list; at least 1', atLeastOne, pageSize),
  open: ({ options, clock, log, seconds }) => {
    const { answerTimeout, buildTimeout } = options;
    const proxies = proxiesIn(process.env);
    const settings = { answerMs: answerTimeout, buildMs: buildTimeout, pageSize: options.pageSize, proxies };
    return new OpenStackDriver({ settings, clock, log, observe: seconds(OPENSTACK_REQUESTS) });
  },
};

/** Runs the driver for OpenStack until SIGTERM. */
export async function runOpenStackDriver(argv: readonly string[]): Promise<void> {
  await serveDriver(PROGRAM, argv);
}

export function openStackDriverCommand(): Command {
  return commandOf(PROGRAM);
}
