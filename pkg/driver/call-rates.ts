import type { MachineClass } from '../apis/machine/v1alpha1/machine-class.ts';
import type { Clock } from '../clock/clock.ts';
import { createThrottle, type Throttle } from '../clock/throttle.ts';
import { accountOf } from './account.ts';

/** What the rates of one provider's calls are made of. */
export interface CallRatesOptions {
  readonly provider: string;
  /** Calls a second for each account; 0: no limit. */
  readonly qps: number;
  readonly clock: Clock;
  /** Told of each wait for a call, in milliseconds. */
  readonly waited?: (waitedMs: number) => void;
}

/** Keeps the calls of each account of a provider to a rate, so that one with many machines uses up no other's. */
export class CallRates {
  readonly #options: CallRatesOptions;
  readonly #throttles = new Map<string, Throttle>();
  readonly #ended = new AbortController();

  constructor(options: CallRatesOptions) {
    this.#options = options;
  }

  /** Resolves when a call with the class's Secret may be sent; rejects with the signal's reason when it is aborted first. */
  async acquire(machineClass: MachineClass, signal: AbortSignal): Promise<void> {
    const { provider, qps, clock, waited } = this.#options;
    if (qps <= 0) return;
    const account = accountOf(provider, machineClass);
    let throttle = this.#throttles.get(account);
    if (throttle === undefined) {
      throttle = createThrottle({ qps, burst: burstOf(qps), clock, waited });
      this.#throttles.set(account, throttle);
    }
    await throttle.acquire(AbortSignal.any([signal, this.#ended.signal]));
  }

  /** Gives up whoever waits: a process that stops does not wait for calls that it has not sent. */
  async end(): Promise<void> {
    this.#ended.abort(new Error('the process is stopping'));
    await Promise.all([...this.#throttles.values()].map((throttle) => throttle.close()));
  }
}

/** What was saved up in a second, and at least one call. */
function burstOf(qps: number): number {
  return Math.max(1, Math.ceil(qps));
}
