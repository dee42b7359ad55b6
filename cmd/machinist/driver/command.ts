import { Argument, Command, InvalidArgumentError, Option } from 'commander';

import { formatDuration, parseDuration } from '../../../pkg/apis/duration.ts';
import { DriverAddressError, parseDriverAddress, type DriverAddress } from '../../../pkg/driver/grpc/address.ts';
import { ownTerminal } from '../terminal.ts';
import { LANGUAGES, type Language } from './scaffold.ts';

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

export interface NewCommandOptions {
  readonly language: Language;
}

export interface FromMcmProviderOptions {
  /** The folder to create. */
  readonly out: string;
  /** Checkouts: of the provider, and of machine-controller-manager. */
  readonly source?: string;
  readonly mcmSource?: string;
  /** Go imports, `PATH` or `ALIAS=PATH`; empty: those of the table. */
  readonly import: readonly string[];
  /** `--constructor`; every object has a member of that name. */
  readonly expression: string | undefined;
  readonly provider?: string;
  readonly build: boolean;
}

const RULE_MS = 600_000;

/** The subcommand `driver`: for those who write one. Its work is loaded only when it is run. */
export function driverToolsCommand(): Command {
  const driver = new Command('driver').description('Tools for driver authors.');
  driver
    .command('new')
    .description('Scaffold a working driver in ./NAME.')
    .addArgument(new Argument('<name>', 'name of the driver, such as acme-driver'))
    .addOption(
      new Option('--language <language>', 'programming language of the driver')
        .choices(LANGUAGES)
        .makeOptionMandatory(),
    )
    .configureHelp({ helpWidth: 110 })
    .showSuggestionAfterError()
    .action(async (name: string, options: NewCommandOptions) => {
      const { newDriver } = await import('./new.ts');
      process.exitCode = await newDriver(name, options, ownTerminal());
    });
  driver
    .command('from-mcm-provider')
    .description('Write and compile a driver that serves a provider of machine-controller-manager.')
    .addArgument(
      new Argument(
        '[module@version]',
        'Go module of the provider, such as github.com/gardener/machine-controller-manager-provider-aws@v0.28.0',
      ),
    )
    .requiredOption('--out <directory>', 'directory to create')
    .option('--source <directory>', 'checkout of the provider, instead of its module')
    .option('--mcm-source <directory>', 'checkout of machine-controller-manager, instead of its module')
    .option('--import <path>', 'Go import of the constructor, PATH or ALIAS=PATH; may be repeated', collect, [])
    .option(
      '--constructor <expression>',
      'Go expression of type driver.Driver, such as "aws.NewAWSDriver(&cpi.ClientProvider{})"',
    )
    .option('--provider <name>', 'value of provider in the MachineClasses that the driver accepts')
    .option('--no-build', 'write the files without compiling them')
    .configureHelp({ helpWidth: 110 })
    .showSuggestionAfterError()
    .action(async (module: string | undefined, options: FromMcmProviderOptions) => {
      const { fromMcmProvider } = await import('./from-mcm-provider.ts');
      const expression = typeof options.constructor === 'string' ? (options.constructor as string) : undefined;
      process.exitCode = await fromMcmProvider(module, { ...options, expression }, ownTerminal());
    });
  driver
    .command('verify')
    .description(
      'Verify that a running driver keeps the driver contract. Creates VMs at its provider, and removes them.',
    )
    .addOption(
      new Option(
        '--address <address>',
        'address of the driver: unix:///path, or dns:///host:port?ca=FILE&cert=FILE&key=FILE',
      )
        .argParser(address)
        .makeOptionMandatory(),
    )
    .requiredOption('--class <file>', 'file with the MachineClass of the VMs to create')
    .option('--secret <file>', 'file with a Secret of that class; several are merged', collect, [])
    .option('--bad-class <file>', 'file with the same class, but an invalid providerSpec')
    .option('--bad-secret <file>', 'file with a Secret whose credentials the provider rejects')
    .option(
      '--restart-command <line>',
      'command that ends the driver, as a crash would, and restarts it in the background',
    )
    .option(
      '--untagged-vm-command <line>',
      'command that creates a VM as an earlier tool did, without our tags, for machine MACHINE_NAME in MACHINE_NAMESPACE, of class MACHINE_CLASS',
    )
    .option('--rule <name>', 'rule to verify; may be repeated (default: all rules)', collect, [])
    .addOption(
      new Option('--rule-timeout <duration>', 'maximum time for one rule, and for removing what it created')
        .default(RULE_MS, formatDuration(RULE_MS))
        .argParser(durationMs),
    )
    .addOption(new Option('-o, --output <format>', 'output format').choices(['text', 'json', 'junit']).default('text'))
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
  if (ms === undefined || ms <= 0) throw new InvalidArgumentError('Expected a duration such as 30s or 10m.');
  return ms;
}
