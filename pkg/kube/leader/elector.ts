import type { Lease } from '../../apis/wire.ts';
import { DeadlineError, withDeadline } from '../../base/clock/deadline.ts';
import { elapsedSince, instantOf, type HostClock, type Instant } from '../../base/clock/host-clock.ts';
import type { HttpLeaseClient } from '../client/lease-client.ts';
import { isAlreadyExists, isConflict, ignoreNotFound, isNotFound } from '../client/errors.ts';
import type { Logger } from '../../base/log/logger.ts';
import type { LeaseResult } from '../../base/metrics/leader.ts';
import {
  decideLease,
  holderOf,
  MAX_RAISED,
  newLease,
  nothingSeen,
  observe,
  outbid,
  releasedLease,
  renewedLease,
  takenLease,
  transitionsOf,
} from './lease.ts';
import type { LeaseDecision, LeaseLabels, LeaseTiming, Observation } from './lease.ts';
import { LeaseTrouble, type LeaseOutage } from './lease-trouble.ts';
import { MissedRenewals, wasNotAnswered } from './missed-renewals.ts';
import { Pause } from './pause.ts';
import { TokenRaises } from './token-raises.ts';
import { type Random, secureRandom } from '../../base/random/random.ts';

/** What others see and want of an elector, wherever it runs. */
export interface LeaseElector {
  readonly isLeading: boolean;
  /** The Lease as last written by us; undefined unless leading. */
  readonly lease: Lease | undefined;
  /** Who holds the Lease as far as we know; undefined when nobody does. */
  readonly holder: string | undefined;
  /** Since when, and why, the Lease can neither be read nor taken; undefined while it can, and when we lead. */
  readonly trouble: LeaseOutage | undefined;
  /** Leadership is suspended: the fence is closed, and we lead again if nobody has written the Lease by the time it can be reached. */
  readonly isSuspended: boolean;
  /** Why we do not lead any more, and never will again; undefined before that. */
  readonly ended: string | undefined;
  /**
   * Resolves when we lead; renewing goes on from then. Rejects only with the signal's reason, but not before a write that takes
   * the Lease has ended: if it succeeds we lead all the same, until `release`. May be called once.
   */
  acquire(signal: AbortSignal): Promise<void>;
  /**
   * Gives the Lease up so that another can take it at once; renews it until `mutationsEnded` resolves, which it must not do
   * before the last mutation of this leadership has ended. Does nothing when not leading, unless the answer to our taking it was
   * lost: then it looks. Never rejects because of the API server: a Lease that cannot be released runs out.
   */
  release(mutationsEnded: () => Promise<void>): Promise<void>;
  /**
   * Raises `leaseTransitions` of the Lease, and with it the fencing token, above `token`, under which somebody has acted before: the
   * Lease was set back. Only while the Lease is ours, by a quorum read and by the write itself. Resolves with undefined when
   * it was done, or with why it was not.
   */
  raiseAbove(token: bigint): Promise<string | undefined>;
}

/** Where an elector counts; LeaderMetrics, or what leads there. */
export interface ElectionCounters {
  readonly isLeader: { set(labels: { lease: string }, value: 0 | 1): void };
  readonly renewals: { inc(labels: { lease: string; result: LeaseResult }): void };
}

export interface ElectorDeps {
  readonly name: string;
  /** Given to it when it is created. */
  readonly labels?: LeaseLabels | undefined;
  /** Who we are: host name and a random suffix, different for each start of the process. */
  readonly identity: string;
  readonly leases: Pick<HttpLeaseClient, 'get' | 'create' | 'replace' | 'watch'>;
  readonly timing: LeaseTiming;
  readonly clock: HostClock;
  readonly random?: Random | undefined;
  readonly log: Logger;
  readonly metrics: ElectionCounters;
  readonly fence: { renewed(sentAt: Instant, leaseTransitions: number): void; close(): void };
  /** Leadership is lost, the fence is closed: the process has to end. Called at most once. */
  readonly lost: (reason: string) => void;
  /** Reports `<identity> became leader`, `<identity> resumed leading, …` and `<identity> stopped leading` as Events on the Lease. Must not throw. */
  readonly announce: (lease: Lease, message: string) => void;
  /** What can be read of the elector may have changed. Must not throw. */
  readonly changed?: () => void;
}

