import type { MachineClass } from '../../apis/machine/v1alpha1/machine-class.ts';
import type {
  Capabilities,
  DriverCall,
  ListedMachine,
  MachineOrStub,
  MachineRequest,
  VirtualMachine,
} from '../driver.ts';
import { fromDuration, toDuration } from './failure.ts';
import type * as wire from './gen/machine/driver/v1/driver.ts';

/** The version of the contract that both sides speak. */
export const CONTRACT_VERSION = 'v1';

/** What a call without a timeout gets. */
const DEFAULT_TIMEOUT_MS = 600_000;

const OPTIONAL_METHODS = ['InitializeMachine', 'ListMachines', 'GetVolumeIDs'] as const;
type OptionalMethod = (typeof OPTIONAL_METHODS)[number];

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const toJson = (value: unknown): Uint8Array => encoder.encode(JSON.stringify(value));
const fromJson = (bytes: Uint8Array): unknown => (bytes.length === 0 ? undefined : JSON.parse(decoder.decode(bytes)));

export function toCall(call: DriverCall): wire.Call {
  return { cluster: call.cluster, fencingToken: call.fencingToken, timeout: toDuration(call.timeoutMs) };
}

/** The reverse of toCall; `signal` is the server's own. */
export function fromCall(call: wire.Call | undefined, signal: AbortSignal): DriverCall {
  return {
    signal,
    timeoutMs: fromDuration(call?.timeout) ?? DEFAULT_TIMEOUT_MS,
    fencingToken: call?.fencingToken ?? 0n,
    cluster: call?.cluster ?? '',
  };
}

/** The members that create, initialize, status and delete requests have in common. */
export function toMachineRequest(request: MachineRequest, call: DriverCall): wire.GetMachineStatusRequest {
  return { call: toCall(call), machine: toMachine(request.machine), ...toClassRequest(request) };
}

/** The members that all requests about a class have in common. */
export function toClassRequest(request: Omit<MachineRequest, 'machine'>): {
  machineClass: wire.MachineClass;
  secretData: Record<string, Uint8Array>;
} {
  return { machineClass: toMachineClass(request.machineClass), secretData: { ...request.secretData } };
}

/** The reverse of toMachineRequest. Throws when an object is missing or is no JSON. */
export function fromMachineRequest(request: wire.GetMachineStatusRequest): MachineRequest {
  if (request.machine === undefined) throw new Error('the request has no machine');
  return { machine: fromMachine(request.machine), ...fromClassRequest(request) };
}

/** The reverse of toClassRequest. Throws when the class is missing or is no JSON. */
export function fromClassRequest(request: {
  machineClass: wire.MachineClass | undefined;
  secretData: Record<string, Uint8Array>;
}): Omit<MachineRequest, 'machine'> {
  if (request.machineClass === undefined) throw new Error('the request has no machine class');
  return { machineClass: fromMachineClass(request.machineClass), secretData: request.secretData };
}

function toMachine(machine: MachineOrStub): wire.Machine {
  const { name, namespace = '', uid = '' } = machine.metadata;
  return { namespace, name, uid, providerId: machine.spec.providerID ?? '', json: toJson(machine) };
}

function fromMachine(machine: wire.Machine): MachineOrStub {
  const whole = fromJson(machine.json);
  // A caller may send typed fields alone; `json` is the whole object as the API server served it.
  if (whole !== undefined) return whole as MachineOrStub;
  const { namespace, name, uid, providerId } = machine;
  return {
    metadata: { namespace, name, ...(uid === '' ? {} : { uid }) },
    spec: providerId === '' ? {} : { providerID: providerId },
  };
}

function toMachineClass(machineClass: MachineClass): wire.MachineClass {
  const { metadata, provider = '', providerSpec } = machineClass;
  return {
    namespace: metadata.namespace ?? '',
    name: metadata.name,
    provider,
    providerSpec: toJson(providerSpec ?? null),
    json: toJson(machineClass),
  };
}

function fromMachineClass(machineClass: wire.MachineClass): MachineClass {
  const whole = fromJson(machineClass.json);
  if (whole !== undefined) return whole as MachineClass; // as the API server served it
  const { namespace, name, provider } = machineClass;
  return {
    metadata: { namespace, name, uid: '', resourceVersion: '', creationTimestamp: '' },
    provider,
    providerSpec: fromJson(machineClass.providerSpec),
  };
}

/** What a driver answers, which may be without what its types ask for, or have null for it, as its provider has answered it. */
type Answered<T> = { readonly [K in keyof T]?: T[K] | null | undefined };

export function toVirtualMachine(vm: Answered<VirtualMachine>): wire.VirtualMachine {
  const capacity = Object.entries(vm.capacity ?? {}).filter(([, quantity]) => textOf(quantity) !== '');
  return {
    providerId: textOf(vm.providerID),
    nodeName: textOf(vm.nodeName),
    addresses: (vm.addresses ?? []).map(({ type, address }) => ({ type: textOf(type), address: textOf(address) })),
    capacity: Object.fromEntries(capacity),
  };
}

/** What is left out is no text on the wire, and neither is null: not the words. */
export function textOf(text: string | null | undefined): string {
  return text ?? '';
}

export function fromVirtualMachine(vm: wire.VirtualMachine): VirtualMachine {
  const { providerId: providerID, nodeName, addresses, capacity } = vm;
  return { providerID, nodeName, addresses, ...(Object.keys(capacity).length === 0 ? {} : { capacity }) };
}

export function toListedMachine(vm: Answered<ListedMachine>): wire.ListedMachine {
  return {
    providerId: textOf(vm.providerID),
    machineName: textOf(vm.machineName),
    machineUid: textOf(vm.machineUID),
    machineNamespace: textOf(vm.machineNamespace),
    state: textOf(vm.state),
    deletion: textOf(vm.deletion),
  };
}

export function fromListedMachine(vm: wire.ListedMachine): ListedMachine {
  return {
    providerID: vm.providerId,
    machineName: vm.machineName,
    machineUID: vm.machineUid === '' ? undefined : vm.machineUid,
    ...(vm.machineNamespace === '' ? {} : { machineNamespace: vm.machineNamespace }),
    ...(vm.state === '' ? {} : { state: vm.state }),
    ...(vm.deletion === '' ? {} : { deletion: vm.deletion }),
  };
}

export function toCapabilities(capabilities: Answered<Capabilities>): wire.GetCapabilitiesResponse {
  const { contractVersion, name, idempotentCreate, listScope, methods } = capabilities;
  return {
    failure: undefined,
    contractVersion: textOf(contractVersion),
    name: textOf(name),
    idempotentCreate: idempotentCreate ?? false,
    listScope: listScope === 'cluster' ? 2 : 1, // LIST_SCOPE_CLUSTER, LIST_SCOPE_CLASS
    optionalMethods: [...(methods ?? [])],
  };
}

/** The reverse of toCapabilities; unknown optional methods are ignored. */
export function fromCapabilities(response: wire.GetCapabilitiesResponse): Capabilities {
  return {
    contractVersion: response.contractVersion,
    name: response.name,
    idempotentCreate: response.idempotentCreate,
    listScope: response.listScope === 2 ? 'cluster' : 'class',
    methods: new Set(response.optionalMethods.filter(isKnown)),
  };
}

function isKnown(method: string): method is OptionalMethod {
  return OPTIONAL_METHODS.some((known) => known === method);
}

/** A PersistentVolume's spec on the wire. */
export const toVolumeSpec = toJson;

export const fromVolumeSpec = fromJson;
