import type { KubeObject } from '../apis/meta.ts';
import type { MemberContinuity } from '../kube/cache/cluster-continuity.ts';
import type { Informer } from '../kube/cache/lister.ts';
import { ObservedHistory } from '../kube/cache/observed-history.ts';
import { LimitedListWatch } from '../kube/cache/limited-list-watch.ts';
import { ReflectedInformer } from '../kube/cache/reflected-informer.ts';
import type { WatchSeconds } from '../kube/cache/reflector.ts';
import type { IndexFunctions } from '../kube/cache/store.ts';
import type { Transform } from '../kube/cache/transform.ts';
import type { Clock } from '../base/clock/clock.ts';
import type { Outages } from '../kube/gate/outages.ts';
import { CONTROL, type Cluster } from '../kube/gate/gate.ts';
import type { SyncState } from '../health/checks.ts';
import type { HeldWork, WorkHold } from '../health/held-work.ts';
import { ApiError, isForbiddenOrNotServed, REFUSAL_PATIENCE_MS } from '../kube/client/errors.ts';
import { HttpListWatch } from '../kube/client/list-watch.ts';
import { kindOf } from '../kube/client/resource.ts';
import type { Resource } from '../apis/resource.ts';
import type { Logger } from '../base/log/logger.ts';
import type { KubeMetrics } from '../base/metrics/kube.ts';
import { CannotStartError, type Member } from './process/lifecycle.ts';
import { startTogether } from './cannot-start.ts';
import type { ClusterAccess } from './clusters.ts';
import { describeRefusal, qualified } from './describe-refusal.ts';
import { OwnWrites } from './own-writes.ts';
import { quiet, retryUnlessRefused } from './retry-until-done.ts';
import type { ProbedKind } from './probes.ts';
import { untilOutage } from './target-readiness.ts';
import { NEEDED_LONGEST_MS, OPTIONAL_FIRST_MS, pauseAfter } from './optional-pause.ts';
import type { Random } from '../base/random/random.ts';

export interface CacheOptions<T extends KubeObject> {
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly metadataOnly?: true;
  readonly indexes?: IndexFunctions<T>;
  readonly transform?: Transform<T>;
  /** What is lost without the cache; a cache that we may not read is then left empty until we may, and said so once. */
  readonly optionalFor?: string;
}

/** A cache that comes and goes while the process runs. */
export interface OpenCache<T extends KubeObject> {
  readonly informer: ReflectedInformer<T>;
  /** Gives it up: what it holds is not to be read any more. */
  close(): void;
}

/** What of such a cache its reader sees, who may share it with others. */
export interface SharedCache {
  readonly informer: Informer<KubeObject> & {
    /** Resolves when it is filled; rejects with the signal's reason, or when it is closed before. */
    waitForSync(signal: AbortSignal): Promise<void>;
  };
  close(): void;
}

/** How a cache is opened while the process runs. */
export interface OpenOptions<T extends KubeObject> extends Omit<CacheOptions<T>, 'optionalFor'> {
  /** Told each time that the server refuses to let it be read. */
  readonly refused: (err: ApiError) => void;
  /** Nobody does without: while the server refuses it, also before it was filled, all work of the cluster is held, and that is shown. */
  readonly isNeeded?: boolean;
}

/** Before the first answer it is not known whether the server can be reached at all. */
const FIRST_LIST_TIMEOUT_MS = 10_000;

interface CacheMember {
  readonly cached: ProbedKind;
  readonly optionalFor: string | undefined;
  readonly continuity: MemberContinuity;
  /** Shows that work is held because the server refuses it; undefined: an optional one, without which work goes on. */
  readonly showRefused: ((err: ApiError | undefined) => void) | undefined;
  readonly run: (signal: AbortSignal) => Promise<void>;
  readonly wait: (signal: AbortSignal) => Promise<void>;
  readonly hasSynced: () => boolean;
}

export interface ClusterCachesOptions {
  readonly clock: Clock;
  readonly random?: Random | undefined;
  readonly log: Logger;
  readonly metrics: KubeMetrics;
  readonly outages: Outages;
  readonly held: HeldWork;
  /** See InformerOptions. */
  readonly freeze: boolean;
  /** The shipped file that grants what is read. */
  readonly roleFile: string;
  /** See ClustersOptions. */
  readonly maxBytes?: number | undefined;
  /** See ReflectorOptions. */
  readonly watchSeconds?: WatchSeconds | undefined;
}

