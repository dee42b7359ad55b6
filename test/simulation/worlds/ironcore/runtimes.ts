import type { IronCoreRuntime, RuntimeMachine } from '../../../../pkg/worlds/ironcore/runtime/runtime.ts';
import { UID_LABEL } from '../../../../pkg/worlds/ironcore/controllers/machine/keys.ts';
import type { MachinesWorld } from '../../world/machines-world.ts';
import type { Caller } from '../../world/processes.ts';
import { seededRandom } from '../../world/seeded-random.ts';
import { RuntimeConnection } from './connection.ts';
import { type Attached, Runtime, type RuntimeAct } from './runtime.ts';

/** The pools of the world, each with a runtime of its own. */
export const POOLS = ['pool-a', 'pool-b'] as const;

const BY_WORLD = new WeakMap<MachinesWorld, Runtimes>();

/** The runtimes of a world. */
export class Runtimes {
  readonly all: readonly Runtime[];
  readonly #world: MachinesWorld;
  readonly #seed: number;
  #connections = 0;
  #listener: (act: RuntimeAct) => void = () => undefined;

  private constructor(world: MachinesWorld, seed: number) {
    this.#world = world;
    this.#seed = seed;
    this.all = POOLS.map(
      (pool) =>
        new Runtime(world, pool, seededRandom(seed, `runtime of ${pool}`), seededRandom(seed, `habits of ${pool}`)),
    );
  }

  /** Those of that world, which are there before anything else is. */
  static of(world: MachinesWorld, seed: number): Runtimes {
    const known = BY_WORLD.get(world) ?? new Runtimes(world, seed);
    BY_WORLD.set(world, known);
    return known;
  }

  /** The way of a process to one of them. */
  connect(caller: Caller, pool: string): IronCoreRuntime {
    const runtime = this.all.find((one) => one.pool === pool);
    if (runtime === undefined) throw new Error(`no pool ${pool}`);
    this.#connections += 1;
    return new RuntimeConnection({
      world: this.#world,
      caller,
      runtime,
      random: seededRandom(this.#seed, `connection ${this.#connections}`),
      changed: (act) => this.#listener(act),
    });
  }

  /** Told of each change that a process has made. One listener only. */
  onAct(listener: (act: RuntimeAct) => void): void {
    this.#listener = listener;
  }

  /** All machines, also those that are not shown. */
  get machines(): readonly RuntimeMachine[] {
    return this.all.flatMap(({ store }) => store.all());
  }

  /** What guests still have of what was detached from a machine. */
  leavingOf(id: string): readonly Attached[] {
    return this.all.flatMap((runtime) => runtime.leavingOf(id));
  }

  /** Those of a Machine. */
  machinesOf(uid: string): readonly RuntimeMachine[] {
    return this.machines.filter(({ metadata }) => metadata.labels[UID_LABEL] === uid);
  }
}
