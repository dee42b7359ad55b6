import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';

import { SystemClock } from '../../pkg/base/clock/system-clock.ts';
import type { ParsedCommandLine } from '../../pkg/operator/config/command-line.ts';
import { DriverAddressError } from '../../pkg/driver/grpc/address.ts';
import { ConfigError } from '../../pkg/kube/client/config-error.ts';
import { createLogger } from '../../pkg/base/log/logger.ts';
import { autoscalerOfCells } from '../../pkg/autoscaler/cells-port.ts';
import { autoscaler } from '../../pkg/autoscaler/index.ts';
import { controllers } from '../../pkg/controllers/index.ts';
import { CellsProcess } from '../../pkg/operator/cells/cells-process.ts';
import { Operator } from '../../pkg/operator/operator.ts';
import { WORLDS } from '../../pkg/worlds/served.ts';
import { statusPage } from '../../pkg/status-page/index.ts';
import { version } from './version.ts';

/** From this verbosity on each pass is logged, and stacks of errors. */
const DEBUG_VERBOSITY = 4;

/** Runs the controllers until the process is told to stop, and ends it with the exit code. */
export async function run({ config, warnings }: ParsedCommandLine): Promise<void> {
  const log = createLogger(config.verbosity >= DEBUG_VERBOSITY ? 'debug' : 'info', { format: config.logFormat });
  for (const warning of warnings) log.warn({ warning }, 'adjusted a flag');
  try {
    const identity = `${hostname()}_${randomBytes(4).toString('hex')}`;
    const { env } = process;
    const clock = new SystemClock();
    const options = { config, worlds: WORLDS, identity, version: version(), env, clock, log, host: process };
    if (config.cells !== undefined) {
      const cells = await CellsProcess.open(
        options,
        config.cells,
        (operator) => controllers(operator, WORLDS),
        autoscalerOfCells(WORLDS),
      );
      process.exit(await cells.run());
    }
    const operator = await Operator.open(options);
    statusPage(operator);
    process.exit(await operator.run(controllers(operator, WORLDS), autoscaler(operator, WORLDS)));
  } catch (err) {
    // What somebody can fix says it all; of anything else, a bug, the class helps too, and with --v=4 the stack.
    const isMeant = err instanceof ConfigError || err instanceof DriverAddressError;
    log.error({ err: isMeant ? err.message : err }, 'could not start');
    process.exit(1);
  }
}
