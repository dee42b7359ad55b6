import { MachineState } from '../../../../pkg/worlds/ironcore/runtime/gen/ironcore/machine/v1alpha1/machine.ts';
import type { RuntimeMachine } from '../../../../pkg/worlds/ironcore/runtime/runtime.ts';
import type { Random } from '../../../../pkg/base/random/random.ts';
import type { MachinesWorld } from '../../world/machines-world.ts';
import { oneOf, seededRandom } from '../../world/seeded-random.ts';
import type { Runtime } from './runtime.ts';
import type { Runtimes } from './runtimes.ts';

/** Share of what happens by itself. */
const POWER_CUTS = 0.15;
/** What was sent right before may still be carried out. */
const ON_ITS_WAY_MS = 30;

/** How long a runtime is without its state. */
function drawAbsence(random: Random): number {
  return 30_000 + random() * 600_000;
}

/** What happens at runtimes by itself. */
export class Mishaps {
  readonly #world: MachinesWorld;
  readonly #runtimes: Runtimes;
  readonly #powerCuts: Random;

  constructor(world: MachinesWorld, runtimes: Runtimes, seed: number) {
    this.#world = world;
    this.#runtimes = runtimes;
    this.#powerCuts = seededRandom(seed, 'power cuts');
  }

  /** One of them happens. */
  happen(random: Random): void {
    if (this.#powerCuts() < POWER_CUTS) return this.#cutPower(oneOf(this.#powerCuts, this.#runtimes.all));
    const runtime = oneOf(random, this.#runtimes.all);
    const mishaps = [
      () => this.#ofMachine(random, (at, { metadata }) => at.lose(metadata.id)),
      () => this.#ofMachine(random, (at, machine) => this.remove(at, machine)),
      () => this.#ofMachine(random, (_at, machine) => this.#shutDown(machine, random() * 300_000)),
      () => runtime.restart(),
      () => this.#goDown(runtime, random() * 600_000),
      () => this.#forget(runtime, drawAbsence(random)),
    ];
    oneOf(random, mishaps)();
  }

  /** The provider moves everything off a host, and has no room for a machine elsewhere; or somebody deletes one at its runtime. */
  remove(at: Runtime, machine: RuntimeMachine): void {
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

  /** At its next change, whoever asks for that dies with the runtime, which is started without its state: both were on one host. */
  #cutPower(runtime: Runtime): void {
    const random = this.#powerCuts;
    runtime.beforeChange = () => {
      this.#world.processes.death = { after: 1, countsChanges: true, how: random() < 0.5 ? 'before' : 'after' };
      this.#world.time.schedule(random() * ON_ITS_WAY_MS, () => this.#forget(runtime, drawAbsence(random)));
    };
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
