import { toTimestamp, type Clock } from '../../base/clock/clock.ts';
import { ApiError } from '../client/errors.ts';
import type { Logger } from '../../base/log/logger.ts';

/** An outage of the Lease, as far as a candidate is concerned. */
export interface LeaseOutage {
  /** Wall time at which the first attempt that failed was begun. */
  readonly sinceMs: number;
  readonly why: string;
}

/** A blink of the API server is not worth a warning, an outage is worth one again and again. */
const FIRST_WARNING = 3;
const WARN_EACH = 10;

/** Attempts at a Lease that fail one after another, told while it lasts and when it is over: nobody may lead meanwhile. */
export class LeaseTrouble {
  readonly #lease: string;
  readonly #clock: Clock;
  readonly #log: Logger;
  #failures = 0;
  #sinceMs = 0;
  #current: LeaseOutage | undefined;

  constructor(lease: string, parts: { readonly clock: Clock; readonly log: Logger }) {
    this.#lease = lease;
    this.#clock = parts.clock;
    this.#log = parts.log;
  }

  /** Undefined while the last attempt was answered. */
  get current(): LeaseOutage | undefined {
    return this.#current;
  }

  /** An attempt begun at `startedMs` (monotonic) was not answered, or not as it should be. */
  failed(err: unknown, startedMs: number): void {
    this.#failures += 1;
    if (this.#failures === 1) this.#sinceMs = startedMs;
    const ms = this.#clock.monotonicMs() - this.#sinceMs;
    const sinceMs = this.#clock.now() - ms;
    this.#current = { sinceMs, why: reasonFor(err) };
    const level = this.#failures === FIRST_WARNING || this.#failures % WARN_EACH === 0 ? 'warn' : 'debug';
    const fields = { lease: this.#lease, failures: this.#failures, since: toTimestamp(sinceMs), ms, err };
    this.#log[level](fields, 'could not read or acquire the Lease');
  }

  answered(): void {
    const failures = this.#failures;
    this.#failures = 0;
    this.#current = undefined;
    if (failures < FIRST_WARNING) return;
    const ms = this.#clock.monotonicMs() - this.#sinceMs;
    this.#log.info({ lease: this.#lease, failures, ms }, 'the Lease is reachable again');
  }
}

const TERMINATING =
  'To delete the Machines that are left, see docs/operations/rbac.md#a-namespace-stays-terminating; to lead from another namespace, set --leader-elect-resource-namespace';

function reasonFor(err: unknown): string {
  const text = err instanceof Error ? err.message : String(err);
  const causes = err instanceof ApiError ? (err.status?.details?.causes ?? []) : [];
  return causes.some(({ reason }) => reason === 'NamespaceTerminating') ? `${text}. ${TERMINATING}` : text;
}
