import { keyOf, type KubeObject } from '../../apis/meta.ts';
import type { ObjectIdentity } from '../client/client.ts';
import type { Selection } from '../client/list-watch.ts';
import type { Resource } from '../../apis/resource.ts';
import type { Logger } from '../../base/log/logger.ts';
import type { ChangeHandler, Informer } from './lister.ts';
import { listAll, type Listed } from './pager.ts';
import { describeSetBack, findSetBack, ObservedHistory, type LastChange, samplesOf } from './observed-history.ts';
import { type Continuity, Reflector, type ReflectorSink, type ReflectorOptions } from './reflector.ts';
import { compareResourceVersions } from './resource-version.ts';
import type { CacheChange, IndexFunctions } from './store.ts';
import { deepFreeze, dropManagedFields, onlyMetadata, type Transform } from './transform.ts';
import { Waiters } from '../../base/clock/waiters.ts';
import { WrittenStore } from './written.ts';

type OfReflector = 'source' | 'clock' | 'log' | 'metrics' | 'streamLists' | 'random' | 'watchSeconds';

export interface InformerOptions<T extends KubeObject> extends Pick<ReflectorOptions<T>, OfReflector> {
  /** Name of the cluster, for metrics and logs. */
  readonly cluster: string;
  readonly indexes?: IndexFunctions<T> | undefined;
  /** Applied once to each object; `managedFields` are left out before. */
  readonly transform?: Transform<T> | undefined;
  /** Freezes what readers get: outside production, where it finds writers. */
  readonly freeze?: boolean | undefined;
  /** Told of every event, bookmark and list: the cluster answers. Must not throw. */
  readonly onAlive?: (() => void) | undefined;
  /** Told when it is known that changes were not seen for a while (monotonic): a watch broke or stalled. Must not throw. */
  readonly onBlind?: ((fromMs: number, untilMs: number) => void) | undefined;
  /** Where it notes what it has seen of the history of its kind. */
  readonly history?: ObservedHistory | undefined;
  /** How a watch that broke is gone on with, and who is told of lists that show that the server was set back. */
  readonly continuity?: InformerContinuity | undefined;
}

/** What an informer needs of its cluster's continuity. */
export interface InformerContinuity extends Continuity {
  listed(): void;
  /** A list shows that the server was set back; told before the list is taken. */
  setBack(why: string): void;
  /** `then` is called when it has to be listed although its watch is open: until that is done, nobody may rely on the whole cluster. One only. */
  onMustList(then: () => void): void;
}

export interface PendingList {
  /** What of it is to be compared with etcd before it is taken. */
  readonly samples: readonly LastChange[];
  /** Puts it in the place of all that is known, our own writes included, and makes the watch go on from there. */
  readonly take: () => void;
}

/** How long a waiter trusts that an event or bookmark comes; bookmarks come once a minute, so then a list is made. */
const LIST_AFTER_MS = 500;
const LIST_AGAIN_MS = 1_000;

/** A cache kept fresh by list and watch, with our own writes visible at once. Does nothing until `run`. */
export class ReflectedInformer<T extends KubeObject> implements Informer<T> {
  readonly resource: Resource<T>;
  readonly selection: Selection;
  readonly #options: InformerOptions<T>;
  readonly #log: Logger;
  readonly #store: WrittenStore<T>;
  readonly #waiters: Waiters;
  readonly #handlers: ChangeHandler<T>[] = [];
  readonly #ofDeliveries: ChangeHandler<T>[] = [];
  #hasSynced = false;
  /** A list made beside the watch got ahead of it: what the watch still delivers up to here is old. */
  #floor: string | undefined;
  /** What was known before such a list, when one of the reflector may have been under way. */
  #passedFrom: string | undefined;
  #aliveAtMs: number;
  #isWatching = false;
  #readings = 0;
  /** What it shows is of a history that did not happen. */
  #isAbandoned = false;
  /** Up to when changes were seen, since they are not. */
  #blindSinceMs: number | undefined;
  #reflector: Reflector<T> | undefined;
  readonly #history: ObservedHistory;
  #refreshing: Promise<void> | undefined;

