import { randomBytes } from 'node:crypto';

import { SystemClock } from '../../pkg/base/clock/system-clock.ts';
import { silentLogger, type Logger } from '../../pkg/base/log/logger.ts';
import { autoscalerOfCells } from '../../pkg/autoscaler/cells-port.ts';
import { controllers } from '../../pkg/controllers/index.ts';
import { CellsProcess } from '../../pkg/operator/cells/cells-process.ts';
import { configFrom } from '../../pkg/operator/config/config.ts';
import type { OperatorHooks } from '../../pkg/operator/manager-process.ts';
import { WORLD_FLAGS } from '../../pkg/worlds/index.ts';
import { WORLDS } from '../../pkg/worlds/served.ts';
import { grant } from '../integration/shipped-roles.ts';
import { flagsOf, HealthPort, TestHost } from './manager.ts';
import { Site } from './site.ts';

/** Namespace of the Leases. */
export const CELL_LEASES = 'machinist';

/** A control cluster for cells, with the namespace of the Leases and the roles that are shipped. */
export async function cellsControl(): Promise<Site> {
  const control = await Site.drawn();
  await control.api.send('POST', '/api/v1/namespaces', { metadata: { name: CELL_LEASES } });
  await grant(control.api, 'cells', CELL_LEASES);
  return control;
}

/** Flags of replicas of which another one takes the place soon. A busy host may stand still for seconds: they renew for the usual time. */
export const QUICK_LEASES = {
  'leader-elect': 'true',
  'leader-elect-lease-duration': '15s',
  'leader-elect-renew-deadline': '10s',
  'leader-elect-retry-period': '500ms',
};

/** How it is run. */
export interface CellsOptions {
  /** Of the user that deploy/rbac binds, in the control cluster. */
  readonly kubeconfig: string;
  /** Namespace of the Leases. */
  readonly namespace: string;
  /** As `--driver` takes them. */
  readonly drivers: string;
  /** Further flags, by name; without any there is no leader election. */
  readonly flags?: Readonly<Record<string, string>>;
  readonly hooks?: OperatorHooks;
  readonly log?: Logger;
  readonly clock?: SystemClock;
}

/** `machinist run --cells` in this process. */
export class CellsManager implements AsyncDisposable {
  readonly identity: string;
  readonly process: CellsProcess;
  readonly #host: TestHost;
  readonly #health: HealthPort;
  readonly #ended: Promise<number>;

  private constructor(
    identity: string,
    process: CellsProcess,
    host: TestHost,
    health: HealthPort,
    ended: Promise<number>,
  ) {
    this.identity = identity;
    this.process = process;
    this.#host = host;
    this.#health = health;
    this.#ended = ended;
  }

  /** Resolves when it was started, not when it works. */
  static async start({
    drivers,
    log = silentLogger,
    clock = new SystemClock(),
    hooks,
    ...options
  }: CellsOptions): Promise<CellsManager> {
    const identity = `replica-${randomBytes(3).toString('hex')}`;
    const host = new TestHost();
    const health = new HealthPort();
    const flags = flagsOf({
      ...options,
      flags: {
        driver: drivers,
        'target-kubeconfig': '',
        cells: 'cell',
        'cell-kubeconfig-secret': 'target',
        ...options.flags,
      },
    });
    const config = configFrom(
      'machinist run',
      new Map([...flags].map(([name, value]) => [name, [value]])),
      WORLD_FLAGS,
    );
    if (config.cells === undefined) throw new Error('the flags name no cells');
    const process = await CellsProcess.open(
      {
        worlds: WORLDS,
        config,
        identity,
        version: 'test',
        env: {},
        clock,
        log,
        host,
        hooks: { ...hooks, health: health.health },
      },
      config.cells,
      (operator) => controllers(operator, WORLDS),
      autoscalerOfCells(WORLDS),
    );
    const ended = process.run();
    await health.known(ended);
    return new CellsManager(identity, process, host, health, ended);
  }

  /** Where it serves metrics and health. */
  get url(): string {
    return this.#health.url;
  }

  /** Text of a page of the health port. */
  async page(path: string): Promise<string> {
    return await (await fetch(`${this.url}${path}`)).text();
  }

  /** Resolves with the exit code when it has ended. */
  get ended(): Promise<number> {
    return this.#ended;
  }

  /** SIGTERM; resolves with the exit code when it has ended. */
  async terminate(): Promise<number> {
    this.#host.emit('SIGTERM');
    return await this.#ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#host.emit('uncaughtException', new Error('the process has died'));
    await this.#ended;
  }
}
