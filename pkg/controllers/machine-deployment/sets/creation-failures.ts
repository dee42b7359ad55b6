import type { Clock } from '../../../base/clock/clock.ts';
import { ApiError, REFUSAL_PATIENCE_MS } from '../../../kube/client/errors.ts';
import { ChangedTemplateError } from './create-set.ts';

/**
 * Since when new sets cannot be created, by UID of their MachineDeployment, monotonic. In memory only: the condition that tells of it stays while
 * there is no rollout, and would make the first refusal after that one of long ago. A new process waits once more.
 */
export class CreationFailures {
  readonly #clock: Clock;
  readonly #sinceMs = new Map<string, number>();

  constructor({ clock }: { readonly clock: Clock }) {
    this.#clock = clock;
  }

  failed(uid: string): void {
    if (!this.#sinceMs.has(uid)) this.#sinceMs.set(uid, this.#clock.monotonicMs());
  }

  /**
   * Whether the new set cannot be created, as `error` of this pass says, for as long as an API server that is just starting refuses what it grants
   * then. Replicas and rollbacks wait for that set no longer: nobody knows when it may be created.
   */
  isStuck(uid: string, error: unknown): boolean {
    if (!(error instanceof ApiError || error instanceof ChangedTemplateError)) return false;
    const sinceMs = this.#sinceMs.get(uid);
    return sinceMs !== undefined && this.#clock.monotonicMs() - sinceMs >= REFUSAL_PATIENCE_MS;
  }

  /** It has its new set, or is not tried any more. */
  forget(uid: string): void {
    this.#sinceMs.delete(uid);
  }
}
