import { randomBytes } from 'node:crypto';
import { EventEmitter } from 'node:events';

import { SystemClock } from '../../pkg/base/clock/system-clock.ts';
import { configFrom } from '../../pkg/operator/config/config.ts';
import { silentLogger } from '../../pkg/base/log/logger.ts';
import type { Logger } from '../../pkg/base/log/logger.ts';
import { autoscaler } from '../../pkg/autoscaler/index.ts';
import { controllers } from '../../pkg/controllers/index.ts';
import type { ServedWorld } from '../../pkg/controllers/world.ts';
import type { OperatorHooks } from '../../pkg/operator/manager-process.ts';
import { Operator } from '../../pkg/operator/operator.ts';
import { WORLDS } from '../../pkg/worlds/served.ts';
import { WORLD_FLAGS } from '../../pkg/worlds/index.ts';

/** How a manager is run. */
export interface RunOptions {
  /** Of the user that deploy/rbac binds; both clusters are one. */
  readonly kubeconfig: string;
  readonly namespace: string;
  /** Address of the driver of provider `sim`; undefined: none is called. */
  readonly driver?: string;
  /** Further flags, by name; without any there is no leader election. */
  readonly flags?: Readonly<Record<string, string>>;
  readonly hooks?: OperatorHooks;
  /** In place of all of them, where some are made with hooks of their own. */
  readonly worlds?: readonly ServedWorld[];
  readonly log?: Logger;
  readonly clock?: SystemClock;
}

/** A host of the manager that is not this process: signals are sent by `emit`. */
export class TestHost extends EventEmitter {
  exitedWith: number | undefined;

  exit(code: number): void {
    this.exitedWith = code;
  }
}

/**
 * Where a manager in this process serves metrics and health: a port that the kernel chooses when it listens. One that is looked for before may
 * be another manager's by then, so that this one ends.
 */
export class HealthPort {
  #port: number | undefined;
  readonly #listening = Promise.withResolvers<void>();

  /** The hook that tells it. */
  readonly health = (port: number): void => {
    this.#port = port;
    this.#listening.resolve();
  };

  /** Resolves when the manager listens, or has ended, as one that cannot start. */
  async known(ended: Promise<number>): Promise<void> {
    await Promise.race([this.#listening.promise, ended]);
  }

  /** Throws where nothing ever listened. */
  get url(): string {
    if (this.#port === undefined) throw new Error('the manager ended before it served health');
    return `http://127.0.0.1:${this.#port}`;
  }
}

/** `machinist run` in this process. */
export class InProcessManager implements AsyncDisposable {
  readonly identity: string;
  readonly operator: Operator;
  readonly #host: TestHost;
  readonly #health: HealthPort;
  readonly #ended: Promise<number>;

  private constructor(
    identity: string,
    operator: Operator,
    host: TestHost,
    health: HealthPort,
    ended: Promise<number>,
  ) {
    this.identity = identity;
    this.operator = operator;
    this.#host = host;
    this.#health = health;
    this.#ended = ended;
  }

  /** Resolves when it was started, not when it works. */
  static async start(options: RunOptions): Promise<InProcessManager> {
    const identity = `manager-${randomBytes(3).toString('hex')}`;
    const host = new TestHost();
    const health = new HealthPort();
    const flags = flagsOf(options);
    const config = configFrom(
      'machinist run',
      new Map([...flags].map(([name, value]) => [name, [value]])),
      WORLD_FLAGS,
    );
    const operator = await Operator.open({
      worlds: WORLDS,
      config,
      identity,
      version: 'test',
      env: {},
      clock: options.clock ?? new SystemClock(),
      log: options.log ?? silentLogger,
      host,
      hooks: { ...options.hooks, health: health.health },
    });
    const { worlds = WORLDS } = options;
    const ended = operator.run(controllers(operator, worlds), autoscaler(operator, worlds));
    await health.known(ended);
    return new InProcessManager(identity, operator, host, health, ended);
  }

  /** Where it serves metrics and health. */
  get url(): string {
    return this.#health.url;
  }

  /** The sum of one metric over the label values that match `labels`, a part of the exposition's text. */
  async metric(name: string, labels = ''): Promise<number> {
    return await metricAt(this.url, name, labels);
  }

  /** Resolves with the exit code when it has ended by itself. */
  get ended(): Promise<number> {
    return this.#ended;
  }

  /** SIGTERM; resolves with the exit code when it has ended. */
  async terminate(): Promise<number> {
    this.#host.emit('SIGTERM');
    return await this.#ended;
  }

  /** Everything that runs is given up. Anyone who calls it makes sure that nothing is mutated any more. */
  async abandon(): Promise<void> {
    this.#host.emit('uncaughtException', new Error('the process has died'));
    await this.#ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.abandon();
  }
}

/** The sum of one metric that a manager serves, over the label values that match `labels`. */
export async function metricAt(url: string, name: string, labels = ''): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const isOne = (line: string): boolean => line.startsWith(`${name}{`) || line.startsWith(`${name} `);
  const lines = text.split('\n').filter((line) => isOne(line) && line.includes(labels));
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

/** The flags of `machinist run`, by name. */
export function flagsOf({ kubeconfig, namespace, driver, flags = {} }: RunOptions): Map<string, string> {
  return new Map(
    Object.entries({
      namespace,
      'control-kubeconfig': kubeconfig,
      'target-kubeconfig': kubeconfig,
      ...(driver === undefined ? {} : { driver: `sim=${driver}` }),
      address: '127.0.0.1',
      'leader-elect': 'false',
      ...flags,
    }),
  );
}
