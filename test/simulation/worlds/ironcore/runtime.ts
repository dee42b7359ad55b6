import { MachineState, Power } from '../../../../pkg/worlds/ironcore/runtime/gen/ironcore/machine/v1alpha1/machine.ts';
import type { RuntimeFilter, RuntimeMachine } from '../../../../pkg/worlds/ironcore/runtime/runtime.ts';
import { MachineStore } from '../../../../packages/providers/iri/store.ts';
import { type Random, uuidOf } from '../../../../pkg/base/random/random.ts';
import type { MachinesWorld } from '../../world/machines-world.ts';

/** How long it takes at most until a machine runs, what was attached is so, or what was deleted is gone. */
const BOOT_MS = 60_000;
const ATTACH_MS = 8_000;
const DELETE_MS = 40_000;
/** So long it takes at least. */
const LEAST_MS = 300;
/** How often guests of a runtime do not let go at once of what is detached, and how long they keep it at most. */
const LATE_RATE = 0.5;
const DETACH_MS = 60_000;
const HABITS = {
  stateAtFirst: MachineState.MACHINE_PENDING,
  attachesAtOnce: false,
  deletesAtOnce: false,
  observesAtOnce: false,
} as const;

export type Attached = Pick<RuntimeMachine['spec'], 'volumes' | 'networkInterfaces'>;

/** What a change at a runtime is, for those who judge it. */
export interface RuntimeAct {
  readonly method: string;
  readonly runtime: Runtime;
  /** UID of the Machine that it is about. */
  readonly uid: string;
  readonly id: string;
  /** Identity of the process that has asked for it. */
  readonly by: string;
  /** Name of a volume or a network interface, or power. */
  readonly what: string;
}

/** The runtime of a pool: machines that live on whoever looks after them. It keeps its contract, unless the seed has other things in store. */
export class Runtime {
  readonly name: string;
  readonly pool: string;
  readonly store: MachineStore;
  /** Whether nobody can reach it. */
  isDown = false;
  /** Called once, right before a process asks it for a change. */
  beforeChange: (() => void) | undefined;
  /** Ids of machines that it does not show: its state is away. */
  hidden: ReadonlySet<string> = new Set();
  /** By the id of a machine. */
  readonly #leaving = new Map<string, readonly Attached[]>();
  readonly #world: MachinesWorld;
  readonly #random: Random;
  readonly #listeners = new Set<() => void>();

  constructor(world: MachinesWorld, pool: string, random: Random, habits: Random) {
    this.#world = world;
    this.#random = random;
    this.name = 'sim';
    this.pool = pool;
    this.store = new MachineStore({
      newID: () => uuidOf(random),
      habits: { ...HABITS, detachesAtOnce: habits() >= LATE_RATE },
    });
  }

  /** What it shows. */
  shown({ id, labels }: RuntimeFilter): readonly RuntimeMachine[] {
    const all = this.store.list({ ...(id !== undefined && { id }), labelSelector: { ...labels } });
    return all.filter(({ metadata }) => !this.hidden.has(metadata.id)).map((machine) => structuredClone(machine));
  }

  /** The machine of that id, if it is shown. Throws as runtimes do. */
  get(id: string): RuntimeMachine {
    return this.store.get(this.hidden.has(id) ? '' : id);
  }

  /** Calls `run` each time its process is started again, with which all connections end; the returned function removes it. */
  onRestart(run: () => void): () => void {
    this.#listeners.add(run);
    return () => void this.#listeners.delete(run);
  }

  /** Its process is started again. */
  restart(): void {
    this.#world.trace.add(`the runtime of ${this.pool} is started again`);
    for (const tell of this.#listeners) tell();
  }

  /** What was begun with a machine ends after a while, whatever it was. */
  settleLater(machine: RuntimeMachine, what: 'boot' | 'attach' | 'detach' | 'delete'): void {
    const detachMs = this.store.habits.detachesAtOnce ? ATTACH_MS : DETACH_MS;
    const mostMs = { boot: BOOT_MS, attach: ATTACH_MS, detach: detachMs, delete: DELETE_MS }[what];
    this.#world.time.schedule(LEAST_MS + this.#random() * mostMs, () => {
      if (!this.store.all().includes(machine)) return;
      const { metadata, spec, status } = machine;
      const isGoing = metadata.deletedAt !== 0n;
      if (isGoing && what !== 'delete') return;
      if (what === 'attach' && this.#leaving.has(metadata.id)) return this.settleLater(machine, 'detach');
      this.#leaving.delete(metadata.id);
      if (what === 'boot' && status.state === MachineState.MACHINE_PENDING)
        status.state = spec.power === Power.POWER_OFF ? MachineState.MACHINE_STOPPED : MachineState.MACHINE_RUNNING;
      this.store.settle([machine]);
      if (isGoing) this.#world.trace.add(`machine ${metadata.id} is gone`);
    });
  }

  /** A guest is asked to let go of something: it has it until its machine is settled. */
  detach(id: string, kind: keyof Attached, name: string): void {
    const { store } = this;
    const { volumes, networkInterfaces } = store.get(id).spec;
    const left = {
      volumes: [],
      networkInterfaces: [],
      [kind]: { volumes, networkInterfaces }[kind].filter((one) => one.name === name),
    };
    if (kind === 'volumes') store.detachVolume(id, name);
    else store.detachNetworkInterface(id, name);
    if (!store.habits.detachesAtOnce) this.#leaving.set(id, [...this.leavingOf(id), left]);
  }

  /** What the guest of a machine still has of what was detached. */
  leavingOf(id: string): readonly Attached[] {
    return this.#leaving.get(id) ?? [];
  }

  /** A machine is gone from one moment to the next. */
  lose(id: string): void {
    this.#world.trace.add(`machine ${id} at ${this.pool} is lost`);
    this.store.forget(id);
  }
}
