import {
  networkInterfaceNameOf,
  volumeNameOf,
  type IronCoreMachine,
  type NetworkInterfaceEntry,
  type VolumeEntry,
} from '../../api/machine.ts';
import type { DownwardAPI } from '../../api/downward-api.ts';
import type { IronCoreMachineClass } from '../../api/machine-class.ts';
import type { IronCoreNetwork, IronCoreNetworkInterface } from '../../api/network-interface.ts';
import type { IronCoreVolume } from '../../api/volume.ts';
import { controllerOf, keyBeside, keyOf, type KubeObject } from '../../../../apis/meta.ts';
import { quantityAsNumber } from '../../../../apis/quantity.ts';
import type {
  NetworkInterface,
  Volume,
  VolumeConnection,
} from '../../runtime/gen/ironcore/machine/v1alpha1/machine.ts';
import type { RuntimeClass } from '../../runtime/runtime.ts';
import { giveUpHint } from '../../../../controllers/vms/orphan-release.ts';
import { runtimeClassFor } from '../runtime-class.ts';
import { addressHandle, volumeHandle, type Holder } from './kept-uses.ts';
import { NETWORK_LABELS_ATTRIBUTE, NIC_LABELS_ATTRIBUTE, objectLabels, VOLUME_LABELS_ATTRIBUTE } from './keys.ts';

/** Reasons why a Machine waits, as IronCore has them. */
export type WaitReason = 'MachineClassNotReady' | 'IgnitionNotReady' | 'NetworkInterfaceNotReady' | 'VolumeNotReady';

/** Something that is needed: there it is, or why it is not. `held`: there it is, but the machine of another Machine still uses it. */
export type Needed<T> = { readonly ready: T } | { readonly why: string; readonly held?: T };

/** Contents of a Secret; undefined: there is none. */
export type OptionalSecretData = Readonly<Record<string, Uint8Array>> | undefined;

export interface Surroundings {
  readonly downwardAPI: DownwardAPI;
  readonly machineClass: IronCoreMachineClass | undefined;
  readonly runtimeClasses: readonly RuntimeClass[];
  secret(name: string): OptionalSecretData;
  volume(name: string): IronCoreVolume | undefined;
  networkInterface(name: string): IronCoreNetworkInterface | undefined;
  network(name: string): IronCoreNetwork | undefined;
  /** Address of a prefix of a NetworkInterface; undefined: it has none yet. */
  prefixAddress(name: string): string | undefined;
  /** The machine that uses it, and is none of the Machine; undefined: none does. */
  keeperOf(handle: string, object?: KubeObject): Holder | undefined;
}

export interface DesiredMachine {
  readonly runtimeClass: Needed<string>;
  readonly ignition: Needed<Uint8Array>;
  /** By entry of the spec, in its order. */
  readonly volumes: ReadonlyMap<string, Needed<Volume>>;
  readonly networkInterfaces: ReadonlyMap<string, Needed<NetworkInterface>>;
  readonly hostname: string | undefined;
  /** What of the spec has no effect; undefined: nothing. */
  readonly ignored: string | undefined;
}

const DEFAULT_KEY = 'ignition.yaml';

/** What a Machine should be at its runtime, with what is missing for it. */
export function desiredRuntimeMachine(machine: IronCoreMachine, around: Surroundings): DesiredMachine {
  const { volumes = [], networkInterfaces = [], guestConfig } = machine.spec;
  return {
    runtimeClass: classOf(machine, around),
    ignition: ignitionOf(machine, around),
    volumes: new Map(volumes.map((entry, at) => [entry.name, volumeOf(machine, entry, at === 0, around)])),
    networkInterfaces: new Map(
      networkInterfaces.map((entry) => [entry.name, networkInterfaceOf(machine, entry, around)]),
    ),
    hostname: guestConfig?.hostname,
    ignored: ignoredImage(machine, around),
  };
}

function classOf({ spec }: IronCoreMachine, { machineClass, runtimeClasses }: Surroundings): Needed<string> {
  const { name } = spec.machineClassRef;
  if (machineClass === undefined) return { why: `MachineClass ${name} does not exist: create it` };
  const found = runtimeClassFor(machineClass, runtimeClasses);
  if (found !== undefined) return { ready: found.name };
  const has = runtimeClasses.length === 0 ? 'none' : runtimeClasses.map((one) => one.name).join(', ');
  return { why: `the runtime has no class with the capabilities of MachineClass ${name}, or several; it has: ${has}` };
}

function ignitionOf({ spec }: IronCoreMachine, around: Surroundings): Needed<Uint8Array> {
  const { ignitionRef } = spec;
  if (ignitionRef === undefined) return { ready: new Uint8Array() };
  const key = ignitionRef.key === undefined || ignitionRef.key === '' ? DEFAULT_KEY : ignitionRef.key;
  const data = around.secret(ignitionRef.name);
  if (data === undefined) return { why: `Secret ${ignitionRef.name} does not exist: create it` };
  const ignition = data[key];
  return ignition === undefined
    ? { why: `Secret ${ignitionRef.name} has no key ${key}: add it, or name another one in spec.ignitionRef.key` }
    : { ready: ignition };
}

