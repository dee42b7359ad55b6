import type { NodeAddress } from '../../apis/machine/v1alpha1/machine.ts';
import { fromTimestamp } from '../../base/clock/clock.ts';
import type { MachineDisks } from './disks.ts';
import type { OpenStackSpec } from './provider-spec.ts';

/** What we read of Nova's servers. */
export interface Server {
  readonly id: string;
  readonly name: string;
  readonly status: string;
  readonly created: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly addresses: Readonly<
    Record<string, readonly { readonly addr: string; readonly 'OS-EXT-IPS:type'?: string }[]>
  >;
  readonly fault?: { readonly message?: string };
  /** With what it has, since version 2.47 of the API; before only with an ID. */
  readonly flavor?: { readonly vcpus?: unknown; readonly ram?: unknown };
  readonly 'OS-EXT-STS:task_state'?: string | null;
  readonly 'OS-SRV-USG:launched_at'?: string | null;
  readonly 'os-extended-volumes:volumes_attached'?: readonly unknown[];
}

/**
 * How a server stands:
 *
 * | Nova says                                                     | state    |
 * |---------------------------------------------------------------|----------|
 * | DELETED, SOFT_DELETED                                         | gone     |
 * | deleting                                                      | failed   |
 * | was launched once, whatever it does now                       | there    |
 * | ERROR, never launched                                         | failed   |
 * | ERROR, and not whether it was launched: a policy may hide it  | there    |
 * | BUILD since less than `buildMs`                               | building |
 * | BUILD for longer: Nova was killed meanwhile, and forgot it    | failed   |
 */
export type ServerState = 'gone' | 'there' | 'building' | 'failed';

/** See the table. */
export function serverStateOf(server: Server, nowMs: number, buildMs: number): ServerState {
  const { status, created } = server;
  if (status === 'DELETED' || status === 'SOFT_DELETED') return 'gone';
  if (server['OS-EXT-STS:task_state'] === 'deleting') return 'failed';
  const launchedAt = server['OS-SRV-USG:launched_at'];
  if (typeof launchedAt === 'string' || !['BUILD', 'ERROR', 'UNKNOWN'].includes(status)) return 'there';
  if (status !== 'BUILD') return status === 'ERROR' && launchedAt === null ? 'failed' : 'there';
  return nowMs - (fromTimestamp(created) ?? nowMs) < buildMs ? 'building' : 'failed';
}

/** Whether a server is in ERROR, and Nova does not show whether it was ever launched. */
export function isInErrorUnknown(server: Server): boolean {
  return server.status === 'ERROR' && server['OS-SRV-USG:launched_at'] === undefined;
}

/** Whether Nova, which knows that without Cinder, says that a server has no volume. It does not know yet while it builds one. */
export function hasNoVolume(server: Server): boolean {
  const isBuilt = typeof server['OS-SRV-USG:launched_at'] === 'string';
  return isBuilt && server['os-extended-volumes:volumes_attached']?.length === 0;
}

/** Addresses as a Node shows them: those of its ports, then floating ones. */
export function addressesOf({ addresses }: Pick<Server, 'addresses'>): readonly NodeAddress[] {
  const all = Object.values(addresses).flat();
  const isFloating = (address: (typeof all)[number]): boolean => address['OS-EXT-IPS:type'] === 'floating';
  return [
    ...all.filter((address) => !isFloating(address)).map(({ addr }) => ({ type: 'InternalIP', address: addr })),
    ...all.filter(isFloating).map(({ addr }) => ({ type: 'ExternalIP', address: addr })),
  ];
}

/** What the flavor of a server has; undefined where Nova does not tell. */
export function capacityOf({
  flavor: { vcpus, ram } = {},
}: Pick<Server, 'flavor'>): Record<string, string> | undefined {
  const isAmount = (value: unknown): value is number =>
    typeof value === 'number' && Number.isInteger(value) && value > 0;
  return isAmount(vcpus) && isAmount(ram) ? { cpu: String(vcpus), memory: `${ram}Mi` } : undefined;
}

/**
 * Of several servers that were made for one machine the one that stays: which the port belongs to, else the oldest. Each must have been
 * made for this machine and for no other.
 */
export function survivorOf(servers: readonly Server[], portDevices: ReadonlySet<string>): Server | undefined {
  const byAge = servers.toSorted((a, b) => (a.created + a.id < b.created + b.id ? -1 : 1));
  return byAge.find(({ id }) => portDevices.has(id)) ?? byAge[0];
}

/** What a server is made with, beside its class. */
export interface ServerParts {
  readonly name: string;
  readonly flavorID: string;
  readonly imageID: string;
  readonly portIDs: readonly string[];
  readonly serverGroupID: string | undefined;
  /** The volumes that were made for it. */
  readonly disks: MachineDisks;
  readonly metadata: Readonly<Record<string, string>>;
  /** Empty where Nova is too old for them. */
  readonly tags: readonly string[];
  readonly userData: string;
}

export function serverBody(spec: OpenStackSpec, parts: ServerParts): object {
  const { useConfigDrive, availabilityZone, keyName } = spec;
  const { serverGroupID } = parts;
  return {
    server: {
      name: parts.name,
      flavorRef: parts.flavorID,
      ...disksBody(spec, parts),
      networks: parts.portIDs.map((port) => ({ port })),
      metadata: parts.metadata,
      user_data: parts.userData,
      ...(availabilityZone === undefined ? {} : { availability_zone: availabilityZone }),
      ...(keyName === undefined ? {} : { key_name: keyName }),
      ...(useConfigDrive === undefined ? {} : { config_drive: useConfigDrive }),
      ...(parts.tags.length === 0 ? {} : { tags: parts.tags }),
    },
    ...(serverGroupID === undefined ? {} : { 'os:scheduler_hints': { group: serverGroupID } }),
  };
}

/** Every volume goes with the server, whoever deletes that: this driver, an earlier one, or somebody by hand. */
function disksBody({ rootDiskSize }: OpenStackSpec, { imageID, disks: { root, data } }: ServerParts): object {
  const volume = { source_type: 'volume', destination_type: 'volume', delete_on_termination: true };
  const others = data.map((uuid) => ({ ...volume, boot_index: -1, uuid }));
  // The size is as the earlier provider has it; the volume has that size already.
  if (root !== undefined)
    return {
      block_device_mapping_v2: [{ ...volume, boot_index: 0, uuid: root, volume_size: rootDiskSize }, ...others],
    };
  if (others.length === 0) return { imageRef: imageID };
  // Beside other disks Nova has to be told that the image is on the one of the flavor.
  const local = { source_type: 'image', destination_type: 'local', delete_on_termination: true };
  return { imageRef: imageID, block_device_mapping_v2: [{ ...local, boot_index: 0, uuid: imageID }, ...others] };
}
