import type { Clock } from '../../clock/clock.ts';
import type { DriverError } from '../../driver/error.ts';
import { retryDelayMs, retryOf, type RetriedCall, type Retry } from '../../driver/retry.ts';

/** A provider that says a retry cannot succeed is still asked now and then: a VM must never be forgotten. */
const TERMINAL_RETRY_MS = 600_000;

/** What a call is made of; a failed call is repeated at once when any of it changed. */
export interface CallInput {
  readonly machineUID: string;
  readonly call: RetriedCall;
  /** Machine generation, MachineClass resourceVersion and Secret content, as one text. */
  readonly fingerprint: string;
  /** Machines of one class share a ResourceExhausted. */
  readonly classUID: string;
}

/** A call that failed, and when it may be made again. */
interface Attempt {
  readonly failures: number;
  /** Monotonic. */
  readonly notBeforeMs: number;
  readonly fingerprint: string;
  readonly error: DriverError | undefined;
}

/** A class whose provider is out of something. */
interface Exhaustion {
  readonly failures: number;
  readonly notBeforeMs: number;
  readonly error: DriverError;
}

/**
 * When provider calls that failed may be repeated, in memory. Events re-run decisions as often as they like; a provider is
 * asked again only when the wait is over, or the input of the call changed.
 *
 * ResourceExhausted closes the whole class for a wait that doubles with each failed try; the first success of any machine
 * of the class opens it again.
 */
export class Retries {
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #resourceExhaustedMs: number;
  readonly #attempts = new Map<string, Map<RetriedCall, Attempt>>();
  readonly #exhausted = new Map<string, Exhaustion>();

  constructor(options: { clock: Clock; resourceExhaustedRetryMs: number; random?: () => number }) {
    this.#clock = options.clock;
    this.#resourceExhaustedMs = options.resourceExhaustedRetryMs;
    this.#random = options.random ?? Math.random;
  }

  /** Milliseconds until the call may be made; 0: now. */
  waitMs(input: CallInput): number {
    const nowMs = this.#clock.monotonicMs();
    const attempt = this.#current(input);
    const exhaustion = this.#exhaustionFor(input);
    return Math.max(0, (attempt?.notBeforeMs ?? 0) - nowMs, (exhaustion?.notBeforeMs ?? 0) - nowMs);
  }

  /** Why the call must wait, if this process knows: its own last failure, or one that it shares with its class. */
  failureOf(input: CallInput): { readonly error: DriverError; readonly isOwn: boolean } | undefined {
    const attempt = this.#current(input);
    const error = attempt === undefined ? this.#exhaustionFor(input)?.error : attempt.error;
    return error === undefined ? undefined : { error, isOwn: attempt !== undefined };
  }

  /** The call was not made, or was no failure of the provider: it is made after `delayMs`, however often somebody looks. */
  postpone(input: CallInput, delayMs: number): void {
    this.#remember(input, undefined, this.#current(input)?.failures ?? 0, delayMs);
  }

  /** Remembers a failure; returns what follows from its code. */
  failed(input: CallInput, error: DriverError): Retry {
    const retry = retryOf(input.call, error.code, this.#resourceExhaustedMs);
    const failures = (this.#current(input)?.failures ?? 0) + 1;
    this.#remember(input, error, failures, this.#delay(retry, failures, error));
    if (retry.perClass) this.#exhaust(input.classUID, retry, error);
    return retry;
  }

  /** The call succeeded: the next failure counts as the first, and the class has something to give. */
  succeeded(input: CallInput): void {
    this.#attempts.get(input.machineUID)?.delete(input.call);
    if (input.call === 'create') this.#exhausted.delete(input.classUID);
  }

  /**
   * Takes over a failure that another process has recorded `agoMs` ago. Without effect when this process knows better. How
   * often it had failed is lost, so that the shortest wait applies; what concerns the whole class does so again.
   */
  restore(input: CallInput, error: DriverError, agoMs: number): void {
    if (this.#attempts.get(input.machineUID)?.has(input.call) === true) return;
    const retry = retryOf(input.call, error.code, this.#resourceExhaustedMs);
    const leftMs = Math.max(0, retry.firstMs - Math.max(0, agoMs));
    this.#remember(input, undefined, 1, leftMs);
    if (!retry.perClass || leftMs === 0 || this.#exhausted.has(input.classUID)) return;
    this.#exhausted.set(input.classUID, { failures: 1, notBeforeMs: this.#clock.monotonicMs() + leftMs, error });
  }

  /** The Machine is gone. */
  forget(machineUID: string): void {
    this.#attempts.delete(machineUID);
  }

  #current(input: CallInput): Attempt | undefined {
    const attempt = this.#attempts.get(input.machineUID)?.get(input.call);
    return attempt?.fingerprint === input.fingerprint ? attempt : undefined;
  }

  #exhaustionFor({ call, classUID }: CallInput): Exhaustion | undefined {
    return call === 'create' ? this.#exhausted.get(classUID) : undefined;
  }

  #remember(
    { machineUID, call, fingerprint }: CallInput,
    error: DriverError | undefined,
    failures: number,
    waitMs: number,
  ): void {
    const attempts = this.#attempts.get(machineUID) ?? new Map<RetriedCall, Attempt>();
    attempts.set(call, { failures, fingerprint, error, notBeforeMs: this.#clock.monotonicMs() + waitMs });
    this.#attempts.set(machineUID, attempts);
  }

  /** Calls that were under way when the class was closed say nothing new. */
  #exhaust(classUID: string, retry: Retry, error: DriverError): void {
    const nowMs = this.#clock.monotonicMs();
    const known = this.#exhausted.get(classUID);
    if (known !== undefined && known.notBeforeMs > nowMs) return;
    const failures = (known?.failures ?? 0) + 1;
    const notBeforeMs = nowMs + this.#delay(retry, failures, error);
    this.#exhausted.set(classUID, { failures, notBeforeMs, error });
  }

  #delay(retry: Retry, failures: number, error: DriverError): number {
    const delayMs = retryDelayMs(retry, failures, this.#random(), error.retryAfterMs ?? 0);
    return error.terminal ? Math.max(delayMs, TERMINAL_RETRY_MS) : delayMs;
  }
}
