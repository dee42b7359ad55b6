import type { KubeObject } from '../apis/meta.ts';
import type { MemberContinuity } from '../cache/cluster-continuity.ts';
import { KnownHistory } from '../cache/known-history.ts';
import { ReflectedInformer } from '../cache/reflected-informer.ts';
import type { IndexFunctions } from '../cache/store.ts';
import type { Transform } from '../cache/transform.ts';
import type { Clock } from '../clock/clock.ts';
import type { Outages } from '../gate/outages.ts';
import { CONTROL, type Cluster } from '../gate/gate.ts';
import type { SyncState } from '../health/checks.ts';
import type { HeldWork, WorkHold } from '../health/held-work.ts';
import { isRefusal, type ApiError } from '../kube/errors.ts';
import { HttpListWatch } from '../kube/list-watch.ts';
import { kindOf, type Resource } from '../kube/resource.ts';
import type { Logger } from '../log/logger.ts';
import type { KubeMetrics } from '../metrics/kube.ts';
import { CannotStartError, type Member } from '../process/lifecycle.ts';
import { startTogether } from './cannot-start.ts';
import type { ClusterAccess } from './clusters.ts';
import { describeRefusal, qualified } from './describe-refusal.ts';
import { OwnWrites } from './own-writes.ts';
import { quiet, retryUnlessRefused } from './retry-until-done.ts';
import type { ProbedKind } from './probes.ts';
import { untilOutage } from './target-readiness.ts';
import { OPTIONAL_FIRST_MS, pauseAfter } from './optional-pause.ts';

/** Which objects a cache holds, and how. */
export interface CacheOptions<T extends KubeObject> {
  readonly namespace?: string;
  readonly metadataOnly?: true;
  readonly indexes?: IndexFunctions<T>;
  readonly transform?: Transform<T>;
  /** What is lost without the cache; a cache that we may not read is then left empty until we may, and said so once. */
  readonly optionalFor?: string;
}

/** Before the first answer it is not known whether the server can be reached at all. */
const FIRST_LIST_TIMEOUT_MS = 10_000;

/** One cache. */
interface CacheMember {
  readonly cached: ProbedKind;
  readonly optionalFor: string | undefined;
  readonly continuity: MemberContinuity;
  readonly run: (signal: AbortSignal) => Promise<void>;
  readonly wait: (signal: AbortSignal) => Promise<void>;
  readonly hasSynced: () => boolean;
}

/** What the caches of a cluster are made with. */
export interface ClusterCachesOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: KubeMetrics;
  readonly outages: Outages;
  readonly held: HeldWork;
  /** See InformerOptions. */
  readonly freeze: boolean;
  /** The shipped file that grants what is read. */
  readonly roleFile: string;
}

/** All caches of one cluster: they start together, learn of our own writes, and tell that the cluster lives. */
export class ClusterCaches implements Member {
  readonly name: string;
  readonly ownWrites = new OwnWrites();
  readonly #access: ClusterAccess;
  readonly #options: ClusterCachesOptions;
  readonly #stopping = new AbortController();
  readonly #members: CacheMember[] = [];
  /** Those that were found readable: they run, or are about to. */
  readonly #used = new Set<CacheMember>();
  readonly #running: Promise<unknown>[] = [];
  /** That the cluster does not answer was said, once for all of its kinds. */
  #isToldUnreachable = false;

  constructor(access: ClusterAccess, options: ClusterCachesOptions) {
    this.name = `caches of ${access.cluster}`;
    this.#access = access;
    this.#options = options;
  }

