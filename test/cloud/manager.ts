import { randomBytes } from 'node:crypto';
import { EventEmitter } from 'node:events';

import { freePort } from '../../hack/control-plane/ports.ts';
import { SystemClock } from '../../pkg/base/clock/system-clock.ts';
import { configFrom } from '../../pkg/operator/config/config.ts';
import { silentLogger } from '../../pkg/base/log/logger.ts';
import type { Logger } from '../../pkg/base/log/logger.ts';
import { autoscaler } from '../../pkg/autoscaler/index.ts';
import { controllers } from '../../pkg/controllers/index.ts';
import type { ServedWorld } from '../../pkg/controllers/world.ts';
import type { OperatorHooks } from '../../pkg/operator/manager-process.ts';
import { Operator } from '../../pkg/operator/operator.ts';
import { WORLDS } from '../../pkg/worlds/index.ts';
import { WORLD_FLAGS } from '../../pkg/worlds/flags.ts';

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

/** `machinist run` in this process. */
export class InProcessManager implements AsyncDisposable {
  readonly identity: string;
  /** Where it serves metrics and health. */
  readonly url: string;
  readonly operator: Operator;
  readonly #host: TestHost;
  readonly #ended: Promise<number>;

  private constructor(identity: string, operator: Operator, host: TestHost, ended: Promise<number>) {
    this.identity = identity;
    this.operator = operator;
    this.url = `http://127.0.0.1:${operator.config.server.port}`;
    this.#host = host;
    this.#ended = ended;
  }

  /** Resolves when it was started, not when it works. */
  static async start(options: RunOptions): Promise<InProcessManager> {
    const identity = `manager-${randomBytes(3).toString('hex')}`;
    const host = new TestHost();
    const flags = await flagsOf(options);
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
      ...(options.hooks === undefined ? {} : { hooks: options.hooks }),
    });
    const { worlds = WORLDS } = options;
    const ended = operator.run(controllers(operator, worlds), autoscaler(operator, worlds));
    return new InProcessManager(identity, operator, host, ended);
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
export async function flagsOf({ kubeconfig, namespace, driver, flags = {} }: RunOptions): Promise<Map<string, string>> {
  return new Map(
    Object.entries({
      namespace,
      'control-kubeconfig': kubeconfig,
      'target-kubeconfig': kubeconfig,
      ...(driver === undefined ? {} : { driver: `sim=${driver}` }),
      address: '127.0.0.1',
      port: String(await freePort()),
      'leader-elect': 'false',
      ...flags,
    }),
  );
}
