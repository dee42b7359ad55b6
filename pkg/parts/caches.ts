import type { KubeObject } from '../apis/meta.ts';
import type { CachedKind } from '../cache/barrier.ts';
import { ReflectedInformer } from '../cache/reflected-informer.ts';
import type { IndexFunctions } from '../cache/store.ts';
import type { Transform } from '../cache/transform.ts';
import type { Clock } from '../clock/clock.ts';
import type { Freezes } from '../gate/freeze.ts';
import { CONTROL } from '../gate/gate.ts';
import type { Cluster } from '../gate/gate.ts';
import { ApiError, isNotServed } from '../kube/errors.ts';
import { HttpListWatch } from '../kube/list-watch.ts';
import type { Resource } from '../kube/resource.ts';
import type { Logger } from '../log/logger.ts';
import type { KubeMetrics } from '../metrics/kube.ts';
import type { Member } from '../process/lifecycle.ts';
import type { ClusterAccess } from './cluster.ts';
import { OwnWrites } from './own-writes.ts';
import { untilFrozen } from './target-readiness.ts';

/** Which objects a cache holds, and how. */
export interface CacheOptions<T extends KubeObject> {
  readonly namespace?: string;
  readonly metadataOnly?: true;
  readonly indexes?: IndexFunctions<T>;
  readonly transform?: Transform<T>;
  /** What is lost without the cache; a cache that we may not read is then left empty, for ever unsynced, and said so once. */
  readonly optionalFor?: string;
}

/** Before the first answer it is not known whether the server can be reached at all. */
const FIRST_LIST_TIMEOUT_MS = 10_000;

/** The installation lacks something without which a cache can never be filled. */
export class NotServedError extends Error {
  override readonly name = 'NotServedError';
}

/** One cache. */
interface CacheMember {
  readonly cached: CachedKind;
  readonly optionalFor: string | undefined;
  readonly run: (signal: AbortSignal) => Promise<void>;
  readonly wait: (signal: AbortSignal) => Promise<void>;
  readonly hasSynced: () => boolean;
}

/** All caches of one cluster: they start together, learn of our own writes, and tell that the cluster lives. */
export class Caches implements Member {
  readonly name: string;
  readonly ownWrites = new OwnWrites();
  readonly #access: ClusterAccess;
  readonly #parts: { clock: Clock; log: Logger; metrics: KubeMetrics; freezes: Freezes };
  readonly #stopping = new AbortController();
  #members: CacheMember[] = [];
  #running: Promise<unknown> = Promise.resolve();

  constructor(access: ClusterAccess, parts: { clock: Clock; log: Logger; metrics: KubeMetrics; freezes: Freezes }) {
    this.name = `caches of ${access.cluster}`;
    this.#access = access;
    this.#parts = parts;
  }

  /** Adds a cache; only before `start`. */
  add<T extends KubeObject>(resource: Resource<T>, options: CacheOptions<T> = {}): ReflectedInformer<T> {
    const { cluster, transport, reader } = this.#access;
    const { clock, log, metrics, freezes } = this.#parts;
    const { namespace, metadataOnly, indexes, transform, optionalFor } = options;
    const informer = new ReflectedInformer<T>({
      source: new HttpListWatch({ transport, resource, selection: { namespace, metadataOnly } }),
      clock,
      log,
      cluster,
      metrics,
      indexes,
      transform,
      onAlive: () => freezes.sawLife(cluster),
    });
    this.ownWrites.feed(resource, informer);
    this.#members.push({
      cached: { resource, namespace, reader, informer },
      optionalFor,
      run: (signal) => informer.run(signal),
      wait: (signal) => informer.waitForSync(signal),
      hasSynced: () => informer.hasSynced,
    });
    return informer;
  }

  get cluster(): Cluster {
    return this.#access.cluster;
  }

  /** For reachPresent. */
  get kinds(): readonly CachedKind[] {
    return this.#members.map(({ cached }) => cached);
  }

  /** For the readiness check. */
  get synced(): readonly { readonly kind: string; readonly hasSynced: boolean }[] {
    return this.#members.map(({ cached, hasSynced }) => ({ kind: cached.resource.kind, hasSynced: hasSynced() }));
  }

  /**
   * Resolves when all caches are filled; those of a target cluster also when it is frozen, and then they are filled when it
   * answers. Throws NotServedError when a kind is not served or we may not read it.
   */
  async start(signal: AbortSignal): Promise<void> {
    const isReadable = await Promise.all(this.#members.map((member) => this.#isReadable(member, signal)));
    this.#members = this.#members.filter((_member, i) => isReadable[i] === true);
    const stopping = this.#stopping.signal;
    this.#running = Promise.all(this.#members.map(({ run }) => run(stopping)));
    const filled = Promise.all(this.#members.map(({ wait }) => wait(signal)));
    const { cluster } = this.#access;
    if (cluster === CONTROL) await filled;
    else await Promise.race([filled, untilFrozen(this.#parts.freezes, cluster)]);
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new Error('the process is stopping'));
    await this.#running;
  }

  /** False for an optional cache that would never be filled. */
  async #isReadable({ cached, optionalFor }: CacheMember, signal: AbortSignal): Promise<boolean> {
    try {
      await this.#requireServed(cached, signal);
      return true;
    } catch (err) {
      if (optionalFor === undefined || !(err instanceof NotServedError)) throw err;
      const { cluster } = this.#access;
      this.#parts.log.warn({ cluster, kind: cached.resource.kind, err: err.message }, `went on without ${optionalFor}`);
      return false;
    }
  }

  /** An unreachable server is waited for; a refusal would last for ever and is said at once. */
  async #requireServed({ resource, namespace, reader }: CachedKind, signal: AbortSignal): Promise<void> {
    const what = `${resource.plural}.${resource.group === '' ? 'core' : resource.group}`;
    try {
      const scope = namespace === undefined ? {} : { namespace };
      await reader.list(resource, { ...scope, limit: 1, signal, timeoutMs: FIRST_LIST_TIMEOUT_MS });
    } catch (err) {
      signal.throwIfAborted();
      if (isNotServed(err)) {
        throw new NotServedError(`the ${this.#access.cluster} cluster does not serve ${what}: apply crds/`, {
          cause: err,
        });
      }
      if (ApiError.is(err, 'Forbidden', 'Unauthorized')) {
        throw new NotServedError(
          `the ${this.#access.cluster} cluster does not let us read ${what}: apply deploy/rbac/ (${err.message})`,
          { cause: err },
        );
      }
      this.#parts.log.warn({ cluster: this.#access.cluster, err }, 'cluster not reachable yet');
    }
  }
}
