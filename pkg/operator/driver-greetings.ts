import { ReconnectBackoff } from '../kube/cache/reconnect-backoff.ts';
import type { Clock } from '../base/clock/clock.ts';
import type { MachineDriver } from '../driver/gated-driver.ts';
import type { Logger } from '../base/log/logger.ts';
import type { Member } from './process/lifecycle.ts';
import type { Random } from '../base/random/random.ts';

/** A driver is looked at so often; while it is connected, no call is needed for that. */
const CHECK_EACH_MS = 10_000;

type Greeted = Pick<MachineDriver, 'capabilities' | 'provider'>;

export interface DriverGreetingsOptions {
  readonly drivers: readonly Greeted[];
  readonly clock: Clock;
  readonly random?: Random | undefined;
  readonly log: Logger;
}

/**
 * Asks each driver who it is before the process leads, and again whenever its connection was lost, so that one that cannot be reached, or
 * speaks another contract, is told, and that it is back, by a process that stands by, or has nothing to ask it, too. Nobody waits for an
 * answer: the connection itself tells and shows what is wrong.
 */
export class DriverGreetings implements Member {
  readonly name = 'greetings of drivers';
  readonly #options: DriverGreetingsOptions;
  readonly #stopping = new AbortController();
  #running: readonly Promise<void>[] = [];

  constructor(options: DriverGreetingsOptions) {
    this.#options = options;
  }

  start(): Promise<void> {
    this.#running = this.#options.drivers.map((driver) => this.#greet(driver));
    return Promise.resolve();
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new Error('the process is stopping'));
    await Promise.all(this.#running);
  }

  /** Never rejects. */
  async #greet(driver: Greeted): Promise<void> {
    const { clock, log, random } = this.#options;
    const { signal } = this.#stopping;
    const backoff = new ReconnectBackoff(clock, { random, longestMs: CHECK_EACH_MS });
    while (!signal.aborted) {
      let pauseMs = CHECK_EACH_MS;
      try {
        await driver.capabilities(signal);
        backoff.reached();
      } catch (err) {
        log.debug({ provider: driver.provider, err }, 'driver did not respond');
        pauseMs = backoff.next();
      }
      await clock.sleep(pauseMs, signal).catch(() => undefined);
    }
  }
}
