import { EventEmitter } from 'node:events';

import type { Dispatcher } from 'undici';

import { autoscaler, type ListenForAutoscalers } from '../../../pkg/autoscaler/index.ts';
import type { RpcHandler } from '../../../pkg/autoscaler/grpc-server.ts';
import { configFrom } from '../../../pkg/operator/config/config.ts';
import { controllers } from '../../../pkg/controllers/index.ts';
import type { ServedWorld } from '../../../pkg/controllers/world.ts';
import type { Driver } from '../../../pkg/driver/driver.ts';
import { foreignEndpoint } from '../../../pkg/kube/client/config.ts';
import type { OpenEndpoint } from '../../../pkg/kube/client/endpoint.ts';
import type { LogFields, Logger } from '../../../pkg/base/log/logger.ts';
import { CellsProcess } from '../../../pkg/operator/cells/cells-process.ts';
import type { Cells } from '../../../pkg/operator/cells/cells.ts';
import type { OperatorOptions } from '../../../pkg/operator/manager-process.ts';
import { Operator } from '../../../pkg/operator/operator.ts';
import type { Random } from '../../../pkg/base/random/random.ts';
import type { VirtualClock } from './virtual-clock.ts';
import { WORLD_FLAGS } from '../../../pkg/worlds/index.ts';

/** Connections to a server, and how many of their requests have not ended. */
export type Connection = Dispatcher & { readonly open: number };

/** Flags by name; some may be given several times. */
export type Flags = Readonly<Record<string, string | readonly string[]>>;

/** What a process of the program runs with. */
export interface ProcessParts {
  readonly flags: Flags;
  readonly clock: VirtualClock;
  /** By which it holds Leases. */
  readonly identity: string;
  readonly version: string;
  readonly random: Random;
  /** That of a provider. */
  readonly openDriver: (provider: string) => Driver;
  readonly worlds: readonly ServedWorld[];
  readonly openDispatcher: (server: string) => Connection;
  readonly openEndpoint: OpenEndpoint;
  /** Told of its log, from info on. */
  readonly told: (text: string) => void;
}

/** A host whose signals are sent by `emit`. */
class Host extends EventEmitter {
  exit(): void {
    // What a dead process does is not heard of.
  }

  /** One that was killed never says that it has ended. */
  keepAlive(): () => void {
    return () => undefined;
  }
}

/** `machinist run` in a world: the whole program above its connections, its driver and its clock. */
export class SimulatedProcess {
  readonly identity: string;
  readonly clock: VirtualClock;
  /** Of a process that has ended by itself. */
  exitCode: number | undefined;
  /** Answers cluster-autoscalers; undefined: it has no port for them, or not yet. */
  answer: RpcHandler | undefined;
  /** The cells that it manages; undefined: it manages the namespace of its flags. */
  cells: Cells | undefined;
  #operator: Operator | undefined;
  readonly #host: Host;
  readonly #connections: readonly Connection[];

  private constructor(identity: string, clock: VirtualClock, host: Host, connections: readonly Connection[]) {
    this.identity = identity;
    this.clock = clock;
    this.#host = host;
    this.#connections = connections;
  }

  /** Whether it waits for the end of an outage, of any cluster. */
  get hasOutage(): boolean {
    const cells = [...(this.cells?.running.values() ?? [])];
    return [this.#operator?.outages ?? [], ...cells.map(({ outages }) => outages.current())].some(
      (one) => one.length > 0,
    );
  }