  /** Adds a cache; only before `start`. */
  add<T extends KubeObject>(resource: Resource<T>, options: CacheOptions<T> = {}): ReflectedInformer<T> {
    const { cluster, transport, reader, prober } = this.#access;
    const { clock, log, metrics, outages, freeze } = this.#options;
    const { namespace, metadataOnly, indexes, transform, optionalFor } = options;
    const history = new KnownHistory();
    const isOptional = optionalFor !== undefined;
    const continuity = this.#access.continuity.add(
      { resource, namespace, reader: prober, history },
      { isOptional, refused: isOptional ? undefined : this.#showRefused(resource) },
    );
    const informer = new ReflectedInformer<T>({
      source: new HttpListWatch({ transport, resource, selection: { namespace, metadataOnly } }),
      clock,
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
    });
    this.ownWrites.feed(resource, informer);
    const member: CacheMember = {
      cached: {
        resource,
        namespace,
        reader,
        informer,
        isOptional,
        get isGivenUp() {
          return continuity.isGivenUp;
        },
      },
      optionalFor,
      continuity,
      run: (signal) => informer.run(signal),
      wait: (signal) => informer.waitForSync(signal),
      hasSynced: () => informer.hasSynced,
    };
    this.#members.push(member);
    if (optionalFor === undefined) this.#used.add(member);
    return informer;
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
    await startTogether(this.#members.map((member) => this.#begin(member, hold, signal)));
    const filled = Promise.all(
      [...this.#used].map(async ({ wait }) => {
        await wait(signal);
      }),
    ).then(() => hold.release());
    if (cluster === CONTROL) await filled;
    else await Promise.race([filled, untilOutage(this.#options.outages, cluster)]);
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new Error('the process is stopping'));
    await Promise.all(this.#running);
  }

  async #begin(member: CacheMember, hold: WorkHold, signal: AbortSignal): Promise<void> {
    const { cached, optionalFor, continuity } = member;
    if (optionalFor === undefined) {
      await this.#requireServed(cached, hold, signal);
      this.#running.push(member.run(this.#stopping.signal));
      return;
    }
    try {
      await this.#look(cached, signal);
      this.#use(member);
    } catch (err) {
      signal.throwIfAborted();
      const { cluster } = this.#access;
      const kind = kindOf(cached.resource);
      continuity.remove();
      const why = isRefusal(err) ? describeRefusal(cluster, this.#options.roleFile, cached.resource, err) : err;
      this.#options.log.warn({ cluster, kind, err: why }, `went on without ${optionalFor}`);
      this.#running.push(this.#useLater(member));
    }
  }

  #use(member: CacheMember): void {
    this.#used.add(member);
    this.#running.push(member.run(this.#stopping.signal));
  }

  /** Asks whether the cache can be filled, ever more rarely while it is refused; never rejects. */
  async #useLater(member: CacheMember): Promise<void> {
    const { clock, log } = this.#options;
    const signal = this.#stopping.signal;
    let pauseMs = OPTIONAL_FIRST_MS;
    while (!signal.aborted) {
      try {
        await clock.sleep(pauseMs, signal);
        await this.#look(member.cached, signal);
        const kind = kindOf(member.cached.resource);
        log.info({ cluster: this.#access.cluster, kind }, 'filling a cache that was refused before');
        member.continuity.restore();
        this.#used.add(member);
        return await member.run(signal);
      } catch (err) {
        log.debug({ cluster: this.#access.cluster, kind: kindOf(member.cached.resource), err }, 'cache still refused');
        pauseMs = pauseAfter(err, pauseMs);
      }
    }
  }

  /**
   * Shows that work is held for a kind that was given up, since the server refuses it: until it was listed anew the gate admits nothing
   * that concerns the cluster.
   */
  #showRefused(resource: Resource<KubeObject>): (err: ApiError | undefined) => void {
    const { held, log, roleFile } = this.#options;
    const { cluster } = this.#access;
    const kind = kindOf(resource);
    let hold: WorkHold | undefined;
    return (err) => {
      if (err === undefined) {
        log.info({ cluster, kind }, 'listed a kind that was refused before');
        hold?.release();
        hold = undefined;
        return;
      }
      const why = new Error(describeRefusal(cluster, roleFile, resource, err));
      if (hold === undefined) log.warn({ cluster, kind, err: why }, 'held all work of the cluster: kind refused');
      hold ??= held.hold({ work: 'process', waitsFor: 'caches', of: cluster });
      hold.failed(why);
    };
  }

  async #look({ resource, namespace, reader }: ProbedKind, signal: AbortSignal): Promise<void> {
    const scope = namespace === undefined ? {} : { namespace };
    await reader.list(resource, { ...scope, limit: 1, signal, timeoutMs: FIRST_LIST_TIMEOUT_MS });
  }

  /** An unreachable server is waited for; a refusal that lasts is told, for someone to fix. */
  async #requireServed(cached: ProbedKind, hold: WorkHold, signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#options;
    const { cluster } = this.#access;
    const told = (err: ApiError): string => describeRefusal(cluster, this.#options.roleFile, cached.resource, err);
    const look = async (s: AbortSignal): Promise<void> => {
      try {
        await this.#look(cached, s);
      } catch (err) {
        s.throwIfAborted();
        if (isRefusal(err)) throw err;
        hold.failed(err);
        log[this.#isToldUnreachable ? 'debug' : 'warn']({ cluster, err }, 'cluster not reachable yet');
        this.#isToldUnreachable = true;
      }
    };
    try {
      // The caches themselves show when they are filled: the hold is theirs.
      const shown: WorkHold = {
        failed: (err) => hold.failed(isRefusal(err) ? told(err) : err),
        release: () => undefined,
      };
      await retryUnlessRefused(
        // Only refusals are retried, and one that lasts is told at the end.
        { clock, log: quiet(log), hold: shown },
        `reading ${qualified(cached.resource)} of the ${cluster} cluster`,
        look,
        signal,
      );
    } catch (err) {
      if (!isRefusal(err)) throw err;
      throw new CannotStartError(told(err), { cause: err });
    }
  }
}