/** Why its count is not raised. */
const NOT_OURS = 'the Lease is held by another process';

/** Candidates do not try in step. */
const RETRY_JITTER = 0.2;

/**
 * Takes a Lease and keeps it, like client-go's elector, which holds the other program's Lease on the same cluster.
 *
 * | state     | leaves it when                                                              |
 * |-----------|-----------------------------------------------------------------------------|
 * | candidate | the Lease is absent, released or not renewed for its duration → leading     |
 * | leading   | it is somebody else's, or no renewal succeeded for the renew deadline → lost |
 * | leading   | as the latter, because the API server was away → suspended                  |
 * | suspended | a write on top of our last one succeeds → leading, under a higher token     |
 * | suspended | somebody has written the Lease, or the API server refuses us → lost         |
 * | leading, suspended | `release`, after the last mutation has ended → released            |
 *
 * Suspended, the fence is closed as if the Lease was lost, and a standby may take it. Only the one write on top of our last one tells whether
 * somebody has: where it succeeds nobody has led in between, so that a lone replica need not wait for its own Lease to expire.
 *
 * While a candidate it also watches the Lease, so that a released one is taken at once. Each success tells the fence when
 * the request was *sent*.
 */
export class Elector implements LeaseElector {
  readonly #deps: ElectorDeps;
  readonly #stopping = new AbortController();
  #observation: Observation = nothingSeen;
  /** The Lease as we last wrote it; undefined unless leading. */
  #lease: Lease | undefined;
  #sentAt: Instant | undefined;
  readonly #missed: MissedRenewals;
  #isSuspended = false;
  /** A write that takes the Lease was not answered: the server may hold us for the leader. */
  #mayHold = false;
  #renewing: Promise<void> | undefined;
  readonly #trouble: LeaseTrouble;
  /** Who we stand by for, as last told. */
  #standingByFor: string | undefined;
  #ended: string | undefined;
  readonly #raises = new TokenRaises();
  readonly #pause: Pause;

  constructor(deps: ElectorDeps) {
    this.#deps = deps;
    this.#trouble = new LeaseTrouble(deps.name, deps);
    this.#missed = new MissedRenewals(deps.clock);
    this.#pause = new Pause(deps.clock);
    deps.metrics.isLeader.set({ lease: deps.name }, 0);
  }

  get isLeading(): boolean {
    return this.#lease !== undefined && !this.#isSuspended;
  }

  get lease(): Lease | undefined {
    return this.#isSuspended ? undefined : this.#lease;
  }

  get isSuspended(): boolean {
    return this.#isSuspended;
  }

  get holder(): string | undefined {
    const lease = this.#lease ?? this.#observation.lease;
    return lease === undefined || holderOf(lease) === '' ? undefined : holderOf(lease);
  }

  get trouble(): LeaseOutage | undefined {
    return this.#trouble.current;
  }

  get ended(): string | undefined {
    return this.#ended;
  }

