import PQueue from 'p-queue';

import type { MachineClass } from '../apis/machine/v1alpha1/machine-class.ts';
import type { Clock } from '../base/clock/clock.ts';
import { createThrottle, type Throttle } from '../base/clock/throttle.ts';
import { accountOf } from './account.ts';
import { TurnAbandonedError } from './turn-abandoned.ts';

export interface CallRatesOptions {
  readonly provider: string;
  /** Calls a second for each account; 0: no limit. */
  readonly qps: number;
  readonly clock: Clock;
  /** Told of each wait for a turn, in milliseconds, whether the turn came or the wait was given up. */
  readonly waited?: (waitedMs: number) => void;
}

/** Who waits for an account, one after the other: one that gives up uses up no turn of those behind it. */
interface Line {
  readonly queue: PQueue;
  readonly throttle: Throttle;
}

/** Keeps the calls of each account of a provider to a rate, so that one with many machines uses up no other's. */
export class CallRates {
  readonly #options: CallRatesOptions;
  readonly #lines = new Map<string, Line>();
  readonly #ended = new AbortController();

  constructor(options: CallRatesOptions) {
    this.#options = options;
  }

  /** Resolves when a call with the class's Secret may be sent. Throws TurnAbandonedError when `signal` is aborted first, or the process stops. */
  async acquire(machineClass: MachineClass, signal: AbortSignal): Promise<void> {
    const { provider, qps, clock, waited } = this.#options;
    if (qps <= 0) return;
    const { queue, throttle } = this.#lineOf(accountOf(provider, machineClass));
    const either = AbortSignal.any([signal, this.#ended.signal]);
    const fromMs = clock.monotonicMs();
    try {
      await queue.add(() => throttle.acquire(either), { signal: either });
    } catch (err) {
      throw new TurnAbandonedError(`the queued call to provider ${provider} was cancelled`, { cause: err });
    } finally {
      waited?.(clock.monotonicMs() - fromMs);
    }
  }

  /** Gives up whoever waits: a process that stops does not wait for calls that it has not sent. */
  async end(): Promise<void> {
    this.#ended.abort(new Error('the process is stopping'));
    await Promise.all([...this.#lines.values()].map(({ throttle }) => throttle.close()));
  }

  #lineOf(account: string): Line {
    const known = this.#lines.get(account);
    if (known !== undefined) return known;
    const { qps } = this.#options;
    const line = {
      queue: new PQueue({ concurrency: 1 }),
      // What was saved up in a second, and at least one call.
      throttle: createThrottle({ qps, burst: Math.max(1, Math.ceil(qps)) }),
    };
    this.#lines.set(account, line);
    return line;
  }
}
