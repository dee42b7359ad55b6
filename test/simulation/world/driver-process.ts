import type { DriverCall } from '../../../pkg/driver/driver.ts';
import { DriverError } from '../../../pkg/driver/error.ts';
import type { VirtualTime } from './virtual-clock.ts';

/**
 * The process of a driver, which may be started again. What it had not answered by then is never answered; what it had begun at the provider
 * ends there, or goes on. Fencing tokens are no memory of it: by the contract they outlive a restart.
 */
export class DriverProcess {
  /** Called once, when a call begins. */
  atNextCall: (() => void) | undefined;
  readonly #time: VirtualTime;
  /** Each ends a call that runs; true: what it has begun goes on. */
  readonly #running = new Set<(goesOn: boolean) => void>();
  #upMs = 0;

  constructor(time: VirtualTime) {
    this.#time = time;
  }

  /** It ends, and cannot be reached for so long. */
  restart(awayMs: number, goesOn: () => boolean): void {
    this.#upMs = this.#time.elapsedMs + awayMs;
    const ended = [...this.#running];
    this.#running.clear();
    for (const end of ended) end(goesOn());
  }

  /** Throws DriverError while it cannot be reached: nothing is sent. */
  requireReachable(): void {
    if (this.#time.elapsedMs < this.#upMs) throw new DriverError('Unavailable', 'the driver did not respond');
  }

  /** A call that ends with it. */
  call<T>(method: string, isChange: boolean, call: DriverCall, send: (call: DriverCall) => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const stop = new AbortController();
      const end = (goesOn: boolean): void => {
        if (!goesOn) stop.abort(new Error('the driver has ended'));
        reject(new DriverError('Unavailable', `${method} was not answered: UNAVAILABLE`, { unanswered: isChange }));
      };
      this.#running.add(end);
      this.atNextCall?.();
      this.atNextCall = undefined;
      const signal = AbortSignal.any([call.signal, stop.signal]);
      void send({ ...call, signal })
        .finally(() => this.#running.delete(end))
        .then(resolve, reject);
    });
  }
}
