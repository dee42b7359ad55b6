import type { IronCoreMachine } from '../../apis/ironcore/machine.ts';

interface Place {
  readonly pool: string;
  readonly machineClass: string;
}

/**
 * How many Machines of each class are in each pool: those that have it in their spec, and those for which that is being written. Each
 * counts once, from the moment it is decided until it is gone.
 */
export class PlacesTaken {
  readonly #byUID = new Map<string, Place>();
  /** By pool, then by class; never 0. */
  readonly #counts = new Map<string, Map<string, number>>();

  /** Machines of the class in the pool. */
  in(pool: string, machineClass: string): number {
    return this.#counts.get(pool)?.get(machineClass) ?? 0;
  }

  /** It was decided that the Machine goes to this pool; `seen` or `free` tells what became of it. */
  take({ metadata, spec }: IronCoreMachine, pool: string): void {
    this.#set(metadata.uid, { pool, machineClass: spec.machineClassRef.name });
  }

  /** A Machine as it is stored. One without a pool keeps the place that it was given: it may be older than that decision. */
  seen(machine: IronCoreMachine): void {
    const { machinePoolRef } = machine.spec;
    if (machinePoolRef !== undefined) this.take(machine, machinePoolRef.name);
  }

  /** The Machine is gone, or the decision could not be written. */
  free(uid: string): void {
    this.#set(uid, undefined);
  }

  #set(uid: string, place: Place | undefined): void {
    this.#add(this.#byUID.get(uid), -1);
    this.#add(place, 1);
    if (place === undefined) this.#byUID.delete(uid);
    else this.#byUID.set(uid, place);
  }

  #add(place: Place | undefined, change: 1 | -1): void {
    if (place === undefined) return;
    const counts = this.#counts.get(place.pool) ?? new Map<string, number>();
    const count = (counts.get(place.machineClass) ?? 0) + change;
    if (count === 0) counts.delete(place.machineClass);
    else counts.set(place.machineClass, count);
    if (counts.size === 0) this.#counts.delete(place.pool);
    else this.#counts.set(place.pool, counts);
  }
}
