import {
  type IronCoreMachine,
  networkInterfaceNameOf,
  type VolumeEntry,
  volumeNameOf,
} from '../../../../pkg/worlds/ironcore/api/machine.ts';
import { capacityKey, type IronCoreMachinePool } from '../../../../pkg/worlds/ironcore/api/machine-pool.ts';
import { resourceClaimantOf, type Used } from '../../../../pkg/worlds/ironcore/controllers/machine/claiming.ts';
import { runtimeIDOf } from '../../../../pkg/worlds/ironcore/controllers/machine/runtime-id.ts';
import { Power } from '../../../../pkg/worlds/ironcore/runtime/gen/ironcore/machine/v1alpha1/machine.ts';
import type { RuntimeMachine } from '../../../../pkg/worlds/ironcore/runtime/runtime.ts';
import type { MachinesWorld } from '../../world/machines-world.ts';
import { objectsOf } from './kinds.ts';
import { CLASSES } from './objects.ts';
import type { Runtimes } from './runtimes.ts';

/** Compares Machines and pools with what there is at the runtimes. */
export class Truths {
  readonly #world: MachinesWorld;
  readonly #runtimes: Runtimes;

  constructor(world: MachinesWorld, runtimes: Runtimes) {
    this.#world = world;
    this.#runtimes = runtimes;
  }

