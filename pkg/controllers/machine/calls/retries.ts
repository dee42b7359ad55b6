import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { Clock } from '../../../base/clock/clock.ts';
import { isTimeout } from '../../../driver/deadlines.ts';
import type { DriverError } from '../../../driver/error.ts';
import { retryDelayMs, retryOf, type RetriedCall, type Retry } from '../../../driver/retry.ts';
import { type Random, secureRandom } from '../../../base/random/random.ts';
import { retryRequestOf } from '../../machine-facts/retry-request.ts';
import type { ResolvedClass } from '../context.ts';
import type { ActivityResults } from './results.ts';

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

/** The kinds of long work that are calls of a driver, and under which name each is retried. */
const RETRIED_AS = {
  create: 'create',
  initialize: 'initialize',
  status: 'status-of-deleted',
  delete: 'delete',
} as const satisfies Partial<Record<keyof ActivityResults, RetriedCall>>;

export type CallKind = keyof typeof RETRIED_AS;

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

/** A call as it was sent last, and what became of it. */
interface Attempt {
  readonly fingerprint: string;
  readonly classUID: string;
  readonly classVersion: string;
  readonly failures: number;
  /** How often in a row it had no answer in its time. */
  readonly timeouts: number;
  /** Since when it has failed each time; monotonic, as the next. */
  readonly sinceMs: number | undefined;
  readonly notBeforeMs: number;
  readonly error: DriverError | undefined;
  /** Nothing is to be waited for: it was answered, and its failures before count only if that answer is refused. */
  readonly isOver: boolean;
}