function volumeOf(
  machine: IronCoreMachine,
  entry: VolumeEntry,
  isFirst: boolean,
  around: Surroundings,
): Needed<Volume> {
  const { name, device = '' } = entry;
  if (device === '') return { why: 'no device name is left for it' };
  const objectName = volumeNameOf(machine, entry);
  if (objectName === undefined) {
    const imageOfSpec = isFirst ? (machine.spec.image ?? '') : '';
    const { sizeLimit } = entry.localDisk ?? entry.emptyDisk ?? {};
    const image = entry.localDisk?.image ?? '';
    const sizeBytes = sizeLimit === undefined ? 0n : bytesOf(sizeLimit);
    const localDisk = { sizeBytes, image: { image: image === '' ? imageOfSpec : image } };
    return { ready: { name, device, localDisk, connection: undefined } };
  }
  const foreign = notMadeFor(machine, 'Volume', entry.ephemeral, around.volume(objectName));
  if (foreign !== undefined) return { why: foreign };
  const connection = connectionOf(machine, objectName, around);
  // A volume has one source at a runtime: what is on a Volume at first is said by that.
  const connected = (to: VolumeConnection): Volume => ({ name, device, localDisk: undefined, connection: to });
  if ('ready' in connection) return { ready: connected(connection.ready) };
  const { why, held } = connection;
  return held === undefined ? { why } : { why, held: connected(held) };
}

/** That the image of the spec is on no disk: the first one is a Volume that was not made of it. */
function ignoredImage(machine: IronCoreMachine, around: Surroundings): string | undefined {
  const { image = '', volumes: [first] = [] } = machine.spec;
  const name = first && volumeNameOf(machine, first);
  if (image === '' || first === undefined || name === undefined) return undefined;
  const { osImage } = around.volume(name)?.spec?.dataSource ?? {};
  if (osImage?.image === image) return undefined;
  const has = osImage?.image === undefined ? 'none' : osImage.image;
  return (
    `spec.image ${image} is not used: the first disk, ${first.name}, is Volume ${name}, whose image is the one of its spec.dataSource.osImage ` +
    `(${has}). Create the Volume with the image, or make ${first.name} a localDisk`
  );
}

function connectionOf(machine: IronCoreMachine, name: string, around: Surroundings): Needed<VolumeConnection> {
  const volume = around.volume(name);
  if (volume === undefined) return { why: `Volume ${name} does not exist` };
  const { claimRef, encryption, resources = {} } = volume.spec ?? {};
  if (claimRef === undefined) return { why: `Volume ${name} is not claimed yet` };
  const { state, access, resources: present = resources } = volume.status ?? {};
  if (claimRef.uid !== machine.metadata.uid) {
    const why = `Volume ${name} is in use by Machine ${claimRef.name}`;
    const user = access && around.keeperOf(volumeHandle(access));
    const isUser = user?.machine === keyOf({ metadata: { ...machine.metadata, name: claimRef.name } });
    // Its keys are none of ours to read.
    return isUser && access !== undefined ? { why, held: connectionTo(volume, access, around) } : { why };
  }
  if (state !== 'Available') return { why: `Volume ${name} is not available: its state is ${state ?? 'not known'}` };
  if (access === undefined) return { why: `Volume ${name} has no status.access` };
  const keeper = around.keeperOf(volumeHandle(access), volume);
  const secretData = secretOf(access.secretRef?.name, 'access', around);
  if ('why' in secretData) return { why: `Volume ${name}: ${secretData.why}` };
  const encryptionData = secretOf(encryption?.secretRef?.name, 'encryption', around);
  if ('why' in encryptionData) return { why: `Volume ${name}: ${encryptionData.why}` };
  return unlessKept(`Volume ${name}`, keeper, {
    ...connectionTo(volume, access, around),
    secretData: secretData.ready,
    encryptionData: encryptionData.ready,
    effectiveStorageBytes: bytesOf(present['storage'] ?? 0),
  });
}

/** Without keys, and without its size. */
function connectionTo(
  { metadata }: IronCoreVolume,
  { driver = '', handle = '', volumeAttributes }: NonNullable<NonNullable<IronCoreVolume['status']>['access']>,
  { downwardAPI }: Surroundings,
): VolumeConnection {
  const labels = objectLabels('volume', metadata, downwardAPI.volumeLabels);
  const attributes = { ...volumeAttributes, [VOLUME_LABELS_ATTRIBUTE]: labels };
  return { driver, handle, attributes, secretData: {}, encryptionData: {}, effectiveStorageBytes: 0n };
}

function secretOf(name: string | undefined, what: string, around: Surroundings): Needed<Record<string, Uint8Array>> {
  if (name === undefined) return { ready: {} };
  const data = around.secret(name);
  return data === undefined ? { why: `${what} Secret ${name} does not exist` } : { ready: { ...data } };
}

