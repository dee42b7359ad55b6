import { untilAborted } from '../../base/clock/deadline.ts';
import type { Clock } from '../../base/clock/clock.ts';
import type { Reader } from '../../kube/client/client.ts';
import { ApiError } from '../../kube/client/errors.ts';
import { TargetRefusedError } from '../target-refused-error.ts';
import type { TargetClaims } from './target-claims.ts';
import { readClusterUID } from '../cluster-uid.ts';

export interface CommonClaimOptions {
  /** Of the target cluster. */
  readonly reader: Pick<Reader, 'get'>;
  readonly claims: Pick<TargetClaims, 'claimForAll' | 'requireNone' | 'requireNodes' | 'join' | 'isOfAll'>;
  /** Resolves when it is known which namespaces have Machines, as of the present. Throws ApiError. */
  readonly untilPresent: (signal: AbortSignal) => Promise<void>;
  /** Asked by a process that does not have the cluster yet: throws ApiError while those who have it may have to claim it again. */
  readonly requireSettled: (signal: AbortSignal) => Promise<void>;
  readonly clock: Clock;
}

/** A cell that begins later looks again: a Lease can be deleted by hand. */
const FRESH_MS = 60_000;
/** While it must not be taken, hundreds of cells ask for it. */
const FAILED_MS = 4_000;

/** One cell that ends does not keep the others from it. */
const NEVER = new AbortController().signal;

/** The claim of the target cluster that all cells have: a process takes it for all that begin, and again when it may be lost. */
export class CommonClaim {
  readonly #options: CommonClaimOptions;
  readonly #present: Shared<void>;
  readonly #taken: Shared<string>;
  /** Namespaces of this process that have the cluster, and those that are about to. */
  readonly #members = new Set<string>();
  readonly #joining = new Set<string>();
  #joined: Promise<void> = Promise.resolve();
  /** UID of the cluster that this process has had. */
  #had: string | undefined;
  #mayBeLost = false;
  #setBacks = 0;

  constructor(options: CommonClaimOptions) {
    this.#options = options;
    this.#present = new Shared(options.clock, () => options.untilPresent(NEVER));
    this.#taken = new Shared(options.clock, () => this.#take());
  }

  /**
   * Resolves when the cluster is that of all namespaces, and this one has none of its own. Throws TargetRefusedError while that must not be,
   * ApiError, and the signal's reason.
   */
  async takeFor(namespace: string, signal: AbortSignal): Promise<void> {
    await untilAborted(this.#present.done(), signal);
    await this.#options.claims.requireNone(namespace, signal);
    const uid = await untilAborted(this.#taken.done(), signal);
    if (this.#members.has(namespace)) return;
    await this.#options.claims.requireNodes(uid, namespace, signal);
    signal.throwIfAborted();
    await untilAborted(this.#join(uid, namespace), signal);
  }

  /** The cell of a namespace has ended. */
  ended(namespace: string): void {
    this.#members.delete(namespace);
    this.#joining.delete(namespace);
  }

  /** Whether a claim that was taken is still there; it is taken again if nobody has it. Throws as `takeFor`; a failure takes nothing away. */
  async lookAgain(signal: AbortSignal): Promise<void> {
    if (this.#had !== undefined) await untilAborted(this.#taken.done(FAILED_MS), signal);
  }

  /** The control cluster was set back: what is known of it, and the claim, may be of another time. */
  mayBeLost(): void {
    this.#mayBeLost = true;
    this.#setBacks += 1;
    this.#present.forget();
    this.#taken.forget();
  }

  async #take(): Promise<string> {
    const { reader, claims, requireSettled } = this.#options;
    const uid = await this.#readUID(reader);
    const isOurs = uid === this.#had;
    const members = isOurs ? [...this.#members] : [];
    if (!isOurs) await requireSettled(NEVER);
    else if (!this.#mayBeLost && (await claims.isOfAll(uid, members, NEVER))) return uid;
    const setBacks = this.#setBacks;
    try {
      await claims.claimForAll(uid, NEVER, isOurs);
    } catch (err) {
      // Then it is another process that has one, and this one has to ask like any other.
      if (err instanceof TargetRefusedError) this.#had = undefined;
      throw err;
    }
    if (members.length > 0) await claims.join(uid, members, NEVER);
    if (!isOurs) this.#members.clear();
    this.#had = uid;
    if (this.#setBacks === setBacks) this.#mayBeLost = false;
    return uid;
  }

  /** Hundreds that begin at once are written together. */
  #join(uid: string, namespace: string): Promise<void> {
    this.#joining.add(namespace);
    this.#joined = this.#joinAll(uid, this.#joined);
    return this.#joined;
  }

  async #joinAll(uid: string, before: Promise<void>): Promise<void> {
    await before.catch(() => undefined);
    const names = [...this.#joining];
    if (names.length === 0) return;
    await this.#options.claims.join(uid, names, NEVER);
    // A member that has ended meanwhile would be written down again and again, and never be asked where its Nodes are.
    for (const name of names) if (this.#joining.delete(name)) this.#members.add(name);
  }

  /** A cluster that this process has had is taken for the same while it cannot be asked: with another server the process ends. */
  async #readUID(reader: CommonClaimOptions['reader']): Promise<string> {
    try {
      return await readClusterUID(reader, NEVER);
    } catch (err) {
      if (!(err instanceof ApiError) || this.#had === undefined || this.#mayBeLost) throw err;
      return this.#had;
    }
  }
}

/** What is done once for all who want it done within a while. Its failure is theirs, too, for a moment. */
class Shared<T> {
  readonly #run: () => Promise<T>;
  readonly #clock: Clock;
  #running: { readonly promise: Promise<T>; readonly sinceMs: number; isFailed: boolean } | undefined;

  constructor(clock: Clock, run: () => Promise<T>) {
    this.#run = run;
    this.#clock = clock;
  }

  done(freshMs = FRESH_MS): Promise<T> {
    const nowMs = this.#clock.monotonicMs();
    const last = this.#running;
    if (last !== undefined && nowMs - last.sinceMs < (last.isFailed ? FAILED_MS : freshMs)) return last.promise;
    const running = { promise: this.#run(), sinceMs: nowMs, isFailed: false };
    running.promise.catch(() => {
      running.isFailed = true;
    });
    this.#running = running;
    return running.promise;
  }

  forget(): void {
    this.#running = undefined;
  }
}
