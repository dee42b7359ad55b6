import { untilAborted } from '../../base/clock/deadline.ts';
import type { Clock } from '../../base/clock/clock.ts';
import type { Reader } from '../../kube/client/client.ts';
import { ApiError } from '../../kube/client/errors.ts';
import { namespaces } from '../../kube/client/resource.ts';
import type { TargetClaims } from './target-claims.ts';
import { requireUID } from './target-uid.ts';

export interface CommonClaimOptions {
  /** Of the target cluster. */
  readonly reader: Pick<Reader, 'get'>;
  readonly claims: Pick<TargetClaims, 'claimForAll' | 'requireNone' | 'isOfAll'>;
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
  readonly #present: Shared;
  readonly #taken: Shared;
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
    await untilAborted(this.#taken.done(), signal);
  }

  /** Whether a claim that was taken is still there; it is taken again if nobody has it. Throws as `takeFor`; a failure takes nothing away. */
  async lookAgain(signal: AbortSignal): Promise<void> {
    if (this.#had !== undefined) await untilAborted(this.#taken.done(), signal);
  }

  /** The control cluster was set back: what is known of it, and the claim, may be of another time. */
  mayBeLost(): void {
    this.#mayBeLost = true;
    this.#setBacks += 1;
    this.#present.forget();
    this.#taken.forget();
  }

  async #take(): Promise<void> {
    const { reader, claims, requireSettled } = this.#options;
    const uid = await this.#readUID(reader);
    if (uid !== this.#had) await requireSettled(NEVER);
    else if (!this.#mayBeLost && (await claims.isOfAll(uid, NEVER))) return;
    const setBacks = this.#setBacks;
    await claims.claimForAll(uid, NEVER);
    this.#had = uid;
    if (this.#setBacks === setBacks) this.#mayBeLost = false;
  }

  /** A cluster that this process has had is taken for the same while it cannot be asked: with another server the process ends. */
  async #readUID(reader: CommonClaimOptions['reader']): Promise<string> {
    try {
      const { metadata } = await reader.get(namespaces, { name: 'kube-system' });
      return requireUID(metadata.uid);
    } catch (err) {
      if (!(err instanceof ApiError) || this.#had === undefined || this.#mayBeLost) throw err;
      return this.#had;
    }
  }
}

/** What is done once for all who want it done within a while. Its failure is theirs, too, for a moment. */
class Shared {
  readonly #run: () => Promise<void>;
  readonly #clock: Clock;
  #running: { readonly promise: Promise<void>; readonly sinceMs: number; isFailed: boolean } | undefined;

  constructor(clock: Clock, run: () => Promise<void>) {
    this.#run = run;
    this.#clock = clock;
  }

  async done(): Promise<void> {
    const nowMs = this.#clock.monotonicMs();
    const { sinceMs = -Infinity, isFailed = false } = this.#running ?? {};
    if (nowMs - sinceMs >= (isFailed ? FAILED_MS : FRESH_MS)) {
      const running = { promise: this.#run(), sinceMs: nowMs, isFailed: false };
      running.promise.catch(() => {
        running.isFailed = true;
      });
      this.#running = running;
    }
    await this.#running?.promise;
  }

  forget(): void {
    this.#running = undefined;
  }
}
