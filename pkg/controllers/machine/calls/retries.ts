import type { Clock } from '../../../base/clock/clock.ts';
import { isTimeout } from '../../../driver/deadlines.ts';
import type { DriverError } from '../../../driver/error.ts';
import { retryDelayMs, retryOf, type RetriedCall, type Retry } from '../../../driver/retry.ts';
import { type Random, secureRandom } from '../../../base/random/random.ts';

/** A provider that says a retry cannot succeed is still asked now and then: a VM must never be forgotten. */
const TERMINAL_RETRY_MS = 600_000;

/** A provider that made a VM so recently has not run out of anything: it makes fewer VMs than are asked for. */
const GIVING_MS = 60_000;
/** The first wait of a class that got a VM a moment ago. */
const SOON_MS = 5_000;

/**
 * While deletions of its class succeed, a failed one waits no longer than this: the provider is well, and the machine was unlucky. One that
 * has failed so often in a row has a reason of its own.
 */
const UNLUCKY_MS = 10_000;
const UNLUCKY_FAILURES = 8;

/**
 * When a class may be tried again, so many machines may fail in so long a time before it closes: one that has bad luck must not speak for
 * all. Half of the creations of 20 machines refused, one after the other, cost 51 s instead of 196 s (medians), and no call more.
 */
const TRIES = 8;
const TRYING_MS = 2_000;

/** What a call is made of; a failed call is repeated at once when any of it changed. */
export interface CallInput {
  readonly machineUID: string;
  readonly call: RetriedCall;
  /** Machine generation, MachineClass resourceVersion and Secret content, as one text. */
  readonly fingerprint: string;
  /** Machines of one class share a ResourceExhausted. */
  readonly classUID: string;
  /** Changes with what the class says and with its Secrets: what was learned of another version of it says nothing of this one. */
  readonly classVersion: string;
  /** Somebody has requested a retry of this Machine's calls: with this fingerprint, the first is made whatever its class waits for. */
  readonly isRequested: boolean;
}

export interface CallFailure {
  readonly error: DriverError;
  /** Its own last failure, not one that it shares with its class. */
  readonly isOwn: boolean;
  /** For so long it has had nothing but failures, as far as this process knows, in ms. */
  readonly forMs: number;
}

/** A failed call that waits to be repeated. */
export interface HeldRetry {
  readonly machineUID: string;
  readonly call: RetriedCall;
  readonly classUID: string;
  readonly failures: number;
  /** Undefined where another process has recorded it. */
  readonly error: DriverError | undefined;
  /** Since when it has failed, and when it may be made again; monotonic. */
  readonly sinceMs: number;
  readonly notBeforeMs: number;
}

/** A class whose provider is out of something. */
export interface HeldClass {
  readonly classUID: string;
  readonly failures: number;
  readonly error: DriverError;
  /** When its machines may try again; monotonic. */
  readonly notBeforeMs: number;
}

interface Attempt {
  readonly failures: number;
  /** How often in a row it had no answer in its time. */
  readonly timeouts: number;
  /** Since when it has failed each time; monotonic, as the next. */
  readonly sinceMs: number | undefined;
  readonly notBeforeMs: number;
  readonly fingerprint: string;
  readonly classUID: string;
  readonly error: DriverError | undefined;
  /** The call was answered since: this counts only if that answer is refused. */
  readonly isOver: boolean;
}

const NONE: Pick<Attempt, 'failures' | 'timeouts' | 'sinceMs'> = { failures: 0, timeouts: 0, sinceMs: undefined };

interface Exhaustion {
  readonly classVersion: string;
  readonly failures: number;
  /** Of the waits that double. */
  readonly firstMs: number;
  /** Until then other machines may try; monotonic, as the next. */
  readonly closedFromMs: number;
  readonly notBeforeMs: number;
  /** Machines that failed since it was last open. */
  readonly tries: number;
  readonly error: DriverError;
}

/**
 * When provider calls that failed may be repeated, in memory. Events re-run decisions as often as they like; a provider is
 * asked again only when the wait is over, or the input of the call changed.
 *
 * ResourceExhausted closes the whole class for a wait that doubles each time that a few machines have tried in vain, and the machine itself
 * for a short one that does not; the first success of any machine of the class opens it again. A failed deletion waits shortly while others
 * of the class succeed.
 */
export class Retries {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #resourceExhaustedMs: number;
  readonly #attempts = new Map<string, Map<RetriedCall, Attempt>>();
  readonly #exhausted = new Map<string, Exhaustion>();
  /** When (monotonic) a machine of the class last got a VM, and of which version of it. */
  readonly #given = new Map<string, { readonly classVersion: string; readonly atMs: number }>();
  /** When (monotonic) a VM of the class was last deleted. */
  readonly #deleted = new Map<string, number>();
  /** The version of each class that was seen last: an answer to a call that was sent for another one comes late. */
  readonly #versions = new Map<string, string>();

