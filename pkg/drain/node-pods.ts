import type { List } from '../apis/meta.ts';
import type { Pod } from '../apis/wire.ts';
import type { Clock } from '../base/clock/clock.ts';
import type { ListWatch } from '../kube/client/list-watch.ts';
import type { WatchEvent } from '../kube/client/watch.ts';
import type { Logger } from '../base/log/logger.ts';
import { Waiters } from '../base/clock/waiters.ts';
import type { DrainLimits } from './limits.ts';

/** How often the pods are listed while no watch is to be had. */
const POLL_MS = 5_000;
/** Shortest time between two lists, so that a watch that ends at once, or an error, does not become a storm. */
const RELIST_MS = 1_000;
/** So that a watch that stalls is noticed. */
const WATCH_S = 15;

/** Where the pods of one node come from: a list and watch of pods by `spec.nodeName`, in all namespaces. */
export type PodSource = Pick<ListWatch<Pod>, 'list' | 'watch'>;

/** The field selector of a PodSource. */
export function podsOnNode(nodeName: string): string {
  return `spec.nodeName=${nodeName}`;
}

/** What the rest of a drain knows of its pods. */
export interface PodFeed {
  all(): readonly Pod[];
  /** The pod of this UID as it was last seen; undefined once it is gone. */
  get(uid: string): Pod | undefined;
  /** See Waiters.until. */
  until(holds: () => boolean, signal: AbortSignal, timeoutMs?: number): Promise<boolean>;
}

/**
 * The pods of one node, for as long as it is drained: listed first, then watched if the process may hold one more watch,
 * else listed every 5 s. A pod is gone when the server said so: by a DELETED event, or by leaving it out of a list.
 */
export class NodePods implements PodFeed {
  readonly #parts: { source: PodSource; limits: DrainLimits; clock: Clock; log: Logger };
  readonly #pods = new Map<string, Pod>();
  /** By UID; monotonic. */
  readonly #firstSeenMs = new Map<string, number>();
  readonly #changes: Waiters;
  #resourceVersion = '';

  constructor(parts: { source: PodSource; limits: DrainLimits; clock: Clock; log: Logger }) {
    this.#parts = parts;
    this.#changes = new Waiters(parts.clock);
  }

  all(): readonly Pod[] {
    return [...this.#pods.values()];
  }

  get(uid: string): Pod | undefined {
    return this.#pods.get(uid);
  }

  /** When the pod was first seen on the node; monotonic. */
  firstSeenMs({ metadata }: Pod): number {
    return this.#firstSeenMs.get(metadata.uid) ?? Number.POSITIVE_INFINITY;
  }

  until(holds: () => boolean, signal: AbortSignal, timeoutMs?: number): Promise<boolean> {
    return this.#changes.until(holds, signal, timeoutMs);
  }

  /** Lists the pods anew. Throws ApiError. */
  async refresh(signal: AbortSignal): Promise<void> {
    const { items, metadata } = await this.#list(signal);
    this.#pods.clear();
    for (const pod of items) this.#see(pod);
    this.#resourceVersion = metadata.resourceVersion;
    this.#changes.notify();
  }

  /** Keeps the pods fresh, beginning where `refresh` left off. Resolves once the signal is aborted; never rejects. */
  async follow(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#parts;
    let isFresh = true;
    while (!signal.aborted) {
      try {
        await (isFresh ? this.#watch(signal) : clock.sleep(POLL_MS - RELIST_MS, signal));
        await clock.sleep(RELIST_MS, signal);
        await this.refresh(signal);
        isFresh = true;
      } catch (err) {
        isFresh = false;
        if (!signal.aborted) log.debug({ err }, 'could not list the pods of a node');
      }
    }
  }

  /**
   * The first list is the newest that there is. Later ones may come from the server's memory, as long as it knows no less than we
   * do: older servers would read all pods of the cluster from etcd each time.
   */
  async #list(signal: AbortSignal): Promise<List<Pod>> {
    const known = this.#resourceVersion;
    this.#resourceVersion = '';
    return await this.#parts.source.list(
      known === '' ? { signal } : { signal, resourceVersion: known, resourceVersionMatch: 'NotOlderThan' },
    );
  }

  /** One watch to its end, however it ends; the time between two lists when no watch is to be had. */
  async #watch(signal: AbortSignal): Promise<void> {
    const { source, limits, clock, log } = this.#parts;
    const giveBack = limits.takeWatch();
    if (giveBack === undefined) return clock.sleep(POLL_MS - RELIST_MS, signal);
    try {
      const events = source.watch({ resourceVersion: this.#resourceVersion, timeoutSeconds: WATCH_S, signal });
      for await (const event of events) {
        if (event.type === 'ERROR') return; // most often Expired: the list that follows is the answer to all
        this.#apply(event);
      }
    } catch (err) {
      signal.throwIfAborted();
      log.debug({ err }, 'lost the watch of the pods of a node');
    } finally {
      giveBack();
    }
  }

  #apply(event: Exclude<WatchEvent<Pod>, { type: 'ERROR' }>): void {
    if (event.type === 'BOOKMARK') return;
    const { uid } = event.object.metadata;
    if (event.type === 'DELETED') this.#pods.delete(uid);
    else this.#see(event.object);
    this.#changes.notify();
  }

  #see(pod: Pod): void {
    const { uid } = pod.metadata;
    this.#pods.set(uid, pod);
    if (!this.#firstSeenMs.has(uid)) this.#firstSeenMs.set(uid, this.#parts.clock.monotonicMs());
  }
}
