import { MachineState } from '../../../../pkg/worlds/ironcore/runtime/gen/ironcore/machine/v1alpha1/machine.ts';
import type { RuntimeMachine } from '../../../../pkg/worlds/ironcore/runtime/runtime.ts';
import type { Random } from '../../../../pkg/base/random/random.ts';
import type { MachinesWorld } from '../../world/machines-world.ts';
import { oneOf } from '../../world/seeded-random.ts';
import type { Runtime } from './runtime.ts';
import type { Runtimes } from './runtimes.ts';

/** What happens at runtimes by itself. */
export class Mishaps {
  readonly #world: MachinesWorld;
  readonly #runtimes: Runtimes;

  constructor(world: MachinesWorld, runtimes: Runtimes) {
    this.#world = world;
    this.#runtimes = runtimes;
  }

  /** One of them happens. */
  happen(random: Random): void {
    const runtime = oneOf(random, this.#runtimes.all);
    const mishaps = [
      () => this.#ofMachine(random, (at, { metadata }) => at.lose(metadata.id)),
      () => this.#ofMachine(random, (at, machine) => this.#evacuate(at, machine)),
      () => this.#ofMachine(random, (_at, machine) => this.#shutDown(machine, random() * 300_000)),
      () => runtime.restart(),
      () => this.#goDown(runtime, random() * 600_000),
      () => this.#forget(runtime, 30_000 + random() * 600_000),
    ];
    oneOf(random, mishaps)();
  }

  /** The provider moves everything off a host, and has no room for a machine elsewhere. */
  #evacuate(at: Runtime, machine: RuntimeMachine): void {
    if (machine.metadata.deletedAt !== 0n) return;
    this.#world.trace.add(`the provider deletes machine ${machine.metadata.id}`);
    at.store.delete(machine.metadata.id);
    at.settleLater(machine, 'delete');
  }

  #shutDown(machine: RuntimeMachine, forMs: number): void {
    const { metadata, status } = machine;
    if (metadata.deletedAt !== 0n || status.state !== MachineState.MACHINE_RUNNING) return;
    this.#world.trace.add(`the guest of machine ${metadata.id} shuts down for a while`);
    status.state = MachineState.MACHINE_TERMINATED;
    this.#world.time.schedule(forMs, () => {
      if (status.state === MachineState.MACHINE_TERMINATED) status.state = MachineState.MACHINE_RUNNING;
    });
  }

  #goDown(runtime: Runtime, forMs: number): void {
    this.#world.trace.add(`the runtime of ${runtime.pool} cannot be reached`);
    runtime.isDown = true;
    this.#world.time.schedule(forMs, () => {
      runtime.isDown = false;
    });
  }

  /** A runtime is started without its state, which comes back when it is started again. */
  #forget(runtime: Runtime, forMs: number): void {
    if (runtime.hidden.size > 0) return;
    this.#world.trace.add(`the runtime of ${runtime.pool} has lost its state`);
    runtime.hidden = new Set(runtime.store.all().map(({ metadata }) => metadata.id));
    runtime.restart();
    this.#world.time.schedule(forMs, () => this.remember(runtime));
  }

  /** It has its state again, if that was away. */
  remember(runtime: Runtime): void {
    if (runtime.hidden.size === 0) return;
    this.#world.trace.add(`the runtime of ${runtime.pool} has its state again`);
    runtime.hidden = new Set();
    runtime.restart();
  }

  #ofMachine(random: Random, act: (at: Runtime, machine: RuntimeMachine) => void): void {
    const there = this.#runtimes.all.flatMap((at) => at.store.all().map((machine) => ({ at, machine })));
    if (there.length === 0) return;
    const { at, machine } = oneOf(random, there);
    act(at, machine);
  }
}
