import { Argument, Command, InvalidArgumentError, Option } from 'commander';

import { formatDuration, parseDuration } from '../../../pkg/apis/duration.ts';
import { DriverAddressError, parseDriverAddress, type DriverAddress } from '../../../pkg/driver/grpc/address.ts';
import { ownTerminal } from '../terminal.ts';
import { LANGUAGES, type Language } from './scaffold.ts';

/** What `driver verify` was asked for. */
export interface VerifyCommandOptions {
  readonly address: DriverAddress;
  /** Files. */
  readonly class: string;
  readonly secret: readonly string[];
  readonly badClass?: string;
  readonly badSecret?: string;
  /** Lines for a shell. */
  readonly restartCommand?: string;
  readonly untaggedVmCommand?: string;
  /** Names; empty for all. */
  readonly rule: readonly string[];
  readonly ruleTimeout: number;
  readonly output: 'text' | 'json' | 'junit';
}

/** What `driver new` was asked for. */
export interface NewCommandOptions {
  readonly language: Language;
}

const RULE_MS = 600_000;

/** The subcommand `driver`: for those who write one. Its work is loaded only when it is run. */
export function driverCommand(): Command {
  const driver = new Command('driver').description('Help those who write a driver.');
  driver
    .command('new')
    .description('Write a driver that keeps the contract to a folder of its name, to begin with.')
    .addArgument(new Argument('<name>', 'of the driver, such as acme-driver'))
    .addOption(new Option('--language <language>', 'what it is written in').choices(LANGUAGES).makeOptionMandatory())
    .configureHelp({ helpWidth: 110 })
    .showSuggestionAfterError()
    .action(async (name: string, options: NewCommandOptions) => {
      const { newDriver } = await import('./new.ts');
      process.exitCode = await newDriver(name, options, ownTerminal());
    });
  driver
    .command('verify')
    .description('Try a running driver against the contract, at its provider: it makes VMs and removes them again.')
    .addOption(
      new Option(
        '--address <address>',
        'where the driver listens: unix:///path, or dns:///host:port?ca=FILE&cert=FILE&key=FILE',
      )
        .argParser(address)
        .makeOptionMandatory(),
    )
    .requiredOption('--class <file>', 'a MachineClass of which VMs are made')
    .option('--secret <file>', 'a Secret of that class; more than one are merged', collect, [])
    .option('--bad-class <file>', 'the same class with a mistake in its providerSpec')
    .option('--bad-secret <file>', 'a Secret with credentials that the provider does not accept')
    .option('--restart-command <line>', 'ends the driver, as a crash would, and starts it again in the background')
    .option(
      '--untagged-vm-command <line>',
      'makes a VM as an earlier tool did, without our tags, for the machine MACHINE_NAME in MACHINE_NAMESPACE, of class MACHINE_CLASS',
    )
    .option('--rule <name>', 'try this rule; may be repeated (default: all of them)', collect, [])
    .addOption(
      new Option('--rule-timeout <duration>', 'longest that one rule may take, and removing what it made')
        .default(RULE_MS, formatDuration(RULE_MS))
        .argParser(durationMs),
    )
    .addOption(
      new Option('-o, --output <format>', 'how to print it').choices(['text', 'json', 'junit']).default('text'),
    )
    .configureHelp({ helpWidth: 110 })
    .showSuggestionAfterError()
    .action(async (options: VerifyCommandOptions) => {
      const { verifyDriver } = await import('./verify.ts');
      process.exitCode = await verifyDriver(options, ownTerminal());
    });
  return driver;
}

function collect(text: string, before: readonly string[]): readonly string[] {
  return [...before, text];
}

function address(text: string): DriverAddress {
  try {
    return parseDriverAddress(text);
  } catch (err) {
    if (err instanceof DriverAddressError) throw new InvalidArgumentError(err.message);
    throw err;
  }
}

function durationMs(text: string): number {
  const ms = parseDuration(text);
  if (ms === undefined || ms <= 0) throw new InvalidArgumentError('a duration such as 30s or 10m is expected.');
  return ms;
}
