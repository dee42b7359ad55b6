import { DriverError } from '../../driver/error.ts';
import type { Cloud } from './cloud.ts';
import type { FloatingIP } from './network.ts';
import type { DesiredFloatingIP } from './provider-spec.ts';
import type { Users } from './users.ts';

export interface FloatingIPDeps {
  readonly cloud: Cloud;
  /** The description of what is the machine's. */
  readonly owner: string;
  readonly ports: ReadonlySet<string>;
  readonly users: Users;
}

/**
 * Gives a port, the machine's in its first network, its floating IP. One that is allocated carries the description of its machine; Neutron
 * lets a port have one only, so that a repeated allocation is refused. Says the address.
 */
export async function ensureFloatingIP(
  deps: FloatingIPDeps,
  wanted: DesiredFloatingIP,
  portID: string,
  signal: AbortSignal,
): Promise<string> {
  const { cloud, owner } = deps;
  const { network } = cloud;
  if (wanted.address !== undefined) return await giveAddress(cloud, wanted.address, portID, signal);
  const own = await ownOf(deps, signal);
  const found = own.find(({ port_id: port }) => port === portID) ?? own[0];
  // Two processes may have asked at the same time, each for a port of its own.
  for (const spare of own)
    if (spare !== found && spare.port_id === null) await network.releaseFloatingIP(spare.id, signal);
  if (found !== undefined) {
    if (found.port_id !== portID) await network.associate(found.id, portID, signal);
    return found.floating_ip_address;
  }
  const path = 'providerSpec.spec.floatingIP.networkName';
  const networkID =
    wanted.by === 'id'
      ? wanted.network
      : await cloud.names.get(`network ${wanted.network}`, signal, (shared) =>
          network.networkID(wanted.network, path, shared),
        );
  return (await network.createFloatingIP(networkID, portID, owner, signal)).floating_ip_address;
}

/** Whether a server has the floating IP that its class asks for, as Neutron says, on any of its ports. */
export async function hasFloatingIP(
  cloud: Cloud,
  { address }: Pick<DesiredFloatingIP, 'address'>,
  serverID: string,
  owner: string,
  signal: AbortSignal,
): Promise<boolean> {
  const { network } = cloud;
  const given = await network.floatingIPs(address === undefined ? { description: owner } : { address }, signal);
  if (given.every(({ port_id: port }) => port === null)) return false;
  const ports = await network.portsOfDevice(serverID, signal);
  return ports.some(({ id }) => given.some(({ port_id: port }) => port === id));
}

/** Releases what was allocated for a machine; one whose address the class gives only loses its port, with the port. Says whether there was any. */
export async function releaseFloatingIPs(deps: FloatingIPDeps, signal: AbortSignal): Promise<boolean> {
  const own = await ownOf(deps, signal);
  for (const { id } of own) await deps.cloud.network.releaseFloatingIP(id, signal);
  return own.length > 0;
}

/** What was allocated for a machine, but for what another server uses by now. */
async function ownOf(
  { cloud, owner, ports, users }: FloatingIPDeps,
  signal: AbortSignal,
): Promise<readonly FloatingIP[]> {
  const own: FloatingIP[] = [];
  for (const one of await cloud.network.floatingIPs({ description: owner }, signal)) {
    const { id, port_id: port } = one;
    if (port === null || ports.has(port) || !(await users.isOthersPort(id, port, signal))) own.push(one);
  }
  return own;
}

async function giveAddress(cloud: Cloud, address: string, portID: string, signal: AbortSignal): Promise<string> {
  const path = 'providerSpec.spec.floatingIP.address';
  const [found] = await cloud.network.floatingIPs({ address }, signal);
  if (found === undefined)
    throw new DriverError('InvalidArgument', `${path}: there is no floating IP ${address} in the project`);
  requireFree(found, portID, path);
  if (found.port_id !== portID) await cloud.network.associate(found.id, portID, signal);
  return address;
}

function requireFree({ port_id: port, floating_ip_address: address }: FloatingIP, portID: string, path: string): void {
  if (port === null || port === portID) return;
  throw new DriverError(
    'FailedPrecondition',
    `${path}: ${address} is in use by port ${port}; free it, or use another one`,
  );
}