  constructor(options: { clock: Clock; resourceExhaustedRetryMs: number; random?: Random | undefined }) {
    this.#clock = options.clock;
    this.#resourceExhaustedMs = options.resourceExhaustedRetryMs;
    this.#random = options.random ?? secureRandom;
  }

  /** The class says this now: that another version of it was out of something is over. */
  see({ classUID, classVersion }: CallInput): void {
    this.#versions.set(classUID, classVersion);
    if (this.#exhausted.get(classUID)?.classVersion !== classVersion) this.#exhausted.delete(classUID);
  }

  /** Milliseconds until the call may be made; 0: now. */
  waitMs(input: CallInput): number {
    const nowMs = this.#clock.monotonicMs();
    const attempt = this.#current(input);
    const exhaustion = this.#exhaustionFor(input);
    const ownMs = Math.max(0, (attempt?.notBeforeMs ?? 0) - nowMs);
    // Who has just tried in vain waits with its class, whoever else may try.
    const mayTry =
      exhaustion === undefined ||
      (input.isRequested && attempt === undefined) ||
      (nowMs < exhaustion.closedFromMs && ownMs === 0);
    return mayTry ? ownMs : Math.max(ownMs, exhaustion.notBeforeMs - nowMs);
  }

  /** Why the call must wait, if this process knows: its own last failure, or one that it shares with its class. */
  failureOf(input: CallInput): CallFailure | undefined {
    const attempt = this.#current(input);
    const error = attempt === undefined ? this.#exhaustionFor(input)?.error : attempt.error;
    if (error === undefined) return undefined;
    const nowMs = this.#clock.monotonicMs();
    return { error, isOwn: attempt !== undefined, forMs: nowMs - (attempt?.sinceMs ?? nowMs) };
  }

  failuresOf(input: CallInput): number {
    return this.#current(input)?.failures ?? 0;
  }

  timeoutsOf(input: CallInput): number {
    return this.#current(input)?.timeouts ?? 0;
  }

  /** The call was not made, or was no failure of the provider: it is made after `delayMs`, however often somebody looks. */
  postpone(input: CallInput, delayMs: number): void {
    const { failures, timeouts, sinceMs } = this.#current(input) ?? NONE;
    this.#remember(input, { failures, timeouts, sinceMs, error: undefined }, delayMs);
  }

  /** Remembers a failure; returns what follows from its code. */
  failed(input: CallInput, error: DriverError): Retry {
    return this.#failedAfter(input, error, this.#current(input));
  }

  /** The last answer cannot be true, and counts as a failure like those before it. */
  refused(input: CallInput, error: DriverError): Retry {
    return this.#failedAfter(input, error, this.#lastOf(input));
  }

  #failedAfter(input: CallInput, error: DriverError, before: Attempt | undefined): Retry {
    const retry = retryOf(input.call, error.code, this.#resourceExhaustedMs);
    const known = before ?? NONE;
    const failures = known.failures + 1;
    const timeouts = isTimeout(error) ? known.timeouts + 1 : 0;
    const own = retry.perClass ? this.#exhaust(input, retry, error) : this.#amongOthers(input, retry, failures);
    const sinceMs = known.sinceMs ?? this.#clock.monotonicMs();
    this.#remember(input, { failures, timeouts, sinceMs, error }, this.#delay(own, failures, error));
    return retry;
  }

  /** The call succeeded: the next failure counts as the first, and the class has something to give. */
  succeeded(input: CallInput): void {
    const ofMachine = this.#attempts.get(input.machineUID);
    const last = ofMachine?.get(input.call);
    if (last !== undefined) ofMachine?.set(input.call, { ...last, isOver: true });
    if (this.#isOutdated(input)) return;
    const { call, classUID, classVersion } = input;
    if (call === 'delete') this.#deleted.set(classUID, this.#clock.monotonicMs());
    if (call !== 'create') return;
    this.#exhausted.delete(classUID);
    this.#given.set(classUID, { classVersion, atMs: this.#clock.monotonicMs() });
  }

  /**
   * Takes over a failure that another process has recorded `agoMs` ago. Without effect when this process knows better. How
   * often it had failed is lost, so that the shortest wait applies; what concerns the whole class does so again.
   */
  restore(input: CallInput, error: DriverError, agoMs: number): void {
    if (this.#attempts.get(input.machineUID)?.get(input.call)?.isOver === false) return;
    const retry = retryOf(input.call, error.code, this.#resourceExhaustedMs);
    const leftMs = Math.max(0, retry.firstMs - Math.max(0, agoMs));
    this.#remember(input, { ...NONE, failures: 1, error: undefined }, leftMs);
    if (!retry.perClass || leftMs === 0 || this.#exhaustionOf(input) !== undefined) return;
    const nowMs = this.#clock.monotonicMs();
    const { firstMs } = retry;
    const { classUID, classVersion } = input;
    const notBeforeMs = nowMs + leftMs;
    const closed = { classVersion, failures: 1, firstMs, closedFromMs: nowMs, notBeforeMs, tries: 1, error };
    this.#exhausted.set(classUID, closed);
  }

  /** Calls that failed and may not be repeated yet. */
  held(): readonly HeldRetry[] {
    const nowMs = this.#clock.monotonicMs();
    return [...this.#attempts].flatMap(([machineUID, calls]) =>
      [...calls].flatMap(([call, { failures, notBeforeMs, classUID, isOver, error, sinceMs = nowMs }]) =>
        !isOver && failures > 0 && notBeforeMs > nowMs
          ? [{ machineUID, call, classUID, failures, error, sinceMs, notBeforeMs }]
          : [],
      ),
    );
  }

  /** Classes that are closed until then. */
  heldClasses(): readonly HeldClass[] {
    const nowMs = this.#clock.monotonicMs();
    return [...this.#exhausted].flatMap(([classUID, { failures, error, notBeforeMs }]) =>
      notBeforeMs > nowMs ? [{ classUID, failures, error, notBeforeMs }] : [],
    );
  }

  /** Whether the provider of a class is out of something, as far as anybody knows. */
  isExhausted(classUID: string): boolean {
    return this.#exhausted.has(classUID);
  }

  forget(machineUID: string): void {
    this.#attempts.delete(machineUID);
  }

  #current(input: CallInput): Attempt | undefined {
    const last = this.#lastOf(input);
    return last?.isOver === false ? last : undefined;
  }

  #lastOf(input: CallInput): Attempt | undefined {
    const attempt = this.#attempts.get(input.machineUID)?.get(input.call);
    return attempt?.fingerprint === input.fingerprint ? attempt : undefined;
  }

  #exhaustionFor(input: CallInput): Exhaustion | undefined {
    return input.call === 'create' ? this.#exhaustionOf(input) : undefined;
  }

  /** That of this very version of the class: somebody may have changed the class because of it. */
  #exhaustionOf({ classUID, classVersion }: CallInput): Exhaustion | undefined {
    const known = this.#exhausted.get(classUID);
    return known?.classVersion === classVersion ? known : undefined;
  }

  /** Whether the class has become another one since the call was sent. */
  #isOutdated({ classUID, classVersion }: CallInput): boolean {
    return (this.#versions.get(classUID) ?? classVersion) !== classVersion;
  }

  #remember(
    { machineUID, call, fingerprint, classUID }: CallInput,
    attempt: Pick<Attempt, 'failures' | 'timeouts' | 'sinceMs' | 'error'>,
    waitMs: number,
  ): void {
    const attempts = this.#attempts.get(machineUID) ?? new Map<RetriedCall, Attempt>();
    attempts.set(call, {
      ...attempt,
      fingerprint,
      classUID,
      notBeforeMs: this.#clock.monotonicMs() + waitMs,
      isOver: false,
    });
    this.#attempts.set(machineUID, attempts);
  }

