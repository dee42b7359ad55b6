import { randomUUID } from 'node:crypto';

import { ServerError, Status } from 'nice-grpc';

import {
  MachineState,
  NetworkInterfaceState,
  Power,
  VolumeState,
  type Machine,
  type MachineFilter,
  type NetworkInterface,
  type Volume,
} from '../../../pkg/worlds/ironcore/runtime/gen/ironcore/machine/v1alpha1/machine.ts';
import type { RuntimeMachine } from '../../../pkg/worlds/ironcore/runtime/runtime.ts';

export interface Habits {
  stateAtFirst: MachineState;
  /** Whether what is attached is so at once, or only when `settle` is called. */
  attachesAtOnce: boolean;
  /** Whether what is detached is gone from the status at once, or only when `settle` is called: a guest does not let go of it. */
  detachesAtOnce: boolean;
  /** Whether a deleted machine is gone at once, or only when `settle` is called. */
  deletesAtOnce: boolean;
  /** Whether the status is always about the present spec, or only when `settle` is called. */
  observesAtOnce: boolean;
}

const HABITS: Habits = {
  stateAtFirst: MachineState.MACHINE_RUNNING,
  attachesAtOnce: true,
  detachesAtOnce: true,
  deletesAtOnce: true,
  observesAtOnce: true,
};

/** The machines of a runtime, and what it has room for. Refuses as runtimes do; everything else is up to whoever holds it. */
export class MachineStore {
  readonly habits: Habits;
  /** Room for machines by class. */
  readonly quantities = new Map<string, bigint>();
  /** Machines that there ever were. */
  made = 0;
  readonly #machines = new Map<string, RuntimeMachine>();
  /** Of the machine that is made next, in nanoseconds: in 2026, and each is younger than the one before. */
  #createdAt = 1_767_225_600_000_000_000n;
  readonly #newID: () => string;

  constructor({
    newID = randomUUID,
    habits = {},
  }: { readonly newID?: () => string; readonly habits?: Partial<Habits> } = {}) {
    this.#newID = newID;
    this.habits = { ...HABITS, ...habits };
  }

  all(): RuntimeMachine[] {
    return [...this.#machines.values()];
  }

  list({ id = '', labelSelector = {} }: Partial<MachineFilter> = {}): RuntimeMachine[] {
    return this.all().filter(
      ({ metadata }) =>
        (id === '' || metadata.id === id) &&
        Object.entries(labelSelector).every(([key, value]) => metadata.labels[key] === value),
    );
  }

  /** The one machine whose label `machine-name` is this. */
  named(name: string): RuntimeMachine {
    const found = this.list({ labelSelector: { 'machinepoollet.ironcore.dev/machine-name': name } });
    const [machine] = found;
    if (machine === undefined || found.length > 1) throw new Error(`there are ${found.length} machines named ${name}`);
    return machine;
  }

  get(id: string): RuntimeMachine {
    const machine = this.#machines.get(id);
    if (machine === undefined) throw new ServerError(Status.NOT_FOUND, `machine ${id} not found`);
    return machine;
  }

  create(asked: Machine): RuntimeMachine {
    const { metadata, spec } = asked;
    if (metadata === undefined || spec === undefined) refuse('a machine needs metadata and a spec');
    if (metadata.id !== '') refuse(`the id ${metadata.id} is not the client's to choose`);
    const quantity = this.quantities.get(spec.class);
    if (quantity === undefined) refuse(`no machine class ${JSON.stringify(spec.class)}`);
    const used = this.all().filter((one) => one.spec.class === spec.class).length;
    if (BigInt(used) >= quantity) {
      throw new ServerError(Status.RESOURCE_EXHAUSTED, `no room for another ${spec.class}: ${quantity} in all`);
    }
    const names = spec.volumes.map(({ name }) => name);
    if (new Set(names).size < names.length) refuse('two volumes have one name');
    for (const volume of spec.volumes) checkVolume(volume, []);
    const devices = spec.volumes.map(({ device }) => device);
    if (new Set(devices).size < devices.length) refuse('two volumes have one device');
    return this.#add({ ...asked, metadata, spec });
  }

  delete(id: string): void {
    const machine = this.get(id);
    if (this.habits.deletesAtOnce) return void this.#machines.delete(id);
    machine.metadata.deletedAt ||= this.#createdAt;
    machine.status.state = MachineState.MACHINE_TERMINATING;
  }

  annotate(id: string, annotations: Record<string, string>): void {
    this.get(id).metadata.annotations = annotations;
  }

  setPower(id: string, power: Power): void {
    const machine = this.get(id);
    machine.spec.power = power;
    machine.status.state = power === Power.POWER_OFF ? MachineState.MACHINE_STOPPED : MachineState.MACHINE_RUNNING;
    this.#changed(machine);
  }

  attachVolume(id: string, volume: Volume | undefined): void {
    const machine = this.get(id);
    if (volume === undefined) refuse('there is no volume');
    if (machine.spec.volumes.some(({ name }) => name === volume.name)) {
      throw new ServerError(Status.ALREADY_EXISTS, `machine ${id} has a volume ${volume.name}`);
    }
    checkVolume(volume, machine.spec.volumes);
    machine.spec.volumes.push(volume);
    this.#changed(machine);
  }

  updateVolume(id: string, volume: Volume | undefined): void {
    const machine = this.get(id);
    const at = machine.spec.volumes.findIndex(({ name }) => name === volume?.name);
    if (volume === undefined || at === -1) {
      throw new ServerError(Status.NOT_FOUND, `machine ${id} has no volume ${volume?.name}`);
    }
    machine.spec.volumes[at] = volume;
    this.#changed(machine);
  }

  detachVolume(id: string, name: string): void {
    const machine = this.get(id);
    if (!machine.spec.volumes.some((one) => one.name === name)) {
      throw new ServerError(Status.NOT_FOUND, `machine ${id} has no volume ${name}`);
    }
    machine.spec.volumes = machine.spec.volumes.filter((one) => one.name !== name);
    this.#changed(machine);
  }

  attachNetworkInterface(id: string, nic: NetworkInterface | undefined): void {
    const machine = this.get(id);
    if (nic === undefined) refuse('there is no network interface');
    if (machine.spec.networkInterfaces.some(({ name }) => name === nic.name)) {
      throw new ServerError(Status.ALREADY_EXISTS, `machine ${id} has a network interface ${nic.name}`);
    }
    machine.spec.networkInterfaces.push(nic);
    this.#changed(machine);
  }

  detachNetworkInterface(id: string, name: string): void {
    const machine = this.get(id);
    if (!machine.spec.networkInterfaces.some((one) => one.name === name)) {
      throw new ServerError(Status.NOT_FOUND, `machine ${id} has no network interface ${name}`);
    }
    machine.spec.networkInterfaces = machine.spec.networkInterfaces.filter((one) => one.name !== name);
    this.#changed(machine);
  }

  /** All that was begun with these machines ends: what is deleted is gone, what is attached is so, and statuses are about the present specs. */
  settle(machines: readonly RuntimeMachine[] = this.all()): void {
    for (const machine of machines) {
      if (machine.metadata.deletedAt !== 0n) this.#machines.delete(machine.metadata.id);
      this.#attach(machine);
      machine.status.observedGeneration = machine.metadata.generation;
    }
  }

  /** The runtime's own doing: the state of a machine changes. A number that IRI does not have is a state, too. */
  setState(id: string, state: number): void {
    this.get(id).status.state = state as MachineState; // As a newer runtime might.
  }

  /** The runtime loses a machine without a word. */
  forget(id: string): void {
    this.#machines.delete(id);
  }

  /** The runtime has the state of another time: these machines, and no others. */
  setBack(machines: readonly RuntimeMachine[]): void {
    this.#machines.clear();
    for (const machine of machines) this.#machines.set(machine.metadata.id, structuredClone(machine));
  }

  /** The runtime has a machine twice: the copy is younger. Returns its id. */
  duplicate(id: string): string {
    return this.#add(structuredClone(this.get(id))).metadata.id;
  }

  #add(asked: Machine & Pick<RuntimeMachine, 'metadata' | 'spec'>): RuntimeMachine {
    this.#createdAt += 1_000_000n;
    this.made += 1;
    const id = this.#newID();
    const metadata = { ...asked.metadata, id, generation: 1n, createdAt: this.#createdAt, deletedAt: 0n };
    const nothing = { observedGeneration: 0n, imageRef: '', volumes: [], networkInterfaces: [], machineConditions: [] };
    const machine = { metadata, spec: asked.spec, status: { ...nothing, state: this.habits.stateAtFirst } };
    this.#machines.set(id, machine);
    this.#changed(machine, 0n);
    return machine;
  }

  #changed(machine: RuntimeMachine, by = 1n): void {
    machine.metadata.generation += by;
    if (this.habits.observesAtOnce) machine.status.observedGeneration = machine.metadata.generation;
    if (this.habits.attachesAtOnce) return this.#attach(machine);
    this.#attach(machine, 0);
  }

