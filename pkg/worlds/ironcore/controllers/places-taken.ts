import type { IronCoreMachine } from '../api/machine.ts';

interface Place {
  readonly pool: string;
  readonly machineClass: string;
  /** The version of the Machine that it was decided for; undefined: the Machine itself has it. */
  readonly decidedFor: string | undefined;
}

/**
 * How many Machines of each class are in each pool: those that have it in their spec, and those for which that is being written. Each
 * counts once, from the moment it is decided until it is gone.
 */
export class PlacesTaken {
  readonly #byUID = new Map<string, Place>();
  /** By pool, then by class; never 0. */
  readonly #counts = new Map<string, Map<string, number>>();

  in(pool: string, machineClass: string): number {
    return this.#counts.get(pool)?.get(machineClass) ?? 0;
  }

  /** It was decided that the Machine goes to this pool; `seen` or `free` tells what became of it. */
  take({ metadata, spec }: IronCoreMachine, pool: string): void {
    const { uid, resourceVersion: decidedFor } = metadata;
    this.#set(uid, { pool, machineClass: spec.machineClassRef.name, decidedFor });
  }

  /**
   * The pool that was decided for this very version of the Machine: whether that was written is not known, and to write another one
   * could have it count in two. A later version that has no pool shows that it was not, and cannot be any more.
   */
  decided({ metadata }: IronCoreMachine): string | undefined {
    const place = this.#byUID.get(metadata.uid);
    return place?.decidedFor === metadata.resourceVersion ? place.pool : undefined;
  }

  /**
   * The pool that a Machine without one had before: nobody takes it off, so that the cluster was restored from a backup of before, or what is
   * shown is old. Its machine is there.
   */
  before({ metadata }: IronCoreMachine): string | undefined {
    const place = this.#byUID.get(metadata.uid);
    return place !== undefined && place.decidedFor === undefined ? place.pool : undefined;
  }

  /** A Machine as it is stored. One without a pool keeps the place that it was given: it may be older than that decision. */
  seen({ metadata, spec }: IronCoreMachine): void {
    const { machinePoolRef, machineClassRef } = spec;
    if (machinePoolRef === undefined) return;
    this.#set(metadata.uid, { pool: machinePoolRef.name, machineClass: machineClassRef.name, decidedFor: undefined });
  }

  /** The Machine is gone, or the decision could not be written. Says whether it had a place. */
  free(uid: string): boolean {
    const had = this.#byUID.has(uid);
    this.#set(uid, undefined);
    return had;
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
