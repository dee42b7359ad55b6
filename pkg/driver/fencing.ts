import type { Clock } from '../base/clock/clock.ts';
import { DriverError } from './error.ts';

/** The highest token seen from the managers of one namespace of one cluster. */
export interface FencingRecord {
  readonly cluster: string;
  readonly namespace: string;
  /** Decimal, because JSON has no 64-bit integers. */
  readonly token: string;
  readonly seenMs: number;
}

/** Keeps records over restarts of the driver. `save` resolves when they would survive a crash. */
export interface FencingStore {
  load(): Promise<readonly FencingRecord[]>;
  save(records: readonly FencingRecord[]): Promise<void>;
}

export interface FencingOptions {
  readonly clock: Clock;
  /** Without one, tokens are remembered until the driver ends. */
  readonly store?: FencingStore;
  /** How long a token counts after its last use; see FencingGuard. */
  readonly forgetAfterMs?: number;
}

const FORGET_AFTER_MS = 3_600_000;
/** How far the stored time of last use may lag behind, so that not every call writes. */
const REFRESH_MS = 300_000;

/** The token of a manager without leader election. Those of a Lease begin with 1. */
const NO_LEADER_ELECTION = 0n;

/**
 * Refuses mutations of a manager that has been replaced (rule 5 of the contract). A manager without leader election has no
 * Lease to compare with: its calls are admitted and leave no trace. A token that nobody has used for an hour is forgotten:
 * a manager whose Lease counts less than before, and which cannot raise its count above what the refusal tells, must not be
 * refused forever.
 */
export class FencingGuard {
  readonly #clock: Clock;
  readonly #store: FencingStore | undefined;
  readonly #forgetAfterMs: number;
  readonly #records = new Map<string, FencingRecord>();
  /** Writes run one after another; a call waits for the one that holds its token. */
  #written: Promise<void> = Promise.resolve();
  /** The last write failed: what is remembered here is not on disk. */
  #isDirty = false;

  private constructor(options: FencingOptions) {
    this.#clock = options.clock;
    this.#store = options.store;
    this.#forgetAfterMs = options.forgetAfterMs ?? FORGET_AFTER_MS;
  }

  /** Loads what earlier processes have seen. */
  static async open(options: FencingOptions): Promise<FencingGuard> {
    const guard = new FencingGuard(options);
    for (const record of (await options.store?.load()) ?? []) guard.#records.set(keyOf(record), record);
    return guard;
  }

  /** Resolves when the token is at least the highest seen and is durably remembered; else throws FailedPrecondition. */
  async admit(cluster: string, namespace: string, token: bigint): Promise<void> {
    if (token === NO_LEADER_ELECTION) return;
    const nowMs = this.#clock.now();
    const known = this.#records.get(keyOf({ cluster, namespace }));
    const isKnown = known !== undefined && nowMs - known.seenMs < this.#forgetAfterMs;
    if (isKnown && token < BigInt(known.token)) {
      throw new DriverError(
        'FailedPrecondition',
        `fencing token ${token} is older than ${known.token}: another manager has become leader since, or the Lease of this manager ` +
          'was reset (restored from a backup, or deleted)',
        { highestToken: BigInt(known.token) },
      );
    }
    const isFresh = isKnown && token === BigInt(known.token) && nowMs - known.seenMs < REFRESH_MS;
    if (isFresh && !this.#isDirty) return await this.#written;

    const record = { cluster, namespace, token: String(token), seenMs: nowMs };
    this.#records.set(keyOf(record), record);
    await this.#save();
  }

  async #save(): Promise<void> {
    const store = this.#store;
    if (store === undefined) return;
    // A failed write must not fail the next one; anyone who asked for it gets the error.
    this.#isDirty = false;
    const written = this.#written.catch(() => undefined).then(() => store.save([...this.#records.values()]));
    this.#written = written;
    try {
      await written;
    } catch (err) {
      this.#isDirty = true;
      throw err;
    }
  }
}

function keyOf(record: { cluster: string; namespace: string }): string {
  return JSON.stringify([record.cluster, record.namespace]);
}
