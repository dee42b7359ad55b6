import type { Command } from 'commander';
import type { Registry } from 'prom-client';

import { SystemClock } from '../base/clock/system-clock.ts';
import type { Driver } from '../driver/driver.ts';
import { FencingFile } from '../driver/fencing-file.ts';
import { FencingGuard } from '../driver/fencing.ts';
import { DriverServer } from '../driver/grpc/server.ts';
import { Checks } from '../health/checks.ts';
import { HealthServer } from '../health/server.ts';
import { createLogger, type Logger } from '../base/log/logger.ts';
import { declaring } from '../base/metrics/declaring.ts';
import { logMetrics } from '../base/metrics/log.ts';
import { createRegistry } from '../base/metrics/registry.ts';
import { servedDriverMetrics } from '../base/metrics/served-driver.ts';
import { driverCommand, runCommand, untilTerminated, type CommonDriverOptions } from './command.ts';
import { StateDirectory } from './state-directory.ts';

export interface DriverContext<O> {
  /** Of the command line: `--build-timeout` is `buildTimeout`. */
  readonly options: O;
  readonly clock: SystemClock;
  /** JSON lines on standard output. Never give it contents of a Secret. */
  readonly log: Logger;
  /** For what has to outlive the driver, beside its fencing tokens. This process alone has it. */
  readonly stateDirectory: string;
  /** Declares a histogram of seconds on the page of `--metrics`; what it returns adds a time to it. Once for each name. */
  readonly seconds: (histogram: SecondsHistogram) => ObserveSeconds;
}

interface SecondsHistogram {
  /** Ends with `_seconds`. */
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly string[];
}

type ObserveSeconds = (labels: Readonly<Record<string, string>>, seconds: number) => void;

export interface DriverProgram<O extends object> {
  readonly name: string;
  /** What `--help` says first. */
  readonly description: string;
  /** Adds flags to those that every driver has: --address, --state-directory, --metrics, --log-level. */
  readonly flags?: (command: Command) => void;
  /** Makes the driver. What it throws ends the program with exit code 1. */
  readonly open: (context: DriverContext<O>) => Driver | Promise<Driver>;
}

/**
 * Runs a driver until SIGTERM: the contract with deadlines, fencing and health on `--address`, logs, metrics, an orderly end. All that is
 * left to the driver is what its provider does.
 */
export async function serveDriver<O extends object = object>(
  program: DriverProgram<O>,
  argv: readonly string[] = process.argv.slice(2),
): Promise<void> {
  await runCommand(commandOf(program), argv);
}

export function commandOf<O extends object>({ name, description, flags, open }: DriverProgram<O>): Command {
  const command = driverCommand(name, description).requiredOption(
    '--state-directory <path>',
    'directory where fencing tokens and other driver state are stored',
  );
  flags?.(command);
  return command.action(async (options: CommonDriverOptions & { readonly stateDirectory: string } & O) => {
    const clock = new SystemClock();
    const log = createLogger(options.logLevel);
    using state = StateDirectory.open(options.stateDirectory);
    const fencing = await FencingGuard.open({ clock, store: new FencingFile(state.file('fencing.json')) });
    const registry = createRegistry();
    const { histogram } = declaring(registry);
    const seconds = ({ name: metric, help, labelNames }: SecondsHistogram): ObserveSeconds => {
      const declared = histogram(metric, labelNames).help(help);
      return (labels, took) => declared.observe(labels, took);
    };
    const driver = await open({ options, clock, log, stateDirectory: state.path, seconds });
    try {
      await serveUntilTerminated({ driver, fencing, clock, log, registry }, options);
    } finally {
      await driver.close();
    }
  });
}

export interface ReadyDriver {
  readonly driver: Driver;
  readonly fencing: FencingGuard;
  readonly clock: SystemClock;
  readonly log: Logger;
  /** Of what the driver counts itself. */
  readonly registry?: Registry;
}

/** Serves a driver until SIGTERM or SIGINT. Closing it is left to the caller. */
export async function serveUntilTerminated(
  ready: ReadyDriver,
  { address, metrics: at }: CommonDriverOptions,
): Promise<void> {
  const { log, registry = createRegistry() } = ready;
  const metrics = servedDriverMetrics(registry);
  logMetrics(registry, () => log.lostLines?.() ?? 0);
  const [live, checks] = [new Checks(), new Checks()];
  const page = at === undefined ? undefined : new HealthServer({ ...at, live, checks, registry, log });
  await using server = await DriverServer.start({ ...ready, address, metrics });
  try {
    const port = await page?.start();
    log.info({ address: server.address, ...(port === undefined ? {} : { metrics: port }) }, 'serving');
    const signal = await untilTerminated();
    log.info({ signal }, 'stopping');
  } finally {
    await page?.stop();
  }
}