  /** Statuses of what is in the spec, and of what is still to be detached: those that are there stay, the others get this state. */
  #attach({ spec, status, metadata }: RuntimeMachine, state?: 0): void {
    const handle = (name: string): string => `${metadata.id}/${name}`;
    const { volumes, networkInterfaces } = status;
    const isLate = state === 0 && !this.habits.detachesAtOnce;
    const leaving = <T extends { readonly name: string }>(
      before: readonly T[],
      has: readonly { name: string }[],
    ): T[] => (isLate ? before.filter(({ name }) => !has.some((one) => one.name === name)) : []);
    const ofVolumes = spec.volumes.map(({ name }) => {
      const before = volumes.find((one) => one.name === name);
      return before !== undefined && state === 0
        ? before
        : { name, handle: handle(name), state: state ?? VolumeState.VOLUME_ATTACHED };
    });
    status.volumes = [...ofVolumes, ...leaving(volumes, spec.volumes)];
    const ofNICs = spec.networkInterfaces.map(({ name }) => {
      const before = networkInterfaces.find((one) => one.name === name);
      return before !== undefined && state === 0
        ? before
        : { name, handle: handle(name), state: state ?? NetworkInterfaceState.NETWORK_INTERFACE_ATTACHED };
    });
    status.networkInterfaces = [...ofNICs, ...leaving(networkInterfaces, spec.networkInterfaces)];
  }
}

function checkVolume({ name, device, localDisk, connection }: Volume, others: readonly Volume[]): void {
  if (name === '' || device === '') refuse('a volume needs a name and a device');
  // Of two a machinebroker takes the disk and drops the other; libvirt-provider refuses both, and none.
  if ((localDisk === undefined) === (connection === undefined)) refuse(`volume ${name}: one source is needed`);
  // What some runtimes make of it.
  if (localDisk !== undefined && localDisk.image === undefined) {
    throw new ServerError(Status.INTERNAL, 'runtime error: invalid memory address or nil pointer dereference');
  }
  if (others.some((one) => one.device === device)) refuse(`device ${device} is in use`);
}

function refuse(why: string): never {
  throw new ServerError(Status.INVALID_ARGUMENT, why);
}