const NO_FAILURES = { failures: 0, timeouts: 0, sinceMs: undefined } as const;

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
  readonly #attempts = new Map<string, Map<CallKind, Attempt>>();
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
  see({ machineClass, classVersion }: ResolvedClass): void {
    const { uid } = machineClass.metadata;
    this.#versions.set(uid, classVersion);
    if (this.#exhausted.get(uid)?.classVersion !== classVersion) this.#exhausted.delete(uid);
  }

  /** The call is sent, made of this: how it ends is said of that, and of nothing that is changed meanwhile. */
  sent(machine: Machine, kind: CallKind, resolved: ResolvedClass): void {
    const last = this.#lastOf(machine, kind);
    if (last?.fingerprint === resolved.fingerprint) return;
    // What another process has recorded of what it was made of before is not taken over afterwards.
    this.#put(machine, kind, { ...untried(resolved), isOver: last?.isOver ?? true });
  }

  /** The call is under way, or was answered. Its Machine may have been forgotten meanwhile, because it was not shown for a while. */
  resumed(machine: Machine, kind: CallKind, resolved: ResolvedClass): void {
    if (this.#lastOf(machine, kind) === undefined) this.sent(machine, kind, resolved);
  }

  /** Whether the call as it was sent last was made of this. */
  wasMadeOf(machine: Machine, kind: CallKind, { fingerprint }: ResolvedClass): boolean {
    return this.#lastOf(machine, kind)?.fingerprint === fingerprint;
  }

  /** Milliseconds until the call may be made; 0: now. */
  waitMs(machine: Machine, kind: CallKind, resolved: ResolvedClass): number {
    const attempt = this.#current(machine, kind, resolved);
    // With each new request of a retry, the first call is made whatever its class waits for.
    const isLetThrough = attempt === undefined && retryRequestOf(machine) !== '';
    return this.#waitMs(attempt, isLetThrough ? undefined : this.#exhaustionFor(kind, untried(resolved)));
  }

  /** Why the call must wait, if this process knows: its own last failure, or one that it shares with its class. */
  failureOf(machine: Machine, kind: CallKind, resolved: ResolvedClass): CallFailure | undefined {
    const attempt = this.#current(machine, kind, resolved);
    const error = attempt === undefined ? this.#exhaustionFor(kind, untried(resolved))?.error : attempt.error;
    if (error === undefined) return undefined;
    const nowMs = this.#clock.monotonicMs();
    return { error, isOwn: attempt !== undefined, forMs: nowMs - (attempt?.sinceMs ?? nowMs) };
  }

  failuresOf(machine: Machine, kind: CallKind, resolved: ResolvedClass): number {
    return this.#current(machine, kind, resolved)?.failures ?? 0;
  }

  timeoutsOf(machine: Machine, kind: CallKind, resolved: ResolvedClass): number {
    return this.#current(machine, kind, resolved)?.timeouts ?? 0;
  }

  /** The call was not made, or was no failure of the provider: it is made after `delayMs`, however often somebody looks. */
  postpone(machine: Machine, kind: CallKind, delayMs: number): void {
    const sent = this.#lastOf(machine, kind);
    if (sent === undefined) return;
    const notBeforeMs = this.#clock.monotonicMs() + delayMs;
    this.#put(machine, kind, { ...sinceAnswer(sent), error: undefined, notBeforeMs, isOver: false });
  }

  /**
   * Remembers a failure; returns how often in a row the call has failed, for how long, and how long it has to wait. An answer that cannot
   * be true (`isAnswer`) counts as a failure like those before it.
   */
  failed(
    machine: Machine,
    kind: CallKind,
    error: DriverError,
    isAnswer = false,
  ): { readonly failures: number; readonly forMs: number; readonly waitMs: number } {
    const sent = this.#lastOf(machine, kind);
    // Forgotten with its machine.
    if (sent === undefined) return { failures: 1, forMs: 0, waitMs: 0 };
    const before = isAnswer ? sent : sinceAnswer(sent);
    const retry = retryOf(RETRIED_AS[kind], error.code, this.#resourceExhaustedMs);
    const failures = before.failures + 1;
    const timeouts = isTimeout(error) ? before.timeouts + 1 : 0;
    const own = retry.perClass ? this.#exhaust(before, retry, error) : this.#amongOthers(kind, before, retry, failures);
    const nowMs = this.#clock.monotonicMs();
    const { sinceMs = nowMs } = before;
    const notBeforeMs = nowMs + this.#delay(own, failures, error);
    const attempt = { ...before, failures, timeouts, sinceMs, notBeforeMs, error, isOver: false };
    this.#put(machine, kind, attempt);
    return { failures, forMs: nowMs - sinceMs, waitMs: this.#waitMs(attempt, this.#exhaustionFor(kind, attempt)) };
  }

  /** The call succeeded: the next failure counts as the first, and the class has something to give. */
  succeeded(machine: Machine, kind: CallKind): void {
    const sent = this.#lastOf(machine, kind);
    if (sent === undefined) return;
    this.#put(machine, kind, { ...sent, isOver: true });
    if (this.#isOutdated(sent)) return;
    const { classUID, classVersion } = sent;
    if (kind === 'delete') this.#deleted.set(classUID, this.#clock.monotonicMs());
    if (kind !== 'create') return;
    this.#exhausted.delete(classUID);
    this.#given.set(classUID, { classVersion, atMs: this.#clock.monotonicMs() });
  }

  /**
   * Takes over a failure that another process has recorded `agoMs` ago. Without effect when this process knows better. How
   * often it had failed is lost, so that the shortest wait applies; what concerns the whole class does so again.
   */
  restore(
    machine: Machine,
    kind: CallKind,
    resolved: ResolvedClass,
    { error, agoMs }: { readonly error: DriverError; readonly agoMs: number },
  ): void {
    if (this.#lastOf(machine, kind)?.isOver === false) return;
    const made = untried(resolved);
    const retry = retryOf(RETRIED_AS[kind], error.code, this.#resourceExhaustedMs);
    const leftMs = Math.max(0, retry.firstMs - Math.max(0, agoMs));
    const nowMs = this.#clock.monotonicMs();
    const notBeforeMs = nowMs + leftMs;
    this.#put(machine, kind, { ...made, failures: 1, notBeforeMs, isOver: false });
    if (!retry.perClass || leftMs === 0 || this.#exhaustionOf(made) !== undefined) return;
    const { firstMs } = retry;
    const { classUID, classVersion } = made;
    const closed = { classVersion, failures: 1, firstMs, closedFromMs: nowMs, notBeforeMs, tries: 1, error };
    this.#exhausted.set(classUID, closed);
  }

  /** Calls that failed and may not be repeated yet. */
  held(): readonly HeldRetry[] {
    const nowMs = this.#clock.monotonicMs();
    return [...this.#attempts].flatMap(([machineUID, calls]) =>
      [...calls].flatMap(([kind, { failures, notBeforeMs, classUID, isOver, error, sinceMs = nowMs }]) =>
        !isOver && failures > 0 && notBeforeMs > nowMs
          ? [{ machineUID, call: RETRIED_AS[kind], classUID, failures, error, sinceMs, notBeforeMs }]
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

  /** The call that was sent last, unless it was answered, or would be made of something else now. */
  #current(machine: Machine, kind: CallKind, { fingerprint }: ResolvedClass): Attempt | undefined {
    const last = this.#lastOf(machine, kind);
    return last?.fingerprint === fingerprint && !last.isOver ? last : undefined;
  }

  #lastOf({ metadata: { uid } }: Machine, kind: CallKind): Attempt | undefined {
    return this.#attempts.get(uid)?.get(kind);
  }

  #put({ metadata: { uid } }: Machine, kind: CallKind, attempt: Attempt): void {
    this.#attempts.set(uid, (this.#attempts.get(uid) ?? new Map<CallKind, Attempt>()).set(kind, attempt));
  }

  #waitMs(attempt: Attempt | undefined, exhaustion: Exhaustion | undefined): number {
    const nowMs = this.#clock.monotonicMs();
    const ownMs = Math.max(0, (attempt?.notBeforeMs ?? 0) - nowMs);
    // Who has just tried in vain waits with its class, whoever else may try.
    const mayTry = exhaustion === undefined || (nowMs < exhaustion.closedFromMs && ownMs === 0);
    return mayTry ? ownMs : Math.max(ownMs, exhaustion.notBeforeMs - nowMs);
  }

  #exhaustionFor(kind: CallKind, made: Attempt): Exhaustion | undefined {
    return kind === 'create' ? this.#exhaustionOf(made) : undefined;
  }

  /** That of this very version of the class: somebody may have changed the class because of it. */
  #exhaustionOf({ classUID, classVersion }: Attempt): Exhaustion | undefined {
    const known = this.#exhausted.get(classUID);
    return known?.classVersion === classVersion ? known : undefined;
  }

  /** Whether the class has become another one since the call was sent. */
  #isOutdated({ classUID, classVersion }: Attempt): boolean {
    return (this.#versions.get(classUID) ?? classVersion) !== classVersion;
  }

  /**
   * Closes the class: at once when it was open to all, else when a few machines have tried again; calls that were under way when it was
   * closed say nothing new. Returns how the machine itself waits: as long as its class does at first.
   */
  #exhaust(sent: Attempt, retry: Retry, error: DriverError): Retry {
    const { classUID, classVersion } = sent;
    const nowMs = this.#clock.monotonicMs();
    const known = this.#exhaustionOf(sent);
    const given = this.#given.get(classUID);
    const hasGiven = given?.classVersion === classVersion && nowMs - given.atMs < GIVING_MS;
    const firstMs = known?.firstMs ?? Math.min(retry.firstMs, hasGiven ? SOON_MS : Infinity);
    if (this.#isOutdated(sent)) return { ...retry, firstMs, maxMs: firstMs };
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
  #amongOthers(kind: CallKind, { classUID }: Attempt, retry: Retry, failures: number): Retry {
    const sinceMs = this.#clock.monotonicMs() - (this.#deleted.get(classUID) ?? -Infinity);
    const isUnlucky = kind === 'delete' && failures <= UNLUCKY_FAILURES && sinceMs < GIVING_MS;
    return isUnlucky ? { ...retry, maxMs: Math.min(retry.maxMs, UNLUCKY_MS) } : retry;
  }

  #delay(retry: Retry, failures: number, error: DriverError): number {
    const delayMs = retryDelayMs(retry, failures, this.#random(), error.retryAfterMs ?? 0);
    return error.terminal ? Math.max(delayMs, TERMINAL_RETRY_MS) : delayMs;
  }
}

/** The call as it would be made now. */
function untried({ fingerprint, classVersion, machineClass }: ResolvedClass): Attempt {
  const classUID = machineClass.metadata.uid;
  return { fingerprint, classUID, classVersion, ...NO_FAILURES, notBeforeMs: 0, error: undefined, isOver: true };
}

/** With the failures since it was answered last. */
function sinceAnswer(sent: Attempt): Attempt {
  return sent.isOver ? { ...sent, ...NO_FAILURES } : sent;
}
