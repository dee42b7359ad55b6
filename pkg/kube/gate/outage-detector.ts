import { MINUTE_MS, toTimestamp, type Clock } from '../../base/clock/clock.ts';
import { untilAborted, withDeadline } from '../../base/clock/deadline.ts';
import type { Logger } from '../../base/log/logger.ts';
import type { GateMetrics } from '../../base/metrics/gate.ts';
import { type Cluster, CONTROL } from './gate.ts';
import {
  describeOutage,
  type OutageChange,
  type Outage,
  OUTAGE_REASONS,
  outageReasonOf,
  RefusedError,
  ServerAheadError,
  SetBackError,
} from './outage.ts';
import { BlindTimes } from './blind-times.ts';

export interface ProbedCluster {
  readonly cluster: Cluster;
  /**
   * Live reads. Resolves when the server answered and goes on where it was; rejects otherwise, with SetBackError when it does not go on
   * there, and with RefusedError when it answers and refuses us.
   */
  probe(signal: AbortSignal): Promise<void>;
  /** Whether the API server itself has said what a probe ended with. */
  isAnswer?(err: unknown): boolean;
  /**
   * Brings what is known of the cluster up to date after an outage (caches read to a live resourceVersion), or reads all of it anew
   * when it was set back. The outage lasts until it resolves; it is tried again with each good probe.
   */
  catchUp?(signal: AbortSignal, outage: Outage): Promise<void>;
  /**
   * Whether what is known of the cluster is still what it stores, before something is destroyed. Rejects with SetBackError when it is not, else
   * when it cannot be told.
   */
  requireHistory?(signal: AbortSignal): Promise<void>;
  /** Why there are no credentials with which it could be asked anything; undefined while there are. */
  readonly lackOfCredentials?: string | undefined;
  /** Whether the server may have been set back without our knowing; only a probe that begins later can tell. */
  readonly isInDoubt?: boolean;
  /** Whether nothing is in doubt, and what had to be read anew because of it has been. */
  readonly isSettled?: boolean;
  /** Resolves when it is settled, or would not be by waiting: what has to be read anew is refused. */
  untilSettled?(signal: AbortSignal): Promise<void>;
  /** From now on tells of the beginning of doubts, and of what else shows that the cluster was set back. */
  listen?(listener: { readonly doubted: () => void; readonly setBack: (why: string) => void }): void;
}

export interface OutageDetectorDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: GateMetrics;
  readonly periodMs: number;
  /** How long a cluster may fail to answer before an outage begins, and greatest age of a proof of life. */
  readonly timeoutMs: number;
  /** Called when an outage begins, is better understood, or ends. */
  readonly changed: (change: OutageChange) => void;
}

/** What /readyz and the controllers show of a cluster. Times are monotonic, but for the outage's. */
export interface ClusterState {
  readonly cluster: Cluster;
  /** Since when and why nothing is changed; undefined without an outage. */
  readonly outage: Outage | undefined;
  /** While probes fail: when it has answered for the last time, as far as we know; see `Outage.sinceMs`. */
  readonly silentSinceMs: number | undefined;
  /** When an API server last answered a probe, be it by an error, whether or not the cluster could be read then; undefined: never. */
  readonly answeredMs: number | undefined;
  /** Last sign of life; undefined for a cluster that has shown none yet. */
  readonly provenMs: number | undefined;
  readonly recoveredMs: number | undefined;
  readonly lastError: string | undefined;
}

/** A cluster that never answered is probed this often: the process waits for it. */
const FIRST_PROBES_MS = 1_000;
/** A destroy that comes this soon after a failed probe is refused without another one. */
const PROBE_AGAIN_MS = 1_000;
const LONGEST_PROBE_MS = 10_000;
/** What is destroyed within this time shares one look at the cluster's history: etcd cannot be put back and written to in it. */
const HISTORY_GOOD_FOR_MS = 2_000;
/** While probes fail, the second comes so soon, and each after it twice as late, up to the longest pause. */
const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 2_000;
/** An attempt to read all of a cluster that was set back may take so long: of one that is broken off nothing is kept. */
export const READ_ANEW_WITHIN_MS = 5 * MINUTE_MS;
/** How long a mutation waits for a doubt to be settled. */
const SETTLED_WITHIN_MS = 5_000;

/**
 * Whether one cluster is alive.
 *
 * | state   | good probe                     | failed probe                                         | next probe            |
 * |---------|--------------------------------|------------------------------------------------------|-----------------------|
 * | unknown | alive                          | outage: a restart must not end an outage             | now                   |
 * |         |                                | refused by the control cluster: unknown              | now                   |
 * | alive   | alive                          | failing, time remembered                             | period; doubt: now    |
 * | failing | alive, time forgotten          | outage when the first failure is older than timeout  | 0.5 s, doubled to 2 s |
 * | outage  | caught up → alive, else outage | outage                                               | as failing            |
 *
 * One that shows that the cluster was set back to an earlier state begins an outage at once, and counts as a good one: everything is read
 * anew. A cluster that never answered is probed each second, and alive with the first good probe.
 */