  /** Timers and requests that it waits for. */
  get pending(): { readonly timers: number; readonly requests: number } {
    return { timers: this.clock.timers, requests: this.#connections.reduce((sum, { open }) => sum + open, 0) };
  }

  /** Starts one. What it reads from the host it has read when this resolves: after it nothing waits for anything but the world. */
  static async start(parts: ProcessParts): Promise<SimulatedProcess> {
    const { clock, identity, version, random, told, openDispatcher, openEndpoint } = parts;
    const host = new Host();
    const connections: Connection[] = [];
    const config = configFrom(
      'machinist run',
      new Map(Object.entries(parts.flags).map(([name, given]) => [name, [given].flat()])),
      WORLD_FLAGS,
    );
    const options: OperatorOptions = {
      worlds: parts.worlds,
      config,
      identity,
      version,
      env: {},
      clock,
      log: loggerTo(told),
      host,
      hooks: {
        random,
        openDispatcher: (server) => {
          const connection = openDispatcher(server);
          connections.push(connection);
          return connection;
        },
        openEndpoint,
        openDriver: (provider) => mortal(parts.openDriver(provider), clock),
        leasesInMainThread: true,
        health: 'none',
      },
    };
    if (config.cells !== undefined) {
      await readReader(clock);
      const process = await CellsProcess.open(options, config.cells, (operator) => controllers(operator, parts.worlds));
      const started = new SimulatedProcess(identity, clock, host, connections);
      started.cells = process.cells;
      void started.#follow(process.run());
      return started;
    }
    const operator = await Operator.open(options);
    const started = new SimulatedProcess(identity, clock, host, connections);
    started.#operator = operator;
    const listen: ListenForAutoscalers = ({ answer }) => {
      started.answer = answer;
      const close = (): Promise<void> => {
        started.answer = undefined;
        return Promise.resolve();
      };
      return Promise.resolve({ address: identity, drop: () => undefined, close });
    };
    void started.#follow(operator.run(controllers(operator, parts.worlds), autoscaler(operator, parts.worlds, listen)));
    return started;
  }

  async #follow(running: Promise<number>): Promise<void> {
    this.exitCode = await running;
  }

  /** Asks it to end, as SIGTERM does. */
  terminate(): void {
    this.#host.emit('SIGTERM');
  }

  /** It has died: it does nothing any more, and hears nothing. */
  kill(): void {
    this.clock.kill();
  }
}

/** Loads what reads kubeconfigs, which the host takes its time for once. */
async function readReader(clock: VirtualClock): Promise<void> {
  const content = { kubeconfig: kubeconfigOf('https://nowhere', 'none') };
  await (await foreignEndpoint({ content, clock })).credentials();
}

/** As it stands in the Secret of a cell. */
export function kubeconfigOf(server: string, token: string): string {
  const name = 'target';
  return JSON.stringify({
    clusters: [{ name, cluster: { server } }],
    users: [{ name, user: { token } }],
    contexts: [{ name, context: { cluster: name, user: name } }],
    'current-context': name,
  });
}

/** A driver whose answers do not reach a process that has died; what it was asked goes on. */
function mortal(driver: Driver, clock: VirtualClock): Driver {
  return new Proxy(driver, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (name === 'close') return () => Promise.resolve();
      if (typeof member !== 'function') return member;
      return async (...given: unknown[]) => {
        if (clock.isDead) return new Promise(() => undefined);
        return new Promise((resolve, reject) => {
          (member.apply(target, given) as Promise<unknown>).then(
            (answer) => clock.deliver(() => resolve(answer)),
            (err: unknown) => clock.deliver(() => reject(err)),
          );
        });
      };
    },
  });
}

function loggerTo(tell: (text: string) => void): Logger {
  const at =
    (level: string) =>
    (fields: LogFields, message: string): void => {
      const { err, ...others } = fields as Readonly<Record<string, unknown>>;
      const why = err instanceof Error ? { err: err.message } : err === undefined ? {} : { err };
      tell(`${level} ${message} ${JSON.stringify({ ...others, ...why })}`);
    };
  const logger: Logger = {
    error: at('error'),
    warn: at('warn'),
    info: at('info'),
    debug: () => undefined,
    child: ({ cell }) => (typeof cell === 'string' ? loggerTo((text) => tell(`${cell} ${text}`)) : logger),
  };
  return logger;
}
