import { EventEmitter, once } from 'node:events';
import { createWriteStream, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { hostname, tmpdir } from 'node:os';
import path from 'node:path';

import { Command } from 'commander';

import { autoscaler } from '../../../pkg/autoscaler/index.ts';
import { SystemClock } from '../../../pkg/base/clock/system-clock.ts';
import { type ParsedCommandLine, withFlags } from '../../../pkg/operator/config/command-line.ts';
import { controllers } from '../../../pkg/controllers/index.ts';
import { parseDriverAddress } from '../../../pkg/driver/grpc/address.ts';
import { DriverServer } from '../../../pkg/driver/grpc/server.ts';
import { StateDirectoryError } from '../../../pkg/drivers/state-directory.ts';
import { Simulation } from '../../../packages/providers/sim/simulation.ts';
import { createLogger, type Logger } from '../../../pkg/base/log/logger.ts';
import { createRegistry } from '../../../pkg/base/metrics/registry.ts';
import { servedDriverMetrics } from '../../../pkg/base/metrics/served-driver.ts';
import { Operator } from '../../../pkg/operator/operator.ts';
import { WORLDS } from '../../../pkg/worlds/served.ts';
import { CommandError } from '../command-error.ts';
import { version } from '../version.ts';
import { NAMESPACE } from './objects.ts';
import { WORLD_FLAGS } from '../../../pkg/worlds/index.ts';

/** Without the one that marks Nodes which no Machine has: those of the cluster are none of our business. */
const CONTROLLERS = 'machine-deployment,machine-set,safety.overshoot,machine,machine-class,secret,safety.orphan-vms';

export interface ManagerOptions {
  /** Names the one cluster, whatever is changed elsewhere meanwhile. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Where VMs and the log are kept. */
  readonly directory: string;
  /** Whether it leads by Leases, which another one may hold; true unless told otherwise. */
  readonly isElected?: boolean;
}

/** The manager and the driver of a simulated provider, in this process: none of them outlives it. */
export class TriedManager implements AsyncDisposable {
  /** Where probes and metrics are served. */
  readonly address: string;
  readonly logFile: string;
  /** Rejects when the manager ends by itself. */
  readonly failed: Promise<never>;
  readonly #stop: () => Promise<void>;

  private constructor(parts: Pick<TriedManager, 'address' | 'logFile' | 'failed'>, stop: () => Promise<void>) {
    this.address = parts.address;
    this.logFile = parts.logFile;
    this.failed = parts.failed;
    this.#stop = stop;
  }

  /** Throws CommandError when another process runs them. */
  static async start({ env, directory, isElected = true }: ManagerOptions): Promise<TriedManager> {
    await using stack = new AsyncDisposableStack();
    const clock = new SystemClock();
    const logFile = path.join(directory, 'machinist.log');
    const output = createWriteStream(logFile, { flags: 'a', mode: 0o600 });
    stack.defer(() => void output.end());
    const log = createLogger('info', { destination: output });

    const simulation = stack.use(await simulate({ env, directory, clock, log }));
    const sockets = mkdtempSync(path.join(tmpdir(), 'machinist-try-'));
    stack.defer(() => rmSync(sockets, { recursive: true, force: true }));
    const address = `unix://${path.join(sockets, 'driver.sock')}`;
    const { driver, fencing } = simulation;
    const metrics = servedDriverMetrics(createRegistry());
    stack.use(await DriverServer.start({ driver, fencing, clock, log, metrics, address: parseDriverAddress(address) }));

    const port = await freePort();
    const { config } = await parsed([
      `--namespace=${NAMESPACE}`,
      `--driver=sim=${address}`,
      `--controllers=${CONTROLLERS}`,
      '--address=127.0.0.1',
      `--port=${port}`,
      `--leader-elect=${isElected}`,
      // Short, so that a machine that fails at once is replaced while one watches.
      '--machine-safety-grace=10s',
    ]);
    const host = Object.assign(new EventEmitter(), { exit: () => undefined });
    const identity = `${hostname()}_${process.pid}_try`;
    const operator = await Operator.open({
      config,
      worlds: WORLDS,
      identity,
      version: version(),
      env,
      clock,
      log,
      host,
    });
    const running = operator.run(controllers(operator, WORLDS), autoscaler(operator, WORLDS));
    let isStopping = false;
    const failed = running.then(
      () => (isStopping ? new Promise<never>(() => undefined) : Promise.reject(endedError(logFile))),
      () => Promise.reject(endedError(logFile)),
    );
    failed.catch(() => undefined); // whoever waits for it is told
    stack.defer(async () => {
      isStopping = true;
      host.emit('SIGTERM', 'SIGTERM');
      await running.catch(() => undefined);
    });
    const owned = stack.move();
    const own = { address: `http://127.0.0.1:${port}`, logFile, failed };
    return new TriedManager(own, () => owned.disposeAsync());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stop();
  }
}

async function simulate({
  env,
  directory,
  clock,
  log,
}: Pick<ManagerOptions, 'env' | 'directory'> & {
  readonly clock: SystemClock;
  readonly log: Logger;
}): Promise<Simulation> {
  try {
    return await Simulation.start({
      clock,
      log,
      seed: 'try',
      stateDirectory: directory,
      cluster: { kubeconfig: '', env, nodeLeases: true, podStopMs: 0 },
    });
  } catch (err) {
    if (!(err instanceof StateDirectoryError)) throw err;
    throw new CommandError(
      `machinist try already runs for this cluster, as process ${err.pid}; stop it with Ctrl-C first`,
      {
        cause: err,
      },
    );
  }
}

/** The configuration that the flags of `machinist run` make. */
async function parsed(flags: readonly string[]): Promise<ParsedCommandLine> {
  const result = Promise.withResolvers<ParsedCommandLine>();
  const command = withFlags(new Command('run').exitOverride(), 'machinist run', WORLD_FLAGS, async (line) =>
    result.resolve(line),
  );
  await command.parseAsync([...flags], { from: 'user' });
  return await result.promise;
}

/** With the last thing that it called an error. */
function endedError(logFile: string): CommandError {
  const last = readFileSync(logFile, 'utf8')
    .split('\n')
    .findLast((line) => line.startsWith('{"level":"error"'));
  const { msg, err } = JSON.parse(last ?? '{}') as {
    readonly msg?: string;
    readonly err?: string | { readonly message?: string };
  };
  const why = typeof err === 'string' ? err : err?.message;
  const said = [msg, why].filter((part) => part !== undefined).join(': ');
  return new CommandError(`the manager ended${said === '' ? '' : ` (${said})`}; see ${logFile}`);
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