  /** What Machines may use. */
  get used(): readonly Used[] {
    return [...objectsOf(this.#world, 'volumes'), ...objectsOf(this.#world, 'networkinterfaces')];
  }

  /** What a Machine is not yet that it should be, whatever its status says. */
  wants(of: IronCoreMachine): readonly string[] {
    const { metadata, spec, status } = of;
    const [machine, ...others] = this.#runtimes.machinesOf(metadata.uid);
    if (metadata.deletionTimestamp !== undefined) return ['its end'];
    if (machine === undefined) return ['a machine'];
    const names = (entries: readonly { readonly name: string }[] = []): string =>
      entries
        .map(({ name }) => name)
        .toSorted()
        .join(' ');
    const wanted = spec.power === 'Off' ? Power.POWER_OFF : Power.POWER_ON;
    const ready = status?.conditions?.find(({ type }) => type === 'Ready')?.status;
    return [
      ...(others.length > 0 ? ['one machine'] : []),
      ...(runtimeIDOf(of) === machine.metadata.id ? [] : ['to know its machine']),
      ...(machine.spec.power === wanted ? [] : ['another power']),
      ...(names(machine.spec.volumes) === names(spec.volumes) ? [] : ['other volumes']),
      ...(spec.volumes ?? []).flatMap((entry) =>
        this.#hasOther(of, entry, machine) ? [`the disk of ${entry.name}`] : [],
      ),
      ...(names(machine.spec.networkInterfaces) === names(spec.networkInterfaces) ? [] : ['other network interfaces']),
      ...(ready === (spec.power === 'Off' ? 'False' : 'True') ? [] : ['to be ready, or not']),
    ];
  }

  /** What it says at rest that is not so. */
  untruthsOf(machine: IronCoreMachine): readonly string[] {
    const { metadata, spec, status } = machine;
    const what = `Machine ${metadata.name}`;
    const [at] = this.#runtimes.machinesOf(metadata.uid);
    const isOff = spec.power === 'Off';
    const sizes = (spec.volumes ?? []).flatMap((entry) => this.#wrongSize(machine, entry, at));
    const attached = [...(status?.volumes ?? []), ...(status?.networkInterfaces ?? [])];
    const entries = [...(spec.volumes ?? []), ...(spec.networkInterfaces ?? [])];
    const conditions = (status?.conditions ?? []).filter(({ type, status: is }) => type !== 'Ready' && is !== 'True');
    return [
      ...sizes,
      ...(status?.state === (isOff ? 'Shutdown' : 'Running') ? [] : [`${what} says that it is ${status?.state}`]),
      ...(status?.observedGeneration === metadata.generation
        ? []
        : [`${what} says that it is of generation ${status?.observedGeneration}, and is of ${metadata.generation}`]),
      ...entries.flatMap((entry) => {
        const state = attached.find(({ name }) => name === entry.name)?.state;
        return state === 'Attached' ? [] : [`${what} says that ${entry.name} is ${state}`];
      }),
      ...attached
        .filter(({ name }) => !entries.some((entry) => entry.name === name))
        .map(({ name }) => `${what} still shows ${name}`),
      ...conditions.map(({ type, reason, message }) => `${what} says ${type} ${reason}: ${message}`),
      ...this.#wrongClaims(machine),
    ];
  }

  #wrongSize(machine: IronCoreMachine, entry: VolumeEntry, at: RuntimeMachine | undefined): readonly string[] {
    const name = volumeNameOf(machine, entry);
    const volume = objectsOf(this.#world, 'volumes').find(({ metadata }) => metadata.name === name);
    if (name === undefined || volume === undefined) return [];
    const { resources } = (volume.spec ?? {}) as { readonly resources?: Readonly<Record<string, unknown>> };
    const wanted = BigInt(Number.parseInt(String(resources?.['storage']), 10)) * 1024n ** 3n;
    const has = at?.spec.volumes.find((one) => one.name === entry.name)?.connection?.effectiveStorageBytes;
    return has === wanted ? [] : [`${name} has ${has} bytes at the runtime, and is to have ${wanted}`];
  }

  /** Whether a machine has a disk that its Volume does not stand for: one that was lost, and made anew. */
  #hasOther(machine: IronCoreMachine, entry: VolumeEntry, at: RuntimeMachine): boolean {
    const name = volumeNameOf(machine, entry);
    const volume = objectsOf(this.#world, 'volumes').find(({ metadata }) => metadata.name === name);
    const has = at.spec.volumes.find((one) => one.name === entry.name)?.connection?.handle;
    const { handle } = volume?.status?.access ?? {};
    return has !== undefined && handle !== undefined && has !== handle;
  }

  #wrongClaims(machine: IronCoreMachine): readonly string[] {
    const { volumes = [], networkInterfaces = [] } = machine.spec;
    const named = new Set([
      ...volumes.map((entry) => volumeNameOf(machine, entry)),
      ...networkInterfaces.map((entry) => networkInterfaceNameOf(machine, entry)),
    ]);
    return this.used.flatMap((one) => {
      const isClaimed = resourceClaimantOf(one)?.uid === machine.metadata.uid;
      const { name } = one.metadata;
      if (isClaimed === named.has(name)) return [];
      return [`${name} is ${isClaimed ? '' : 'not '}claimed by Machine ${machine.metadata.name}`];
    });
  }

  /** The same of a pool. */
  untruthsOfPool({ metadata: { name }, status }: IronCoreMachinePool): readonly string[] {
    const runtime = this.#runtimes.all.find(({ pool }) => pool === name);
    const bad = (status?.conditions ?? []).filter(({ type, status: is }) => type !== 'Ready' && is !== 'False');
    return [
      ...CLASSES.flatMap((machineClass) => {
        const key = capacityKey(machineClass);
        const room = String(runtime?.store.quantities.get(machineClass));
        const used = objectsOf(this.#world, 'machines').filter(
          ({ spec }) => spec.machinePoolRef?.name === name && spec.machineClassRef.name === machineClass,
        ).length;
        const free = String(Math.max(0, Number(room) - used));
        const [capacity, allocatable] = [status?.capacity?.[key], status?.allocatable?.[key]];
        if (capacity === room && allocatable === free) return [];
        return [
          `${name} says that it has room for ${capacity} of ${machineClass}, ${allocatable} free, and has ${room}, ${free}`,
        ];
      }),
      ...bad.map(({ type, reason }) => `${name} says ${type} ${reason}`),
    ];
  }
}