export class OutageDetector {
  readonly #probed: ProbedCluster;
  readonly #deps: OutageDetectorDeps;
  readonly sight = new BlindTimes();
  readonly #stopping = new AbortController();
  #cancelNext: (() => void) | undefined;
  #probing: Promise<boolean> | undefined;
  #checking: Promise<boolean> | undefined;
  /** When the last look at its history was begun that found nothing wrong. */
  #historyGoodMs = -Infinity;
  #provenMs: number | undefined;
  #answeredMs: number | undefined;
  #hasAnswered = false;
  /** Decides when an outage begins. */
  #firstFailureMs: number | undefined;
  /** What is told: an outage has begun before the probe that found it failed. Undefined like `#firstFailureMs`. */
  #silentSinceMs: number | undefined;
  #lastFailureMs: number | undefined;
  #failures = 0;
  #lastError: string | undefined;
  #outage: Outage | undefined;
  #recoveredMs: number | undefined;

  constructor(probed: ProbedCluster, deps: OutageDetectorDeps) {
    this.#probed = probed;
    this.#deps = deps;
    showOutage(deps.metrics, probed.cluster, undefined);
    deps.metrics.setBacks.inc({ cluster: probed.cluster }, 0);
    probed.listen?.({ doubted: () => this.#doubted(), setBack: (why) => this.#setBack(why) });
  }

  get state(): ClusterState {
    return {
      cluster: this.#probed.cluster,
      outage: this.#outage,
      silentSinceMs: this.#silentSinceMs,
      answeredMs: this.#answeredMs,
      provenMs: this.#provenMs,
      recoveredMs: this.#recoveredMs,
      lastError: this.#lastError,
    };
  }

  /** Probes now, then forever. */
  start(): void {
    void this.#probeOnce();
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new Error('stopping'));
    this.#cancelNext?.();
    await Promise.all([this.#probing, this.#checking]);
    this.#cancelNext?.();
  }

  /** Whether nothing is in doubt; waits a little for it. Rejects only with the signal's reason. */
  async settled(signal: AbortSignal): Promise<boolean> {
    const probed = this.#probed;
    if (probed.isSettled ?? true) return true;
    const over = new AbortController();
    const cancel = this.#deps.clock.schedule(SETTLED_WITHIN_MS, () => over.abort());
    try {
      await probed.untilSettled?.(AbortSignal.any([signal, over.signal, this.#stopping.signal]));
    } catch {
      signal.throwIfAborted();
    } finally {
      cancel();
    }
    return probed.isSettled ?? true;
  }

  /** A watch event or bookmark arrived: a proof of life. It ends no failure: only a good probe does. */
  sawLife(): void {
    this.#provenMs = this.#deps.clock.monotonicMs();
  }

  /**
   * Whether there is a proof of life younger than the timeout, for which it is probed when there is not, and its history is what we know; see
   * `ProbedCluster.requireHistory`. Rejects only with the signal's reason.
   */
  async prove(signal: AbortSignal): Promise<boolean> {
    return (await this.#proveAlive(signal)) && (await this.#proveHistory(signal));
  }

  async #proveHistory(signal: AbortSignal): Promise<boolean> {
    const nowMs = this.#deps.clock.monotonicMs();
    if (nowMs - this.#historyGoodMs < HISTORY_GOOD_FOR_MS) return true;
    this.#checking ??= this.#checkHistory(nowMs).finally(() => {
      this.#checking = undefined;
    });
    return untilAborted(this.#checking, signal);
  }

  /** Never rejects. */
  async #checkHistory(nowMs: number): Promise<boolean> {
    const { clock, log } = this.#deps;
    const look = async (signal: AbortSignal): Promise<void> => this.#probed.requireHistory?.(signal);
    try {
      await withDeadline(clock, LONGEST_PROBE_MS, 'checking the history of the cluster', look, this.#stopping.signal);
    } catch (err) {
      if (err instanceof SetBackError) this.#setBack(err.message);
      log.debug({ cluster: this.#probed.cluster, err }, 'could not compare the history of the cluster');
      return false;
    }
    if (this.#outage !== undefined) return false;
    this.#historyGoodMs = nowMs;
    return true;
  }

  async #proveAlive(signal: AbortSignal): Promise<boolean> {
    if (this.#outage !== undefined) return false;
    const nowMs = this.#deps.clock.monotonicMs();
    if (this.#firstFailureMs === undefined && this.#isProven(nowMs)) return true;
    if (this.#lastFailureMs !== undefined && nowMs - this.#lastFailureMs < PROBE_AGAIN_MS) return false;
    return untilAborted(this.#probeOnce(), signal);
  }

  #isProven(nowMs: number): boolean {
    return this.#provenMs !== undefined && nowMs - this.#provenMs < this.#deps.timeoutMs;
  }

  /** One probe at a time; anyone who needs one shares it. Never rejects. */
  #probeOnce(): Promise<boolean> {
    if (this.#stopping.signal.aborted) return Promise.resolve(false);
    this.#cancelNext?.();
    this.#probing ??= this.#probe().finally(() => {
      this.#probing = undefined;
      if (!this.#stopping.signal.aborted) this.#scheduleNext();
    });
    return this.#probing;
  }

  /** A probe that runs began before the doubt: `#scheduleNext` sees to another one. One that is due after failures is soon enough. */
  #doubted(): void {
    if (this.#firstFailureMs === undefined && this.#outage === undefined) void this.#probeOnce();
  }

  async #probe(): Promise<boolean> {
    const { clock, metrics, timeoutMs } = this.#deps;
    const { cluster } = this.#probed;
    const sentMs = clock.monotonicMs();
    const deadlineMs = Math.min(LONGEST_PROBE_MS, timeoutMs / 3);
    try {
      const probe = (signal: AbortSignal): Promise<void> => this.#probed.probe(signal);
      await withDeadline(clock, deadlineMs, 'probing the API server', probe, this.#stopping.signal);
    } catch (err) {
      if (this.#stopping.signal.aborted) return false;
      if (err instanceof SetBackError || this.#probed.isAnswer?.(err)) this.#answeredMs = clock.monotonicMs();
      if (err instanceof SetBackError) {
        metrics.probes.inc({ cluster, result: 'up' });
        this.#setBack(err.message);
        return this.#answered(sentMs);
      }
      metrics.probes.inc({ cluster, result: 'down' });
      this.#failed(err, sentMs);
      return false;
    }
    metrics.probes.inc({ cluster, result: 'up' });
    this.#answeredMs = clock.monotonicMs();
    return this.#answered(sentMs);
  }

  #failed(err: unknown, sentMs: number): void {
    const { clock, log, timeoutMs } = this.#deps;
    const { cluster } = this.#probed;
    const nowMs = clock.monotonicMs();
    this.#firstFailureMs ??= nowMs;
    this.#silentSinceMs ??= Math.min(this.#provenMs ?? sentMs, sentMs);
    this.#lastFailureMs = nowMs;
    this.#failures += 1;
    const lack = this.#probed.lackOfCredentials;
    this.#lastError = lack ?? (err instanceof Error ? err.message : String(err));
    const failingMs = nowMs - this.#firstFailureMs;
    const silentMs = nowMs - this.#silentSinceMs;
    log.debug({ cluster, ms: silentMs, err }, 'probe failed');
    if (this.#outage !== undefined || (failingMs < timeoutMs && this.#hasAnswered)) return;
    const isRefused = err instanceof RefusedError;
    // Whoever begins without roles is told so by the start checks, and never leads: nothing has to be kept from being changed.
    if (isRefused && !this.#hasAnswered && cluster === CONTROL) return;

    const isWithout = lack === undefined ? {} : ({ isWithoutCredentials: true } as const);
    this.#outage = { cluster, sinceMs: clock.now() - silentMs, why: this.#lastError, ...isWithout };
    const answered = isRefused ? 'the API server rejects the requests' : 'the API server did not respond';
    const what = lack === undefined ? answered : 'no valid credentials';
    log.error({ ...logged(this.#outage), ms: silentMs, err }, `outage began: ${what}`);
    this.#changed(this.#outage, false, silentMs);
  }

  /** Whatever the cluster was before, the outage lasts until all of it has been read anew. */
  #setBack(why: string): void {
    const { clock, log, metrics } = this.#deps;
    const { cluster } = this.#probed;
    if (this.#outage?.isSetBack) return;
    metrics.setBacks.inc({ cluster });
    this.#outage = { cluster, sinceMs: clock.now(), why, isSetBack: true };
    this.#silentSinceMs ??= clock.monotonicMs();
    this.#hasAnswered = true;
    this.#historyGoodMs = -Infinity;
    log.error(logged(this.#outage), 'outage began: the cluster was restored to an earlier state');
    this.#changed(this.#outage, false, 0);
    void this.#probeOnce();
  }

  /** No reading helps before somebody restarts the API server: said once. */
  #serverIsAhead(): void {
    const { clock, log } = this.#deps;
    if (this.#outage === undefined || this.#outage.isServerAhead) return;
    this.#outage = { ...this.#outage, isServerAhead: true };
    log.error(
      { ...logged(this.#outage), err: describeOutage(this.#outage) },
      'outage continues: the API servers of the cluster must be restarted',
    );
    this.#changed(this.#outage, false, clock.monotonicMs() - (this.#silentSinceMs ?? clock.monotonicMs()));
  }

  async #answered(sentMs: number): Promise<boolean> {
    const { clock, log, timeoutMs } = this.#deps;

    const outage = this.#outage;
    // Who begins catches up by itself, in as many attempts as it takes: nothing was known of the cluster before.
    if (outage !== undefined && this.#hasAnswered) {
      try {
        const catchUp = async (signal: AbortSignal): Promise<void> => this.#probed.catchUp?.(signal, outage);
        const limitMs = outage.isSetBack ? Math.max(timeoutMs, READ_ANEW_WITHIN_MS) : timeoutMs;
        await withDeadline(clock, limitMs, 'reading the cluster after an outage', catchUp, this.#stopping.signal);
      } catch (err) {
        this.#failures += 1;
        if (err instanceof SetBackError) this.#setBack(err.message);
        if (err instanceof ServerAheadError) this.#serverIsAhead();
        this.#lastError = err instanceof Error ? err.message : String(err);
        log.warn({ ...logged(outage), err }, 'outage continues: could not read the cluster');
        return false;
      }
    }
    // What was read to catch up may have shown it.
    if (this.#outage?.isSetBack && !outage?.isSetBack) return false;
    this.#hasAnswered = true;
    const lastedMs = clock.monotonicMs() - (this.#silentSinceMs ?? sentMs);
    if (this.#silentSinceMs !== undefined) {
      this.sight.wasLost({ fromMs: this.#silentSinceMs, toMs: clock.monotonicMs() });
    }
    this.#provenMs = Math.max(this.#provenMs ?? sentMs, sentMs);
    this.#firstFailureMs = undefined;
    this.#silentSinceMs = undefined;
    this.#lastFailureMs = undefined;
    this.#failures = 0;
    this.#lastError = undefined;
    if (outage === undefined) return true;

    this.#outage = undefined;
    this.#recoveredMs = clock.monotonicMs();
    const how = outage.isSetBack ? 'the cluster was read completely' : 'the API server responds again';
    log.info({ ...logged(outage), ms: lastedMs }, `outage ended: ${how}`);
    this.#changed(outage, true, lastedMs);
    return true;
  }

  #changed(outage: Outage, isOver: boolean, lastedMs: number): void {
    const { changed, log, metrics } = this.#deps;
    const { cluster } = this.#probed;
    showOutage(metrics, cluster, isOver ? undefined : outage);
    try {
      changed({ ...outage, isOver, lastedMs });
    } catch (err) {
      log.error({ cluster, err }, 'outage listener failed');
    }
  }

  #scheduleNext(): void {
    const { clock, periodMs, timeoutMs } = this.#deps;
    const isWaiting = this.#firstFailureMs !== undefined || this.#outage !== undefined;
    const retryMs = Math.min(FIRST_RETRY_MS * 2 ** Math.max(0, this.#failures - 1), LONGEST_RETRY_MS, timeoutMs / 5);
    let delayMs = isWaiting ? retryMs : this.#probed.isInDoubt ? 0 : periodMs;
    if (!this.#hasAnswered) delayMs = Math.min(delayMs, FIRST_PROBES_MS);
    else if (this.#firstFailureMs !== undefined && this.#outage === undefined) {
      const outageInMs = this.#firstFailureMs + timeoutMs - clock.monotonicMs();
      delayMs = Math.min(delayMs, Math.max(0, outageInMs));
    }
    this.#cancelNext = clock.schedule(delayMs, () => void this.#probeOnce());
  }
}

/** Which cluster, since when and why, as log fields. */
function logged({ cluster, sinceMs, why }: Outage): { cluster: Cluster; since: string; why: string } {
  return { cluster, since: toTimestamp(sinceMs), why };
}

/** Shows in the metrics whether, since when and why a cluster has an outage. */
function showOutage(metrics: GateMetrics, cluster: Cluster, outage: Outage | undefined): void {
  metrics.outage.set({ cluster }, outage === undefined ? 0 : 1);
  for (const reason of OUTAGE_REASONS) {
    const isIt = outage !== undefined && outageReasonOf(outage) === reason;
    metrics.outageReason.set({ cluster, reason }, isIt ? 1 : 0);
  }
  if (outage === undefined) metrics.outageSince.remove({ cluster });
  else metrics.outageSince.set({ cluster }, outage.sinceMs / 1_000);
}
