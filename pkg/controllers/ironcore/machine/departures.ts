import type { IronCoreMachine } from '../../../apis/ironcore/machine.ts';
import { isBeingDeleted } from '../../../apis/meta.ts';
import { BoundedMap } from '../../../events/bounded-map.ts';
import { runtimeIDOf } from './runtime-id.ts';

/** So many are remembered; the oldest are forgotten first, and what they leave behind is kept. */
const CAPACITY = 65_536;

/**
 * Machines that somebody was seen to delete, by UID. That a Machine is not there proves nothing: an API server that was restored from a
 * backup has not heard of those that are younger. That its deletion was asked for is seen in its own history or not at all, so that only
 * this is a second source beside its absence. In memory only: what a process does not know is kept.
 */
export class Departures {
  /** With whether a machine of theirs was known, as it was last seen. */
  readonly #seen = new BoundedMap<string, boolean>(CAPACITY);

  /** Takes note of a Machine, if it is being deleted. */
  saw(machine: IronCoreMachine | undefined): void {
    if (machine !== undefined && isBeingDeleted(machine))
      this.#seen.set(machine.metadata.uid, runtimeIDOf(machine) !== '');
  }

  has(uid: string): boolean {
    return this.#seen.get(uid) !== undefined;
  }

  /** Whether it is known to have had its machine: no creation of it was without an answer then. */
  hadMachine(uid: string): boolean {
    return this.#seen.get(uid) === true;
  }

  /** The API server was set back: perhaps just because of these deletions. */
  clear(): void {
    this.#seen.clear();
  }
}