/** All caches of one cluster: they start together, learn of our own writes, and tell that the cluster lives. */
export class ClusterCaches implements Member {
  readonly name: string;
  readonly ownWrites = new OwnWrites();
  readonly #access: ClusterAccess;
  readonly #options: ClusterCachesOptions;
  readonly #stopping = new AbortController();
  #members: readonly CacheMember[] = [];
  /** Those that were found readable: they run, or are about to. */
  readonly #used = new Set<CacheMember>();
  readonly #running = new Set<Promise<unknown>>();
  /** That the cluster does not answer was said, once for all of its kinds. */
  #isReportedUnreachable = false;

  constructor(access: ClusterAccess, options: ClusterCachesOptions) {
    this.name = `caches of ${access.cluster}`;
    this.#access = access;
    this.#options = options;
  }

  /** Adds a cache; only before `start`. */
  add<T extends KubeObject>(resource: Resource<T>, options: CacheOptions<T> = {}): ReflectedInformer<T> {
    const { informer, member } = this.#make(resource, options);
    if (options.optionalFor === undefined) this.#used.add(member);
    return informer;
  }

  /**
   * Adds a cache while the process runs, which begins to be filled at once, or as soon as the server lets us. What it is for does without
   * until then. Nobody who waits for the caches of the cluster waits for it.
   */
  open<T extends KubeObject>(
    resource: Resource<T>,
    { refused, isNeeded = false, ...how }: OpenOptions<T>,
  ): OpenCache<T> {
    const optionalFor = `objects of kind ${kindOf(resource)}`;
    const { informer, member } = this.#make(resource, { ...how, optionalFor }, !isNeeded);
    const closing = new AbortController();
    const signal = AbortSignal.any([this.#stopping.signal, closing.signal]);
    member.continuity.remove();
    this.#keep(this.#useLater(member, { signal, firstMs: 0, refused }));
    return {
      informer,
      close: () => {
        closing.abort(new Error('the cache is no longer needed'));
        member.continuity.remove();
        this.ownWrites.forget(resource, informer);
        this.#used.delete(member);
        this.#members = this.#members.filter((other) => other !== member);
      },
    };
  }

  #make<T extends KubeObject>(
    resource: Resource<T>,
    options: CacheOptions<T>,
    isOptional = options.optionalFor !== undefined,
  ): { readonly informer: ReflectedInformer<T>; readonly member: CacheMember } {
    const { cluster, transport, reader, prober } = this.#access;
    const { clock, log, random, metrics, outages, freeze, maxBytes, watchSeconds } = this.#options;
    const { namespace, labelSelector, metadataOnly, indexes, transform, optionalFor } = options;
    const history = new ObservedHistory();
    const showRefused = isOptional ? undefined : this.#showRefused(resource);
    const continuity = this.#access.continuity.add(
      { resource, namespace, labelSelector, reader: prober, history },
      { isOptional, refused: showRefused },
    );
    const source = new HttpListWatch({ transport, resource, selection: { namespace, labelSelector, metadataOnly } });
    const informer = new ReflectedInformer<T>({
      source: maxBytes === undefined ? source : new LimitedListWatch(source, maxBytes, this.#showsExceeded(resource)),
      clock,
      random,
      log,
      cluster,
      metrics,
      indexes,
      transform,
      freeze,
      onAlive: () => outages.sawLife(cluster),
      onBlind: (fromMs, toMs) => outages.wasBlind(cluster, { fromMs, toMs }),
      history,
      continuity,
      watchSeconds,
    });
    this.ownWrites.feed(resource, informer);
    const member: CacheMember = {
      cached: {
        resource,
        namespace,
        labelSelector,
        reader,
        informer,
        isOptional,
        get isGivenUp() {
          return continuity.isGivenUp;
        },
        giveUp: (refusal) => {
          if (!continuity.giveUp(refusal)) throw new Error(this.#describe(resource, refusal), { cause: refusal });
        },
      },
      optionalFor,
      continuity,
      showRefused,
      run: (signal) => informer.run(signal),
      wait: (signal) => informer.waitForSync(signal),
      hasSynced: () => informer.hasSynced,
    };
    this.#members = [...this.#members, member];
    return { informer, member };
  }

  /** Shows what the cluster has too much of, until it no longer has. */
  #showsExceeded(resource: Resource<KubeObject>): (err: ApiError | undefined) => void {
    const { cluster } = this.#access;
    const { held, log } = this.#options;
    return held.whileFailing({ work: 'process', waitsFor: 'caches', of: cluster }, (err) =>
      log.warn({ cluster, kind: kindOf(resource), err }, 'the cluster has more than may be cached'),
    );
  }

  get cluster(): Cluster {
    return this.#access.cluster;
  }

  /** For reachPresent, as of now: a kind that is optional is among them once we may read it. */
  get kinds(): readonly ProbedKind[] {
    return this.#members.filter((member) => this.#used.has(member)).map(({ cached }) => cached);
  }

  /** For the readiness check. */
  get synced(): readonly SyncState[] {
    return this.#members.map(({ cached, optionalFor, hasSynced }) => ({
      kind: kindOf(cached.resource),
      hasSynced: hasSynced(),
      isOptional: optionalFor !== undefined,
    }));
  }

  /**
   * Resolves when all caches are filled but the optional ones that we may not read, which are filled when we may; those of a
   * target cluster also during an outage, and then they are filled when it answers. Throws CannotStartError, which names them all, when
   * kinds are not served or we may not read them, and that does not change within seconds.
   */
  async start(signal: AbortSignal): Promise<void> {
    const { cluster } = this.#access;
    const hold = this.#options.held.hold({ work: 'process', waitsFor: 'caches', of: cluster });
    const [needed, optional] = [false, true].map((wanted) =>
      this.#members.filter(({ optionalFor }) => (optionalFor !== undefined) === wanted),
    );
    await startTogether((needed ?? []).map((member) => this.#begin(member, hold, signal)));
    // Afterwards: a server that is just starting refuses for a moment what it grants then, which the others have waited for.
    await startTogether((optional ?? []).map((member) => this.#beginOptional(member, hold, signal)));
    const filled = Promise.all(
      [...this.#used].map(async ({ wait }) => {
        await wait(signal);
      }),
    ).then(() => hold.release());
    if (cluster === CONTROL) await filled;
    else await Promise.race([filled, untilOutage(this.#options.outages, cluster)]);
  }

  /** Resolves when each of them has its first list, also one that we may not read yet; rejects with the signal's reason. */
  async untilFilled(signal: AbortSignal): Promise<void> {
    await Promise.all(this.#members.map((member) => member.wait(signal)));
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new Error('the process is stopping'));
    await Promise.all(this.#running);
  }

  async #begin(member: CacheMember, hold: WorkHold, signal: AbortSignal): Promise<void> {
    await this.#requireServed(member.cached, hold, signal);
    this.#keep(member.run(this.#stopping.signal));
  }

  async #beginOptional(member: CacheMember, hold: WorkHold, signal: AbortSignal): Promise<void> {
    const { cached, optionalFor, continuity } = member;
    try {
      await this.#checkOnceThere(cached, hold, signal);
      this.#use(member);
    } catch (err) {
      signal.throwIfAborted();
      const { cluster } = this.#access;
      const kind = kindOf(cached.resource);
      continuity.remove();
      const why = isForbiddenOrNotServed(err) ? this.#describe(cached.resource, err) : err;
      this.#options.log.warn({ cluster, kind, err: why }, `continuing without ${optionalFor}`);
      this.#keep(this.#useLater(member, { signal: this.#stopping.signal, firstMs: OPTIONAL_FIRST_MS }));
    }
  }

  /**
   * Whether an optional kind may be read, as soon as there is somebody to say so: nothing begins without NodeLabelPolicies that nobody
   * has looked for. Behind one address a server that is just starting may refuse what others grant: it is asked again for a moment, unless
   * it does not know the kind.
   */
  async #checkOnceThere(cached: ProbedKind, hold: WorkHold, signal: AbortSignal): Promise<void> {
    const { clock, random, log } = this.#options;
    try {
      return await this.#check(cached, signal);
    } catch (err) {
      signal.throwIfAborted();
      if (ApiError.is(err, 'NotServed')) throw err;
      hold.failed(err);
      const patienceMs = isForbiddenOrNotServed(err) ? OPTIONAL_FIRST_MS : REFUSAL_PATIENCE_MS;
      const shown: WorkHold = { failed: (again) => hold.failed(again), release: () => undefined };
      const what = `reading ${qualified(cached.resource)} of the ${this.#access.cluster} cluster`;
      const how = { clock, random, log: quiet(log), hold: shown, patienceMs };
      await retryUnlessRefused(how, what, (s) => this.#check(cached, s), signal);
    }
  }

  #use(member: CacheMember): void {
    this.#used.add(member);
    this.#keep(member.run(this.#stopping.signal));
  }

  #keep(running: Promise<unknown>): void {
    const kept = running.finally(() => this.#running.delete(kept));
    this.#running.add(kept);
  }

  /**
   * Asks whether the cache can be filled, ever more rarely while it is refused; never rejects. Of one that nobody does without, a refusal that
   * lasts is shown until it is filled.
   */
  async #useLater(
    member: CacheMember,
    { signal, firstMs, refused }: { signal: AbortSignal; firstMs: number; refused?: (err: ApiError) => void },
  ): Promise<void> {
    const { clock, log } = this.#options;
    const { showRefused } = member;
    const longestMs = showRefused === undefined ? undefined : NEEDED_LONGEST_MS;
    let pauseMs = firstMs;
    let refusedSinceMs: number | undefined;
    let isShown = false;
    while (!signal.aborted) {
      try {
        await clock.sleep(pauseMs, signal);
        await this.#check(member.cached, signal);
        const kind = kindOf(member.cached.resource);
        log.info({ cluster: this.#access.cluster, kind }, 'started filling a cache');
        member.continuity.restore();
        this.#used.add(member);
        if (isShown)
          void member.wait(signal).then(
            () => showRefused?.(undefined),
            () => undefined,
          );
        return await member.run(signal);
      } catch (err) {
        log.debug(
          { cluster: this.#access.cluster, kind: kindOf(member.cached.resource), err },
          'still not permitted to read the objects of a cache',
        );
        if (isForbiddenOrNotServed(err)) {
          refused?.(err);
          refusedSinceMs ??= clock.monotonicMs();
          if (clock.monotonicMs() - refusedSinceMs >= REFUSAL_PATIENCE_MS) {
            showRefused?.(err);
            isShown = true;
          }
        } else refusedSinceMs = undefined;
        pauseMs = pauseAfter(err, Math.max(pauseMs, OPTIONAL_FIRST_MS / 2), longestMs);
      }
    }
  }

  /**
   * Shows that work is held for a kind that was given up, since the server refuses it: until it was listed anew the gate admits nothing
   * that concerns the cluster.
   */
  #showRefused(resource: Resource<KubeObject>): (err: ApiError | undefined) => void {
    const { held, log } = this.#options;
    const { cluster } = this.#access;
    const kind = kindOf(resource);
    const show = held.whileFailing<Error>({ work: 'process', waitsFor: 'caches', of: cluster }, (err) =>
      log.warn({ cluster, kind, err }, 'held all work of the cluster: not permitted to read a kind'),
    );
    return (err) => {
      if (err === undefined) log.info({ cluster, kind }, 'reading a kind is permitted now');
      show(err && new Error(this.#describe(resource, err)));
    };
  }

  #describe(resource: Resource<KubeObject>, err: ApiError): string {
    return describeRefusal(this.#access.cluster, this.#options.roleFile, resource, err);
  }

  async #check({ resource, namespace, reader }: ProbedKind, signal: AbortSignal): Promise<void> {
    const scope = namespace === undefined ? {} : { namespace };
    await reader.list(resource, { ...scope, limit: 1, signal, timeoutMs: FIRST_LIST_TIMEOUT_MS });
  }

  /** An unreachable server is waited for; a refusal that lasts is told, for someone to fix. */
  async #requireServed(cached: ProbedKind, hold: WorkHold, signal: AbortSignal): Promise<void> {
    const { clock, random, log } = this.#options;
    const { cluster } = this.#access;
    const told = (err: ApiError): string => this.#describe(cached.resource, err);
    const look = async (s: AbortSignal): Promise<void> => {
      try {
        await this.#check(cached, s);
      } catch (err) {
        s.throwIfAborted();
        if (isForbiddenOrNotServed(err)) throw err;
        hold.failed(err);
        log[this.#isReportedUnreachable ? 'debug' : 'warn']({ cluster, err }, 'cluster is not reachable yet');
        this.#isReportedUnreachable = true;
      }
    };
    try {
      // The caches themselves show when they are filled: the hold is theirs.
      const shown: WorkHold = {
        failed: (err) => hold.failed(isForbiddenOrNotServed(err) ? told(err) : err),
        release: () => undefined,
      };
      await retryUnlessRefused(
        // Only refusals are retried, and one that lasts is told at the end.
        { clock, random, log: quiet(log), hold: shown },
        `reading ${qualified(cached.resource)} of the ${cluster} cluster`,
        look,
        signal,
      );
    } catch (err) {
      if (!isForbiddenOrNotServed(err)) throw err;
      throw new CannotStartError(told(err), { cause: err });
    }
  }
}
