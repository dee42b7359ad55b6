import type { Driver } from '../../driver/driver.ts';
import type { MachineDriver } from '../../driver/gated-driver.ts';
import type { OpenDriver } from '../drivers.ts';
import { openDriver } from '../drivers.ts';
import type { ManagerProcess } from '../manager-process.ts';
import type { Member } from '../process/lifecycle.ts';

/** The drivers of a process, connected to once; each cell puts its own gate, limits and accounts before them. */
export class SharedDrivers implements Member {
  readonly name = 'drivers';
  readonly #opened: ReadonlyMap<string, OpenDriver>;

  /** Throws DriverAddressError. */
  constructor({ held, metrics, options }: ManagerProcess) {
    const { config, clock, log, hooks } = options;
    const how = { clock, log, held, metrics: metrics.driver, hooks, work: 'process' };
    this.#opened = new Map(config.drivers.map((address) => [address.provider, openDriver(address, how)]));
  }

  /** That of a provider of the flags. */
  of(provider: string): Driver {
    const opened = this.#opened.get(provider);
    if (opened === undefined) throw new Error(`no driver for provider ${provider}`);
    return opened.driver;
  }

  /** Those that are asked who they are, see DriverGreetings. */
  get greeted(): readonly Pick<MachineDriver, 'capabilities' | 'provider'>[] {
    return [...this.#opened].map(([provider, { driver }]) => ({
      provider,
      capabilities: (signal) => driver.capabilities(signal),
    }));
  }

  start(): Promise<void> {
    return Promise.resolve();
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#opened.values()].map((opened) => opened.close()));
  }
}
