import type { Event } from './gen/ironcore/event/v1alpha1/event.ts';
import type {
  Machine,
  MachineSpec,
  MachineStatus,
  NetworkInterface,
  Power,
  Volume,
} from './gen/ironcore/machine/v1alpha1/machine.ts';
import type { ObjectMetadata } from './gen/ironcore/meta/v1alpha1/meta.ts';

/** A machine that exists at a runtime: all three parts are there, and it has an id. */
export interface RuntimeMachine extends Machine {
  readonly metadata: ObjectMetadata;
  readonly spec: MachineSpec;
  readonly status: MachineStatus;
}

export interface DesiredRuntimeMachine {
  readonly metadata: Pick<ObjectMetadata, 'labels' | 'annotations'>;
  readonly spec: MachineSpec;
}

/** What is changed of a machine that exists. */
export type RuntimeChange =
  | { readonly kind: 'detachNetworkInterface' | 'detachVolume'; readonly name: string }
  | { readonly kind: 'updateVolume' | 'attachVolume'; readonly volume: Volume }
  | { readonly kind: 'attachNetworkInterface'; readonly networkInterface: NetworkInterface }
  | { readonly kind: 'power'; readonly power: Power }
  /** Replaces all annotations. */
  | { readonly kind: 'annotate'; readonly annotations: Readonly<Record<string, string>> };

/** Which machines: by id, by labels that they all have, or both. */
export interface RuntimeFilter {
  readonly id?: string;
  readonly labels?: Readonly<Record<string, string>>;
}

/** How many machines of a class there is room for at a runtime. */
export interface RuntimeClass {
  readonly name: string;
  /** Quantities by resource, such as cpu. */
  readonly resources: Readonly<Record<string, bigint>>;
  /** In all: those that are there count. */
  readonly quantity: number;
}

export interface RuntimeVersion {
  /** The scheme of `status.machineID`. */
  readonly name: string;
  readonly version: string;
  /** Another number after each loss of the connection: with the same one the same process has answered all the time. */
  readonly connection: number;
}

export interface RuntimeCall {
  readonly signal: AbortSignal;
  /** Longest to wait for the answer. The runtime is told, and gives up then. */
  readonly timeoutMs: number;
}

/** Machines at a runtime of IronCore, as they are asked for over IRI. Every method throws RuntimeError. */
export interface IronCoreRuntime {
  version(call: RuntimeCall): Promise<RuntimeVersion>;
  classes(call: RuntimeCall): Promise<readonly RuntimeClass[]>;
  /** Only machines that the filter is about, whatever the runtime answers. An id that it does not know gives none. */
  machines(filter: RuntimeFilter, call: RuntimeCall): Promise<readonly RuntimeMachine[]>;
  /** What happened to machines since then, or a little earlier. */
  events(sinceMs: number, call: RuntimeCall): Promise<readonly Event[]>;
  /** Is not idempotent: a machine is looked for by its labels before another one is asked for. Resolves with its id. */
  createMachine(machine: DesiredRuntimeMachine, call: RuntimeCall): Promise<string>;
  /** Resolves before the machine is gone; NotFound when it is. */
  deleteMachine(id: string, call: RuntimeCall): Promise<void>;
  /** Replaces all annotations. */
  updateMachineAnnotations(id: string, annotations: Readonly<Record<string, string>>, call: RuntimeCall): Promise<void>;
  updateMachinePower(id: string, power: Power, call: RuntimeCall): Promise<void>;
  attachVolume(id: string, volume: Volume, call: RuntimeCall): Promise<void>;
  updateVolume(id: string, volume: Volume, call: RuntimeCall): Promise<void>;
  detachVolume(id: string, name: string, call: RuntimeCall): Promise<void>;
  attachNetworkInterface(id: string, nic: NetworkInterface, call: RuntimeCall): Promise<void>;
  detachNetworkInterface(id: string, name: string, call: RuntimeCall): Promise<void>;
  close(): void;
}
