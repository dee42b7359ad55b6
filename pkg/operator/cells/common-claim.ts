import { untilAborted } from '../../base/clock/deadline.ts';
import type { Reader } from '../../kube/client/client.ts';
import { namespaces } from '../../kube/client/resource.ts';
import type { TargetClaims } from './target-claims.ts';

export interface CommonClaimOptions {
  /** Of the target cluster. */
  readonly reader: Pick<Reader, 'get'>;
  readonly claims: Pick<TargetClaims, 'claimForAll' | 'requireNone'>;
  /** Resolves when it is known which namespaces have Machines, as of the present. Throws ApiError. */
  readonly untilPresent: (signal: AbortSignal) => Promise<void>;
  /** Asked by a process that does not have the cluster yet: throws ApiError while those who have it may have to claim it again. */
  readonly requireSettled: (signal: AbortSignal) => Promise<void>;
}

/** Requests end by themselves; one cell that ends does not keep the others from it. */
const NEVER = new AbortController().signal;

/** The claim of the target cluster that all cells have: a process takes it once for all of them, and again when it may be lost. */
export class CommonClaim {
  readonly #options: CommonClaimOptions;
  readonly #present: Shared;
  readonly #taken: Shared;
  /** UID of the cluster that this process has had. */
  #had: string | undefined;

  constructor(options: CommonClaimOptions) {
    this.#options = options;
    this.#present = new Shared(() => options.untilPresent(NEVER));
    this.#taken = new Shared(() => this.#take());
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

  /** The control cluster was set back: what is known of it, and the claim, may be of another time. */
  mayBeLost(): void {
    this.#present.forget();
    this.#taken.forget();
  }

  async #take(): Promise<void> {
    const { reader, claims, requireSettled } = this.#options;
    const { metadata } = await reader.get(namespaces, { name: 'kube-system' });
    if (metadata.uid !== this.#had) await requireSettled(NEVER);
    await claims.claimForAll(metadata.uid, NEVER);
    this.#had = metadata.uid;
  }
}

/** What is done once for all who want it done; after a failure, the next one tries again. */
class Shared {
  readonly #run: () => Promise<void>;
  #running: Promise<void> | undefined;

  constructor(run: () => Promise<void>) {
    this.#run = run;
  }

  async done(): Promise<void> {
    const running = (this.#running ??= this.#run());
    try {
      await running;
    } catch (err) {
      if (this.#running === running) this.#running = undefined;
      throw err;
    }
  }

  forget(): void {
    this.#running = undefined;
  }
}
