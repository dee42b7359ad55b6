import type { Random } from '../../../pkg/base/random/random.ts';
import type { FaultKind } from '../world/faults.ts';
import type { MachinesWorld, MachinesWorldOptions } from '../world/machines-world.ts';
import type { Population } from '../world/population.ts';

/** A kind of world: who lives in it. All else is shared: servers, cloud, time, network, faults. */
export interface WorldKind {
  /** What its users do, by name. */
  readonly acts: readonly string[];
  /** What they always do, where they do something. */
  readonly usual: readonly string[];
  /** What they do as well in half of its worlds. */
  readonly others?: readonly string[];
  /** Kinds of faults that it does not have. */
  readonly without: readonly FaultKind[];
  /** Whether its provider says nothing that is not true; as the seed has it, unless it is given. */
  readonly isHonest?: boolean;
  /** Whether it has places of their own, of which one alone may have trouble. */
  readonly parts?: boolean;
  /** What is different in it from what the seed has in store for a pool of machines. */
  readonly adapt: (options: MachinesWorldOptions, random: Random) => MachinesWorldOptions;
  readonly populate: (world: MachinesWorld, seed: number) => Population | Promise<Population>;
}
