import path from 'node:path';

import { Command, InvalidArgumentError, Option } from 'commander';

/** `local`: machines are kubelet processes; `sim`: a simulated cloud; `kwok`: Nodes that one kwok process keeps alive. */
export type DemoDriver = 'local' | 'sim' | 'kwok';

/**
 * `machine`: a machine is what its driver makes; `cluster-api`: it is a Machine of Cluster API too, on a provider of the demo; `ironcore`:
 * machines are Machines of IronCore, at a runtime of the demo, without a driver.
 */
export type DemoApi = 'machine' | 'cluster-api' | 'ironcore';

export interface DemoOptions {
  /** How many machines there are at first. */
  readonly machines: number;
  readonly driver: DemoDriver;
  readonly api: DemoApi;
  /** Machines come and go with the pods that need them, by a model of the cluster-autoscaler. */
  readonly autoscaler: boolean;
  /** Check the result and end, instead of waiting for Ctrl-C. */
  readonly once: boolean;
  /** Print lines also where a person could watch the live view. */
  readonly lines: boolean;
  /** Show step by step what can happen to a fleet. */
  readonly tour: boolean;
  /** Take the tour without asking, and end. */
  readonly yes: boolean;
  /** A folder or URL with programs of the control plane that were built elsewhere; empty leaves it to the environment. */
  readonly binaries: string;
  /** Of an archive there. */
  readonly binariesChecksum: string;
}

/** A kubelet needs some 80 MB: more of them than this do not fit on a usual machine. Of the others this many come up in time. */
const MAX_MACHINES = 500;

/** The program of `npm run demo`. What it needs is loaded when its command line has been understood. */
export function demoCommand(): Command {
  return new Command('npm run demo --')
    .description('Start a real control plane on this host and watch machines being created.')
    .addOption(
      new Option('--machines <n>', 'number of machines to start with; with --autoscaler, the maximum number')
        .default(3)
        .argParser(parseMachines),
    )
    .addOption(
      new Option(
        '--driver <name>',
        'local: machines are real kubelets; sim: a simulated cloud; kwok: simulated Nodes with many pods',
      )
        .default('local')
        .choices(['local', 'sim', 'kwok']),
    )
    .addOption(
      new Option(
        '--api <name>',
        'cluster-api: each machine is also a Machine of Cluster API, on a provider of the demo; ironcore: Machines of IronCore, on a runtime of the demo',
      )
        .default('machine')
        .choices(['machine', 'cluster-api', 'ironcore']),
    )
    .option(
      '--autoscaler',
      'start without machines, and run a model of the cluster-autoscaler that adds machines for pods',
      false,
    )
    .addOption(
      new Option(
        '--binaries <dir|url>',
        'etcd, kube-apiserver and kubectl that were built elsewhere, as envtest has them, and any other program of the control plane; a folder, or the URL of an archive (.tar.gz) or of a folder that is served with SHA256SUMS',
      )
        .default('', 'MACHINIST_BINARIES, then built')
        .argParser(placeOf),
    )
    .addOption(
      new Option('--binaries-checksum <checksum>', 'sha256:HEX or sha512:HEX of the archive').default(
        '',
        'from a file beside it',
      ),
    )
    .option(
      '--tour',
      'show step by step what happens to machines: Enter runs the next step, and shows its result',
      false,
    )
    .option('--lines', 'on a terminal, print lines instead of the live view (machinist top)', false)
    .option('--yes', 'with --tour: run all steps without asking, remove everything, and exit', false)
    .option('--once', 'check the result, remove everything, and exit with code 0 or 1', false)
    .action(async (options: DemoOptions, command: Command) => {
      if (options.api === 'cluster-api' && (options.driver !== 'local' || options.autoscaler)) {
        command.error(
          'error: --api cluster-api requires --driver local and cannot be used with --autoscaler, because its provider runs kubelets',
        );
      }
      if (options.api === 'ironcore' && (command.getOptionValueSource('driver') === 'cli' || options.autoscaler)) {
        command.error(
          'error: --api ironcore cannot be used with --driver or --autoscaler, because its machines belong to a runtime and are not Nodes',
        );
      }
      const isOther = options.driver !== 'local' || options.api !== 'machine' || options.autoscaler || options.once;
      if (options.tour && isOther) {
        command.error(
          'error: --tour cannot be used with --driver, --api, --autoscaler or --once, because it is about kubelets',
        );
      }
      if (options.yes && !options.tour) command.error('error: --yes needs --tour');
      if (options.binariesChecksum !== '' && options.binaries === '') {
        command.error('error: --binaries-checksum needs --binaries');
      }
      const { demo } = await import('./demo.ts');
      process.exitCode = await demo(options);
    });
}

/** Relative to where npm was started, which goes to the checkout itself. */
function placeOf(text: string): string {
  if (text === '') throw new InvalidArgumentError('Expected a folder or a URL.');
  return /^https?:\/\//.test(text) ? text : path.resolve(process.env['INIT_CWD'] ?? '.', text);
}

function parseMachines(text: string): number {
  const machines = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!(machines >= 1 && machines <= MAX_MACHINES)) {
    throw new InvalidArgumentError(`Expected a whole number from 1 to ${MAX_MACHINES}.`);
  }
  return machines;
}