  constructor(options: InformerOptions<T>) {
    this.#options = options;
    this.resource = options.source.resource;
    this.selection = options.source.selection;
    this.#log = options.log.child({ cluster: options.cluster, kind: this.resource.kind });
    this.#store = new WrittenStore(options.indexes);
    this.#waiters = new Waiters(options.clock);
    this.#aliveAtMs = options.clock.monotonicMs();
    this.#history = options.history ?? new ObservedHistory();
    options.continuity?.onMustList(() => this.#reflector?.listAnew());
  }

  get hasSynced(): boolean {
    return this.#hasSynced;
  }

  get resourceVersion(): string | undefined {
    return this.#store.resourceVersion;
  }

  get(key: string): T | undefined {
    return this.#store.view.get(key);
  }

  list(): readonly T[] {
    return this.#store.view.list();
  }

  byIndex(index: string, value: string): readonly T[] {
    return this.#store.view.byIndex(index, value);
  }

  onChange(handler: ChangeHandler<T>): void {
    this.#handlers.push(handler);
    for (const object of this.list()) this.#notify(handler, { old: undefined, current: object });
  }

  onDelivered(handler: ChangeHandler<T>): void {
    this.#ofDeliveries.push(handler);
  }

  /** Keeps the cache fresh until the signal is aborted; never rejects. May be run again; until its first list it is not synced. */
  async run(signal: AbortSignal): Promise<void> {
    const { source, clock, metrics, streamLists, random, cluster, continuity, watchSeconds } = this.#options;
    const sink: ReflectorSink<T> = {
      resourceVersion: (): string | undefined => this.resourceVersion,
      keep: (object: T): T => this.#keep(object),
      listing: (): void => {
        this.#passedFrom = undefined;
      },
      replace: (list: Listed<T>): void => this.#listed(list),
      deliver: (type: 'ADDED' | 'MODIFIED' | 'DELETED', object: T): void => this.#deliver(type, object),
      reach: (resourceVersion: string): void => this.#reach(resourceVersion),
      lastChange: (): string | undefined => this.#history.lastChange?.resourceVersion,
      opened: (): void => this.#opened(),
      ended: (inOrder: boolean): void => this.#ended(inOrder),
    };
    const forget = metrics?.watchAge(
      { kind: this.resource.kind, cluster },
      () => (clock.monotonicMs() - this.#aliveAtMs) / 1_000,
    );
    try {
      const log = this.#log;
      const how = { clock, log, metrics, streamLists, random, continuity, watchSeconds };
      this.#reflector = new Reflector({ source, sink, ...how });
      await this.#reflector.run(signal);
    } finally {
      forget?.();
      this.#reflector = undefined;
      this.#isWatching = false;
      this.#hasSynced = false;
    }
  }

  /** Resolves when the cache is filled and a watch keeps it fresh; rejects with the signal's reason. */
  async waitUntilWatching(signal: AbortSignal): Promise<void> {
    await this.#waiters.until(() => this.#hasSynced && this.#isWatching, signal);
  }

  /** After the server was set back: reads everything by quorum. Rejects with ApiError or the signal's reason. */
  async reread(signal: AbortSignal): Promise<PendingList> {
    const { source, metrics } = this.#options;
    const list = await listAll(source, { resourceVersion: '', signal });
    metrics?.lists.inc({ kind: this.resource.kind, reason: 'set-back' });
    return {
      samples: samplesOf(list.items, list.resourceVersion, this.#history.lastChange),
      take: () => {
        this.#readings += 1;
        this.#history.forget();
        this.#store.forgetWrites();
        this.#take({ ...list, items: list.items.map((item) => this.#keep(item)) });
        this.#options.continuity?.listed();
        this.#reflector?.restart();
      },
    };
  }

  /** After the server was set back, and refuses to have it read anew: what is known is of no use to compare the next list with. */
  abandon(): void {
    this.#readings += 1;
    this.#history.forget();
    this.#store.forgetWrites();
    this.#isAbandoned = true;
    this.#reflector?.listAnew();
  }

  /** Resolves when the first list is complete; rejects with the signal's reason. */
  async waitForSync(signal: AbortSignal): Promise<void> {
    await this.#waiters.until(() => this.#hasSynced, signal);
  }

  async waitFor(resourceVersion: string, signal: AbortSignal): Promise<void> {
    const readings = this.#readings;
    const isReached = (): boolean =>
      // In the history that has gone back nobody may ever get there.
      this.#readings !== readings ||
      (this.resourceVersion !== undefined && compareResourceVersions(this.resourceVersion, resourceVersion) >= 0);
    await this.waitForSync(signal);
    while (!(await this.#waiters.until(isReached, signal, LIST_AFTER_MS))) {
      try {
        await this.#refresh(signal);
      } catch (err) {
        signal.throwIfAborted();
        this.#log.debug({ err }, 'listing ahead of the watch failed');
        await this.#waiters.until(isReached, signal, LIST_AGAIN_MS);
      }
    }
  }

  wrote(object: T): void {
    const { namespace } = this.selection;
    if (namespace && object.metadata.namespace !== namespace) return;
    // The caller keeps its answer and may change it. What came as JSON is copied fastest as JSON.
    const copy = JSON.parse(JSON.stringify(dropManagedFields({ ...object }))) as T;
    this.#history.reached(object.metadata.resourceVersion);
    this.#publish(this.#store.write(this.#keep(copy)));
  }

  deleted(object: ObjectIdentity): void {
    this.#publish(this.#store.delete(object));
  }

  /** One live list, however many wait for it; the watch goes on beside it. */
  async #refresh(signal: AbortSignal): Promise<void> {
    this.#refreshing ??= this.#listAhead(signal).finally(() => {
      this.#refreshing = undefined;
    });
    await this.#refreshing;
  }

  async #listAhead(signal: AbortSignal): Promise<void> {
    const { source, metrics, continuity } = this.#options;
    // A list of another history would hide what is to be compared with it.
    await continuity?.untilVerified(signal);
    const { newest } = this.#history;
    const list = await listAll(source, { resourceVersion: '', signal });
    metrics?.lists.inc({ kind: this.resource.kind, reason: 'catch-up' });
    const why = describeSetBack(this.resource, list.resourceVersion, newest);
    if (why !== undefined) return continuity?.setBack(why);
    const known = this.resourceVersion;
    if (known !== undefined && compareResourceVersions(list.resourceVersion, known) <= 0) return;
    if (!this.#isWatching) this.#passedFrom ??= known;
    this.#replace({ ...list, items: list.items.map((item) => this.#keep(item)) });
  }

  /** Takes a list of the reflector, unless one made beside it has passed it: what that shows, and we have written since, is not to vanish. */
  #listed(list: Listed<T>): void {
    const from = this.#passedFrom;
    this.#passedFrom = undefined;
    const isBefore = (other: string | undefined): boolean =>
      other !== undefined && compareResourceVersions(list.resourceVersion, other) < 0;
    const isPassed = from !== undefined && isBefore(this.resourceVersion) && !isBefore(from);
    if (isPassed) this.#options.continuity?.listed();
    else this.#replace(list);
  }