  async acquire(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    const watching = new AbortController();
    const watch = this.#watch(AbortSignal.any([signal, watching.signal]));
    try {
      while (!this.isLeading) {
        signal.throwIfAborted();
        const startedMs = clock.monotonicMs();
        let waitMs = this.#retryMs();
        try {
          const decision = await this.#attempt(signal);
          this.#trouble.answered();
          this.#changed();
          if (decision?.kind === 'wait') {
            waitMs = Math.min(waitMs, decision.forMs);
            this.#standBy();
          }
        } catch (err) {
          signal.throwIfAborted();
          this.#trouble.failed(err, startedMs);
          this.#changed();
        }
        if (!this.isLeading) await this.#pause.wait(waitMs, signal);
      }
    } finally {
      watching.abort(new Error('no longer a candidate'));
      await watch;
    }
    log.info({ lease: this.#deps.name, identity: this.#deps.identity }, 'became leader');
    this.#renewing = this.#keepRenewing();
    signal.throwIfAborted();
  }

  async release(mutationsEnded: () => Promise<void>): Promise<void> {
    await mutationsEnded();
    this.#stopping.abort(new Error('releasing leadership'));
    this.#pause.wake();
    await this.#renewing;
    const lease = this.#lease ?? (await this.#leaseTakenUnawares());
    this.#ended ??= lease === undefined ? 'no longer a candidate' : 'released the Lease';
    this.#raises.end(this.#ended);
    this.#changed();
    if (lease === undefined) return;

    this.#deps.fence.close();
    this.#lease = undefined;
    this.#isSuspended = false;
    this.#mayHold = false;
    this.#changed();
    this.#deps.metrics.isLeader.set({ lease: this.#deps.name }, 0);
    await this.#giveUp(lease);
    this.#deps.announce(lease, `${this.#deps.identity} stopped leading`);
  }

  async raiseAbove(token: bigint): Promise<string | undefined> {
    if (token >= MAX_RAISED)
      return `the Lease is not raised above ${MAX_RAISED}; the driver must forget the tokens that it has seen`;
    try {
      // Not by the loop that renews: of a slow server it would not have the time for another answer.
      const current = this.isLeading ? await this.#read(undefined) : undefined;
      if (!this.isLeading || current === undefined || holderOf(current) !== this.#deps.identity) return NOT_OURS;
    } catch (err) {
      return `the Lease could not be read: ${err instanceof Error ? err.message : String(err)}`;
    }
    this.#observation = outbid(this.#observation, token);
    this.#pause.wake();
    return await this.#raises.above(token);
  }

  /** Tells, once, for whom. */
  #standBy(): void {
    const { holder } = this;
    if (holder === undefined || holder === this.#standingByFor) return;
    this.#standingByFor = holder;
    const { identity, log, name } = this.#deps;
    log.info({ lease: name, identity, holder }, 'waiting for lease');
  }

  /** One attempt to become leader. Undefined when somebody else was faster. Throws ApiError, DeadlineError. */
  async #attempt(signal: AbortSignal): Promise<LeaseDecision | undefined> {
    const { clock, identity, leases, timing } = this.#deps;
    this.#see(await this.#read(signal));
    const decision = decideLease(this.#observation, identity, clock.monotonicMs());
    if (decision.kind === 'wait') return decision;

    const sentAt = instantOf(clock);
    try {
      // Not given up with the signal: a write that arrives all the same would keep the next leader waiting for the Lease.
      const lease = await this.#call(undefined, (options) =>
        decision.kind === 'create'
          ? leases.create(newLease(this.#deps, identity, decision.transitions, timing, clock.now()), options)
          : leases.replace(takenLease(decision.lease, identity, decision.transitions, timing, clock.now()), options),
      );
      this.#begin(lease, sentAt, 'became leader');
      return decision;
    } catch (err) {
      const wasOvertaken = isConflict(err) || isAlreadyExists(err) || isNotFound(err);
      this.#count(wasOvertaken ? 'conflict' : 'error');
      if (wasOvertaken) return undefined;
      if (wasNotAnswered(err)) this.#mayHold = true;
      throw err;
    }
  }

  async #keepRenewing(): Promise<void> {
    const { clock, timing } = this.#deps;
    // From when the Lease was asked for: of a server that takes 4 s for an answer, no time would be left for the first renewal.
    let pauseMs = this.#pauseAfter(this.#sentAt?.monotonicMs ?? clock.monotonicMs());
    while (!this.#stopping.signal.aborted) {
      await this.#pause.wait(Math.min(pauseMs, this.#remainingMs()), this.#stopping.signal).catch(() => undefined);
      if (this.#stopping.signal.aborted) return;
      if (this.#remainingMs() <= 0) {
        if (!this.#missed.wasAway) {
          return this.#lost(`the Lease could not be renewed for ${timing.renewDeadlineMs} ms${this.#missed.why}`);
        }
        await this.#suspended();
        if (!this.isLeading) return;
        pauseMs = this.#pauseAfter(this.#sentAt?.monotonicMs ?? clock.monotonicMs());
        continue;
      }
      const sentMs = clock.monotonicMs();
      const outcome = await this.#renew();
      if (outcome === 'lost') return this.#lost('the Lease is held by another process');
      if (outcome === 'again') pauseMs = 0;
      else pauseMs = outcome === 'renewed' ? this.#pauseAfter(sentMs) : this.#untilAfter(sentMs, timing.retryPeriodMs);
    }
  }

  /** Until the next attempt at a Lease that is not ours. */
  #retryMs(): number {
    const { random = secureRandom, timing } = this.#deps;
    return timing.retryPeriodMs * (1 + RETRY_JITTER * random());
  }

  /** How long until the next renewal after one that was sent at `sentMs`. */
  #pauseAfter(sentMs: number): number {
    const { retryPeriodMs, renewPeriodMs = retryPeriodMs } = this.#deps.timing;
    return this.#untilAfter(sentMs, renewPeriodMs);
  }

  #untilAfter(sentMs: number, ms: number): number {
    return Math.max(0, sentMs + ms - this.#deps.clock.monotonicMs());
  }

  /** One renewal. `again`: the Lease was changed meanwhile, but is ours. */
  async #renew(): Promise<'renewed' | 'again' | 'failed' | 'lost'> {
    const { clock, identity, leases, timing } = this.#deps;
    const lease = this.#lease;
    if (lease === undefined) return 'lost';
    const sentAt = instantOf(clock);
    const wanted = renewedLease(lease, clock.now(), this.#observation.transitions);
    try {
      const renewed = await this.#call(undefined, (options) => leases.replace(wanted, options));
      this.#leading(renewed, sentAt);
      this.#count('ok');
      if (transitionsOf(renewed) > transitionsOf(lease)) this.#reportRaise(lease, renewed);
      return 'renewed';
    } catch (err) {
      const isStale = isConflict(err) || isNotFound(err);
      this.#count(isStale ? 'conflict' : 'error');
      if (!isStale) {
        this.#missed.sent(wanted, err);
        return this.#renewalFailed(err, sentAt);
      }
    }
    try {
      const current = await this.#read(undefined);
      if (current !== undefined && holderOf(current) !== identity) return 'lost';
      if (current !== undefined) {
        this.#lease = current; // an earlier renewal of ours whose answer was lost, or somebody's label
        return 'again';
      }
      // Deleted by hand. Nobody who watched it takes it before our time is over; so it is still ours to make again.
      const { transitions } = this.#observation;
      const createdAt = instantOf(clock);
      const again = newLease(this.#deps, identity, transitions + 1, timing, clock.now());
      this.#leading(await this.#call(undefined, (options) => leases.create(again, options)), createdAt);
      this.#count('ok');
      return 'renewed';
    } catch (err) {
      return isAlreadyExists(err) ? 'again' : this.#renewalFailed(err, sentAt);
    }
  }

  /** Returns when we lead again, when leadership is lost, or when it is to be released. */
  async #suspended(): Promise<void> {
    const { clock, identity, log, name, timing } = this.#deps;
    this.#deps.fence.close();
    this.#isSuspended = true;
    this.#deps.metrics.isLeader.set({ lease: name }, 0);
    this.#trouble.failed(this.#missed.error, clock.monotonicMs() - timing.renewDeadlineMs);
    this.#raises.end(NOT_OURS);
    this.#changed();
    const { renewDeadlineMs } = timing;
    log.warn({ lease: name, identity, renewDeadlineMs, err: this.#missed.error }, 'suspended leadership');

    while (!this.#stopping.signal.aborted) {
      const startedMs = clock.monotonicMs();
      let pauseMs = this.#retryMs();
      try {
        const outcome = await this.#resume();
        this.#missed.notRefused();
        if (outcome === 'lost')
          return this.#lost('the Lease was written by another process while leadership was suspended');
        if (outcome === 'resumed') return;
        if (outcome === 'again') pauseMs = 0;
        // Somebody may have led in a history that is lost, and still not know of it: as for any other holder, the lease duration is waited for.
        if (outcome === 'set back') pauseMs = timing.leaseDurationMs;
      } catch (err) {
        this.#trouble.failed(err, startedMs);
        this.#missed.failed(err, startedMs);
        this.#changed();
        if (this.#missed.isRefused) {
          return this.#lost(`the Lease could not be renewed${this.#missed.why}`);
        }
      }
      await this.#pause.wait(pauseMs, this.#stopping.signal).catch(() => undefined);
    }
  }

  /**
   * Takes the Lease again, on top of what we wrote last. again: a write of ours whose answer was lost is the last one. set back: we are the
   * holder by a write that is not our last one. Throws ApiError, DeadlineError.
   */
  async #resume(): Promise<'resumed' | 'again' | 'set back' | 'lost'> {
    const { clock, identity, leases, log, name, timing } = this.#deps;
    const lease = this.#lease;
    if (lease === undefined) return 'lost';
    const sentAt = instantOf(clock);
    // Under a token of its own: what is still on its way of the time before is too late.
    const transitions = Math.max(this.#observation.transitions, transitionsOf(lease)) + 1;
    const taken = takenLease(lease, identity, transitions, timing, clock.now());
    try {
      const resumed = await this.#call(undefined, (options) => leases.replace(taken, options));
      this.#isSuspended = false;
      this.#trouble.answered();
      this.#begin(resumed, sentAt, 'resumed leading, which was suspended while the API server was unreachable');
      log.info({ lease: name, identity }, 'resumed leadership');
      return 'resumed';
    } catch (err) {
      const isStale = isConflict(err) || isNotFound(err);
      this.#count(isStale ? 'conflict' : 'error');
      if (!isStale) {
        this.#missed.sent(taken, err);
        throw err;
      }
    }
    const current = await this.#read(undefined);
    if (current === undefined || holderOf(current) !== identity) return 'lost';
    const isOurs = this.#missed.includes(current, lease);
    this.#lease = current;
    return isOurs ? 'again' : 'set back';
  }

  #renewalFailed(err: unknown, sentAt: Instant): 'failed' {
    // The last one before the deadline has what time is left: a millisecond may be.
    const isCutShort = err instanceof DeadlineError && err.timeoutMs < this.#longestCallMs;
    this.#missed.failed(err, sentAt.monotonicMs, { isCutShort });
    this.#deps.log.debug({ lease: this.#deps.name, err }, 'renewal failed');
    return 'failed';
  }

  /** The Lease was taken, for the first time or again. */
  #begin(lease: Lease, sentAt: Instant, how: string): void {
    const { announce, identity, metrics, name } = this.#deps;
    this.#count('ok');
    this.#leading(lease, sentAt);
    metrics.isLeader.set({ lease: name }, 1);
    announce(lease, `${identity} ${how}`);
  }

  #leading(lease: Lease, sentAt: Instant): void {
    this.#lease = lease;
    this.#sentAt = sentAt;
    this.#missed.end();
    this.#see(lease);
    this.#deps.fence.renewed(sentAt, transitionsOf(lease));
    this.#raises.raisedTo(transitionsOf(lease));
    this.#changed();
  }

  /** Drivers obey again, and somebody should know that the Lease had been set back. */
  #reportRaise(before: Lease, after: Lease): void {
    const { announce, identity, log, name } = this.#deps;
    const [from, to] = [transitionsOf(before), transitionsOf(after)];
    log.warn({ lease: name, identity, from, to }, 'raised leaseTransitions of the Lease, which had been reset');
    announce(after, `${identity} raised leaseTransitions from ${from} to ${to}, because the Lease had been reset`);
  }

