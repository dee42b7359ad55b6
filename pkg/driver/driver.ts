import type { Machine, NodeAddress } from '../apis/machine/v1alpha1/machine.ts';
import type { MachineClass } from '../apis/machine/v1alpha1/machine-class.ts';

/** What a driver can do; asked first on each connection. */
export interface Capabilities {
  /** Version of the contract that the driver speaks; `v1`. */
  readonly contractVersion: string;
  readonly name: string;
  /** Whether CreateMachine may be repeated for the same name and UID without making a second VM. */
  readonly idempotentCreate: boolean;
  /** Whether ListMachines returns the VMs of the class asked for, or of the whole cluster. */
  readonly listScope: 'class' | 'cluster';
  /** Optional methods that the driver implements. */
  readonly methods: ReadonlySet<'InitializeMachine' | 'ListMachines' | 'GetVolumeIDs'>;
}

/** The machine a call is about: the whole object, or a stub for a VM without one (`name`, `namespace`, `providerID`). */
export type MachineOrStub =
  | Machine
  | { metadata: { name: string; namespace: string; uid?: string }; spec: { providerID?: string } };

export interface MachineRequest {
  readonly machine: MachineOrStub;
  readonly machineClass: MachineClass;
  /** Merged Secret data, decoded; for create and initialize with the placeholders in `userData` replaced. Never logged. */
  readonly secretData: Readonly<Record<string, Uint8Array>>;
}

export interface VirtualMachine {
  readonly providerID: string;
  readonly nodeName: string;
  readonly addresses: readonly NodeAddress[];
  /** Resources that the provider has given it, as quantities, by the names of a Node's capacity; for display only. */
  readonly capacity?: Readonly<Record<string, string>> | undefined;
}

export interface CreatedMachine extends VirtualMachine {
  readonly lastKnownState: string | undefined;
}

export interface ListedMachine {
  readonly providerID: string;
  /** Name of the Machine it belongs to, from the VM's name or tags. */
  readonly machineName: string;
  /** UID of the Machine, when the VM carries one. */
  readonly machineUID: string | undefined;
  /** Namespace of the Machine, when the VM carries one: what is of another namespace is none of our business. */
  readonly machineNamespace?: string | undefined;
  /** In the provider's own words; for display only. */
  readonly state?: string | undefined;
  /**
   * That somebody other than the manager has asked the provider to delete it, in the provider's words, and that it is kept all the same
   * until DeleteMachine is called; for display only.
   */
  readonly deletion?: string | undefined;
}

export interface DriverCall {
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  /** `leaseTransitions` under which a mutation is made; a driver refuses an older one than it has seen. */
  readonly fencingToken: bigint;
  /** Identity of the control cluster, so that two clusters in one account do not see each other's VMs. */
  readonly cluster: string;
}

/**
 * The provider's half: six calls, all idempotent by Machine name and UID. Every method throws DriverError; only NotFound
 * means that a VM is gone.
 */
export interface Driver {
  capabilities(signal: AbortSignal): Promise<Capabilities>;
  createMachine(request: MachineRequest, call: DriverCall): Promise<CreatedMachine>;
  initializeMachine(request: MachineRequest, call: DriverCall): Promise<VirtualMachine>;
  getMachineStatus(request: MachineRequest, call: DriverCall): Promise<VirtualMachine>;
  /** Resolves with the driver's scratch state when the VM and all that belongs to it is gone. */
  deleteMachine(request: MachineRequest, call: DriverCall): Promise<{ lastKnownState: string | undefined }>;
  listMachines(request: Omit<MachineRequest, 'machine'>, call: DriverCall): Promise<readonly ListedMachine[]>;
  /** Volume ids of PersistentVolume specs, in the same order; an unknown one is left out. */
  getVolumeIDs(pvSpecs: readonly unknown[], call: DriverCall): Promise<readonly string[]>;
  close(): Promise<void>;
}
