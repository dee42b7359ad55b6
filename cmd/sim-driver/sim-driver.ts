import { readFileSync } from 'node:fs';

import { InvalidArgumentError, type Command } from 'commander';

import { SystemClock } from '../../pkg/base/clock/system-clock.ts';
import type { Capabilities } from '../../pkg/driver/driver.ts';
import { count, driverCommand, durationMs, durationOption, runCommand, socketPath } from '../../pkg/drivers/command.ts';
import type { CommonDriverOptions } from '../../pkg/drivers/command.ts';
import { serveUntilTerminated } from '../../pkg/drivers/serve-driver.ts';
import { ControlServer } from '../../packages/providers/sim/control-server.ts';
import { parseFaultRules, type FaultRule } from '../../packages/providers/sim/faults.ts';
import { DEFAULT_SIM_SETTINGS } from '../../packages/providers/sim/settings.ts';
import { Simulation } from '../../packages/providers/sim/simulation.ts';
import { createLogger } from '../../pkg/base/log/logger.ts';

interface Options extends CommonDriverOptions {
  readonly stateDirectory?: string;
  readonly control?: string;
  readonly kubeconfig?: string;
  readonly nodeLeases: boolean;
  readonly otherNodeIds: boolean;
  readonly podStopTime?: number;
  readonly createLatency: number;
  readonly initializeLatency: number;
  readonly statusLatency: number;
  readonly deleteLatency: number;
  readonly listLatency: number;
  readonly joinDelay: number;
  readonly quota?: number;
  readonly seed: string;
  readonly faults?: readonly FaultRule[];
  readonly listScope: 'class' | 'cluster';
  readonly idempotentCreate: boolean;
}

/** Runs the simulated cloud until SIGTERM. */
export async function runSimDriver(argv: readonly string[]): Promise<void> {
  await runCommand(command(), argv);
}

function command(): Command {
  const latency = DEFAULT_SIM_SETTINGS.latencyMs;
  return driverCommand(
    'sim-driver',
    'A driver for a simulated cloud, with VMs in memory that join a real API server as Nodes.',
  )
    .option(
      '--state-directory <path>',
      'directory in which to keep VMs and fencing tokens across restarts (default: not kept)',
    )
    .option('--control <address>', 'socket on which to serve the control API: unix:///path', socketPath)
    .optionsGroup('Nodes:')
    .option('--kubeconfig <file>', 'kubeconfig of the cluster that VMs join as Nodes (default: none)')
    .addOption(
      durationOption('--join-delay <duration>', 'time from the start of a VM until its Node is ready', latency.join),
    )
    .option('--node-leases', 'renew a Lease for each Node, as needed with a kube-controller-manager', false)
    .option('--other-node-ids', 'register Nodes with provider IDs in a different format than the driver reports', false)
    .option('--pod-stop-time <duration>', 'how long pods take to stop (default: their full grace period)', durationMs)
    .optionsGroup('Cloud:')
    .addOption(durationOption('--create-latency <duration>', 'how long CreateMachine takes', latency.create))
    .addOption(
      durationOption('--initialize-latency <duration>', 'how long InitializeMachine takes', latency.initialize),
    )
    .addOption(durationOption('--status-latency <duration>', 'how long GetMachineStatus takes', latency.status))
    .addOption(durationOption('--delete-latency <duration>', 'how long DeleteMachine takes', latency.delete))
    .addOption(durationOption('--list-latency <duration>', 'how long ListMachines takes', latency.list))
    .option('--quota <n>', 'maximum number of VMs (default: no limit)', count)
    .optionsGroup('Misbehaviour:')
    .option('--seed <text>', 'seed that, with the fault rules, determines which calls fail', 'sim')
    .option(
      '--faults <file>',
      'JSON file with a list of fault rules, in the format of PUT /faults of the control API',
      parseFaults,
    )
    .option(
      '--list-scope <scope>',
      'ListMachines returns the VMs of the `class` or of the `cluster`',
      parseScope,
      'class',
    )
    .option('--no-idempotent-create', 'report that CreateMachine must not be repeated immediately')
    .action(serve);
}

async function serve(options: Options): Promise<void> {
  const clock = new SystemClock();
  const log = createLogger(options.logLevel);
  const { stateDirectory, kubeconfig, nodeLeases, podStopTime: podStopMs, otherNodeIds: otherNodeIDs } = options;
  await using simulation = await Simulation.start({
    clock,
    log,
    seed: options.seed,
    settings: settingsOf(options),
    capabilities: capabilitiesOf(options),
    ...(options.faults === undefined ? {} : { faults: options.faults }),
    ...(stateDirectory === undefined ? {} : { stateDirectory }),
    ...(kubeconfig === undefined
      ? {}
      : { cluster: { kubeconfig, env: process.env, nodeLeases, podStopMs, otherNodeIDs } }),
  });
  const { driver, fencing, cloud } = simulation;
  await using _control =
    options.control === undefined ? undefined : await ControlServer.start(simulation, options.control, log);
  log.info({ vms: cloud.size }, 'opened the simulated cloud');
  await serveUntilTerminated({ driver, fencing, clock, log }, options);
}

function settingsOf(options: Options): { latencyMs: typeof DEFAULT_SIM_SETTINGS.latencyMs; quota: number } {
  return {
    latencyMs: {
      create: options.createLatency,
      initialize: options.initializeLatency,
      status: options.statusLatency,
      delete: options.deleteLatency,
      list: options.listLatency,
      join: options.joinDelay,
    },
    quota: options.quota ?? Infinity,
  };
}

function capabilitiesOf({
  listScope,
  idempotentCreate,
}: Options): Pick<Capabilities, 'listScope' | 'idempotentCreate'> {
  return { listScope, idempotentCreate };
}

function parseScope(text: string): 'class' | 'cluster' {
  if (text !== 'class' && text !== 'cluster') throw new InvalidArgumentError('Expected class or cluster.');
  return text;
}

function parseFaults(path: string): readonly FaultRule[] {
  try {
    return parseFaultRules(JSON.parse(readFileSync(path, 'utf8')));
  } catch (err) {
    throw new InvalidArgumentError(err instanceof Error ? err.message : String(err));
  }
}