  #lost(reason: string): void {
    const { announce, fence, identity, log, lost, metrics, name } = this.#deps;
    const lease = this.#lease;
    fence.close();
    this.#lease = undefined;
    this.#isSuspended = false;
    this.#ended = `lost leadership: ${reason}`;
    this.#raises.end(NOT_OURS);
    this.#changed();
    metrics.isLeader.set({ lease: name }, 0);
    log.error({ lease: name, identity, reason }, 'lost leadership');
    if (lease !== undefined) announce(lease, `${identity} stopped leading`);
    lost(`leadership of ${name} was lost: ${reason}`);
  }

  async #giveUp(lease: Lease): Promise<void> {
    const { clock, identity, leases, log, name } = this.#deps;
    const replace = (current: Lease): Promise<Lease> =>
      this.#call(undefined, (options) => leases.replace(releasedLease(current, clock.now()), options));
    try {
      try {
        await replace(lease);
      } catch (err) {
        if (!isConflict(err)) throw err;
        const current = await this.#read(undefined);
        if (current === undefined || holderOf(current) !== identity) return;
        await replace(current);
      }
      log.info({ lease: name, identity }, 'released leadership');
    } catch (err) {
      log.warn({ lease: name, err }, 'could not release the Lease; it will expire');
    }
  }

  /** The Lease if the server shows us as its holder although we never heard so; undefined if not, or if it does not answer. */
  async #leaseTakenUnawares(): Promise<Lease | undefined> {
    if (!this.#mayHold) return undefined;
    const { identity, log, name } = this.#deps;
    try {
      const lease = await this.#read(undefined);
      return lease !== undefined && holderOf(lease) === identity ? lease : undefined;
    } catch (err) {
      log.warn({ lease: name, err }, 'could not check whether this process holds the Lease');
      return undefined;
    }
  }

  /** Wakes the candidate when the Lease is released. Ends with the signal; never rejects. */
  async #watch(signal: AbortSignal): Promise<void> {
    const { clock, leases, log, name, timing } = this.#deps;
    while (!signal.aborted) {
      try {
        for await (const lease of leases.watch(name, signal)) {
          this.#see(lease);
          this.#changed();
          if (holderOf(lease) === '') this.#pause.wake();
        }
      } catch (err) {
        if (!signal.aborted) log.debug({ lease: name, err }, 'watch of the Lease broke');
      }
      await clock.sleep(timing.retryPeriodMs, signal).catch(() => undefined);
    }
  }

  async #read(signal: AbortSignal | undefined): Promise<Lease | undefined> {
    return await this.#call(signal, (options) => this.#deps.leases.get(this.#deps.name, options)).catch(ignoreNotFound);
  }

  /** A request that leaves time for a second one. */
  #call<T>(parent: AbortSignal | undefined, send: (options: { signal: AbortSignal; timeoutMs: number }) => Promise<T>) {
    const { clock } = this.#deps;
    const timeoutMs = Math.min(this.#longestCallMs, this.isLeading ? this.#remainingMs() : Infinity);
    return withDeadline(clock, timeoutMs, 'a request for the Lease', (signal) => send({ signal, timeoutMs }), parent);
  }

  /** Half of the renew deadline; of a Lease that is renewed less often than it is retried, a third. */
  get #longestCallMs(): number {
    const { renewDeadlineMs, retryPeriodMs, renewPeriodMs = retryPeriodMs } = this.#deps.timing;
    return renewDeadlineMs / (renewPeriodMs > retryPeriodMs ? 3 : 2);
  }

  #see(lease: Lease | undefined): void {
    this.#observation = observe(this.#observation, lease, this.#deps.clock.monotonicMs());
  }

  #remainingMs(): number {
    if (this.#sentAt === undefined) return 0;
    return Math.max(0, this.#deps.timing.renewDeadlineMs - elapsedSince(this.#sentAt, this.#deps.clock));
  }

  #changed(): void {
    this.#deps.changed?.();
  }

  #count(result: LeaseResult): void {
    this.#deps.metrics.renewals.inc({ lease: this.#deps.name, result });
  }
}
