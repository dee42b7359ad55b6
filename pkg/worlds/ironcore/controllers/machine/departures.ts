import type { IronCoreMachine } from '../../api/machine.ts';
import { CREATION_SENT_ANNOTATION } from '../../../../apis/machine/v1alpha1/labels.ts';
import { isBeingDeleted } from '../../../../apis/meta.ts';
import { BoundedMap } from '../../../../kube/events/bounded-map.ts';
import { runtimeIDOf } from './runtime-id.ts';

/** So many are remembered; the oldest are forgotten first, and what they leave behind is kept. */
const CAPACITY = 65_536;

/**
 * Machines that somebody was seen to delete, by UID. That a Machine is not there proves nothing: an API server that was restored from a
 * backup has not heard of those that are younger. That its deletion was asked for is seen in its own history or not at all, so that only
 * this is a second source beside its absence. In memory only: what a process does not know is kept.
 */
export class Departures {
  readonly #seen = new BoundedMap<string, Departure>(CAPACITY);

  /** Takes note of a Machine, if it is being deleted. */
  saw(machine: IronCoreMachine | undefined): void {
    if (machine === undefined || !isBeingDeleted(machine)) return;
    const { uid, annotations } = machine.metadata;
    const id = runtimeIDOf(machine);
    this.#seen.set(uid, { id, wasRequested: id !== '' || annotations?.[CREATION_SENT_ANNOTATION] !== undefined });
  }

  has(uid: string): boolean {
    return this.#seen.get(uid) !== undefined;
  }

  /** The id of its machine, if it is known to have had one: no creation of it was without an answer then. */
  machineOf(uid: string): string | undefined {
    const { id = '' } = this.#seen.get(uid) ?? {};
    return id === '' ? undefined : id;
  }

  /** Whether it went before any machine was asked for. */
  wentWithoutMachine(uid: string): boolean {
    return this.#seen.get(uid)?.wasRequested === false;
  }

  /** The API server was set back: perhaps just because of these deletions. */
  clear(): void {
    this.#seen.clear();
  }
}

interface Departure {
  /** Of its machine; empty: none is known. */
  readonly id: string;
  /** Whether a machine may have been made for it. */
  readonly wasRequested: boolean;
}