  #replace(list: Listed<T>): void {
    const { continuity } = this.#options;
    const object = findSetBack((item) => (this.#isAbandoned ? undefined : this.#store.view.get(keyOf(item))), list);
    if (object !== undefined) {
      const { resourceVersion } = object.metadata;
      continuity?.setBack(`${this.resource.plural} "${keyOf(object)}" is at resourceVersion ${resourceVersion} again`);
    }
    this.#take(list);
    continuity?.listed();
  }

  #take(list: Listed<T>): void {
    this.#seesAgain();
    this.#isAbandoned = false;
    this.#floor = list.resourceVersion;
    this.#history.listed(list.items, list.resourceVersion);
    this.#publish(this.#store.replace(list.items, list.resourceVersion));
    this.#hasSynced = true;
    this.#alive();
  }

  #deliver(type: 'ADDED' | 'MODIFIED' | 'DELETED', object: T): void {
    this.#history.changed(object, type === 'DELETED');
    if (!this.#isBelowFloor(object.metadata.resourceVersion)) {
      const old = this.#store.delivered(keyOf(object));
      const current = type === 'DELETED' ? undefined : object;
      // Both are undefined for what we have deleted.
      if (old !== current) for (const handler of this.#ofDeliveries) this.#notify(handler, { old, current });
      this.#publish(this.#store.deliver(type, object));
    }
    this.#alive();
  }

  #reach(resourceVersion: string): void {
    this.#history.reached(resourceVersion);
    if (!this.#isBelowFloor(resourceVersion)) this.#publish(this.#store.reach(resourceVersion));
    this.#alive();
  }

  #opened(): void {
    this.#seesAgain();
    this.#blindSinceMs = undefined;
    this.#passedFrom = undefined;
    this.#isWatching = true;
    this.#alive();
  }

  /**
   * What is seen after a watch that broke is old until everything was listed, or the next one is open. Before the first list nothing was seen
   * that could have changed: servers refuse lists while they fill their watch caches.
   */
  #ended(inOrder: boolean): void {
    this.#isWatching = false;
    if (!inOrder && this.resourceVersion !== undefined) this.#blindSinceMs ??= this.#aliveAtMs;
  }

  #seesAgain(): void {
    if (this.#blindSinceMs === undefined) return;
    const { clock, onBlind } = this.#options;
    const nowMs = clock.monotonicMs();
    onBlind?.(this.#blindSinceMs, nowMs);
    this.#blindSinceMs = nowMs;
  }

  #isBelowFloor(resourceVersion: string): boolean {
    if (this.#floor === undefined) return false;
    if (compareResourceVersions(resourceVersion, this.#floor) <= 0) return true;
    this.#floor = undefined;
    return false;
  }

  #alive(): void {
    this.#aliveAtMs = this.#options.clock.monotonicMs();
    this.#options.onAlive?.();
    this.#waiters.notify();
  }

  #keep(object: T): T {
    const { transform, freeze } = this.#options;
    let kept = dropManagedFields(object);
    if (this.selection.metadataOnly === true) kept = onlyMetadata(kept);
    if (transform !== undefined) kept = transform(kept);
    return freeze === true ? deepFreeze(kept) : kept;
  }

  #publish(changes: readonly CacheChange<T>[]): void {
    for (const change of changes) for (const handler of this.#handlers) this.#notify(handler, change);
  }

  #notify(handler: ChangeHandler<T>, { old, current }: CacheChange<T>): void {
    try {
      handler(old, current);
    } catch (err) {
      const object = current ?? old;
      this.#options.metrics?.handlerErrors.inc({ kind: this.resource.kind });
      this.#log.error({ err, key: object === undefined ? '' : keyOf(object) }, 'cache handler failed');
    }
  }
}