function networkInterfaceOf(
  machine: IronCoreMachine,
  entry: NetworkInterfaceEntry,
  around: Surroundings,
): Needed<NetworkInterface> {
  const name = networkInterfaceNameOf(machine, entry);
  const nic = around.networkInterface(name);
  const foreign = notMadeFor(machine, 'NetworkInterface', entry.ephemeral, nic);
  if (foreign !== undefined) return { why: foreign };
  if (nic === undefined) return { why: `NetworkInterface ${name} does not exist` };
  const { machineRef } = nic.spec ?? {};
  if (machineRef === undefined) return { why: `NetworkInterface ${name} is not claimed yet` };
  const needed = attachable(entry, name, nic, around);
  if (machineRef.uid !== machine.metadata.uid) {
    const why = `NetworkInterface ${name} is in use by Machine ${machineRef.name}`;
    const isUser = 'wanted' in needed && needed.keeper?.machine === keyBeside(machine, machineRef.name);
    return isUser ? { why, held: needed.wanted } : { why };
  }
  if ('why' in needed) return { why: `NetworkInterface ${name}${needed.why}` };
  return unlessKept(`NetworkInterface ${name}: ${needed.address}`, needed.keeper, needed.wanted);
}

type Attachable =
  | { readonly why: string }
  | { readonly wanted: NetworkInterface; readonly address: string; readonly keeper: Holder | undefined };

/** What a NetworkInterface is at a runtime, and who has the first of its addresses that somebody has. */
function attachable(
  entry: NetworkInterfaceEntry,
  name: string,
  { metadata, spec }: IronCoreNetworkInterface,
  around: Surroundings,
): Attachable {
  const { networkRef, ips = [], attributes } = spec ?? {};
  const networkName = networkRef?.name ?? '';
  const network = around.network(networkName);
  if (network === undefined) return { why: `: Network ${networkName} does not exist` };
  if (ips.length === 0) return { why: ' has no IP address: add one to spec.ips' };
  const { providerID: networkId = '' } = network.spec ?? {};
  const addresses: string[] = [];
  let kept: { readonly address: string; readonly keeper: Holder } | undefined;
  for (const [at, { value }] of ips.entries()) {
    const prefix = `${name}-${at}`;
    const address = value ?? around.prefixAddress(prefix);
    if (address === undefined) return { why: `: Prefix ${prefix} is not allocated yet` };
    const keeper = around.keeperOf(addressHandle(networkId, address));
    if (keeper !== undefined) kept ??= { address, keeper };
    addresses.push(address);
  }
  const wanted: NetworkInterface = {
    name: entry.name,
    networkId,
    ips: addresses,
    attributes: {
      ...attributes,
      [NIC_LABELS_ATTRIBUTE]: objectLabels('nic', metadata, around.downwardAPI.networkInterfaceLabels),
      [NETWORK_LABELS_ATTRIBUTE]: objectLabels('network', network.metadata, around.downwardAPI.networkLabels),
    },
  };
  return { wanted, address: kept?.address ?? '', keeper: kept?.keeper };
}

/** What is wanted, unless a machine uses it. */
function unlessKept<T>(what: string, keeper: Holder | undefined, wanted: T): Needed<T> {
  if (keeper === undefined) return { ready: wanted };
  const why = keptBy(what, keeper);
  return keeper.machine === undefined ? { why } : { why, held: wanted };
}

function keptBy(what: string, { id, pool, machine, lost }: Holder): string {
  if (lost !== undefined) {
    const hint = giveUpHint(lost, { kind: 'machinepools.compute.ironcore.dev', metadata: { name: pool } });
    return (
      `${what} was in use by machine ${id} when the runtime of MachinePool ${pool} last listed its machines; it does not respond now, and the ` +
      `machine has no Machine. ${hint}`
    );
  }
  if (machine !== undefined)
    return (
      `${what} is in use by machine ${id} of Machine ${machine} at the runtime of MachinePool ${pool}: wait until that machine no longer has it, ` +
      'or remove it from one of the two Machines'
    );
  return (
    `${what} is in use by machine ${id} at the runtime of MachinePool ${pool}, which has no Machine: see condition MachinesKept there, or ` +
    'delete it at the runtime'
  );
}

/** Why an object cannot be taken for one that was made for the Machine; undefined: it can, or need not. */
function notMadeFor(
  { metadata }: IronCoreMachine,
  kind: string,
  template: object | undefined,
  object: KubeObject | undefined,
): string | undefined {
  if (template === undefined || object === undefined || controllerOf(object)?.uid === metadata.uid) return undefined;
  return `${kind} ${object.metadata.name} already exists and does not belong to this Machine: delete it, or rename the entry`;
}

/** Whole bytes, rounded up; what is no quantity is refused by the API server. */
function bytesOf(quantity: string | number): bigint {
  return BigInt(Math.ceil(quantityAsNumber(quantity) ?? 0));
}
