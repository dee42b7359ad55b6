import type { ObjectMeta } from '../../apis/meta.ts';
import { fromTimestamp, type Clock } from '../../base/clock/clock.ts';
import type { DriverCall, MachineOrStub } from '../../driver/driver.ts';

/** By so much the clocks of API server and driver may differ. */
const SKEW_MS = 5_000;

/**
 * Since when this process is the one that is asked for the machines of a namespace. Before, another one was, under another leader or until
 * it died, and what it had asked for last may still appear: a service deals with what it was sent although nobody waits for the answer.
 */
export class Tenure {
  readonly #clock: Clock;
  /** By cluster and namespace. */
  readonly #since = new Map<string, { readonly token: bigint; readonly sinceMs: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A call that changes something has come: each change of leadership begins anew. */
  saw({ metadata: { namespace = '' } }: MachineOrStub, { cluster, fencingToken: token }: DriverCall): void {
    const key = JSON.stringify([cluster, namespace]);
    if (this.#since.get(key)?.token !== token) this.#since.set(key, { token, sinceMs: this.#clock.now() });
  }

  /**
   * How long something may still appear that another process has asked for, for a machine that is being deleted, after which nobody asks
   * any more. 0 for one that was made in our time, and for one whose deletion is older than `answerMs`.
   */
  leftMs(machine: MachineOrStub, { cluster }: DriverCall, answerMs: number): number {
    const { namespace = '', creationTimestamp, deletionTimestamp } = machine.metadata as Partial<ObjectMeta>;
    const sinceMs = this.#since.get(JSON.stringify([cluster, namespace]))?.sinceMs ?? Infinity;
    if ((fromTimestamp(creationTimestamp) ?? 0) > sinceMs + SKEW_MS) return 0;
    const leftMs = (fromTimestamp(deletionTimestamp) ?? -Infinity) + answerMs - this.#clock.now();
    // A clock that was set back must not hold a machine for ever.
    return Math.min(answerMs, Math.max(0, leftMs));
  }
}