  /**
   * Closes the class: at once when it was open to all, else when a few machines have tried again; calls that were under way when it was
   * closed say nothing new. Returns how the machine itself waits: as long as its class does at first.
   */
  #exhaust(input: CallInput, retry: Retry, error: DriverError): Retry {
    const { classUID, classVersion } = input;
    const nowMs = this.#clock.monotonicMs();
    const known = this.#exhaustionOf(input);
    const given = this.#given.get(classUID);
    const hasGiven = given?.classVersion === classVersion && nowMs - given.atMs < GIVING_MS;
    const firstMs = known?.firstMs ?? Math.min(retry.firstMs, hasGiven ? SOON_MS : Infinity);
    if (this.#isOutdated(input)) return { ...retry, firstMs, maxMs: firstMs };
    if (known !== undefined && nowMs < known.closedFromMs) {
      const tries = known.tries + 1;
      const closedFromMs = tries < TRIES ? known.closedFromMs : nowMs;
      this.#exhausted.set(classUID, { ...known, tries, closedFromMs, error });
    } else if (known === undefined || known.notBeforeMs <= nowMs) {
      const failures = (known?.failures ?? 0) + 1;
      const closedFromMs = known === undefined ? nowMs : nowMs + TRYING_MS;
      const notBeforeMs = nowMs + this.#delay({ ...retry, firstMs }, failures, error);
      this.#exhausted.set(classUID, { classVersion, failures, firstMs, closedFromMs, notBeforeMs, tries: 1, error });
    }
    return { ...retry, firstMs, maxMs: firstMs };
  }

  /** How a call waits that failed alone. */
  #amongOthers({ call, classUID }: CallInput, retry: Retry, failures: number): Retry {
    const sinceMs = this.#clock.monotonicMs() - (this.#deleted.get(classUID) ?? -Infinity);
    const isUnlucky = call === 'delete' && failures <= UNLUCKY_FAILURES && sinceMs < GIVING_MS;
    return isUnlucky ? { ...retry, maxMs: Math.min(retry.maxMs, UNLUCKY_MS) } : retry;
  }

  #delay(retry: Retry, failures: number, error: DriverError): number {
    const delayMs = retryDelayMs(retry, failures, this.#random(), error.retryAfterMs ?? 0);
    return error.terminal ? Math.max(delayMs, TERMINAL_RETRY_MS) : delayMs;
  }
}
