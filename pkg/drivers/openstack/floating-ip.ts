import { DriverError } from '../../driver/error.ts';
import type { Cloud } from './cloud.ts';
import type { FloatingIP } from './network.ts';
import type { WantedFloatingIP } from './provider-spec.ts';

/**
 * The floating IP of a server, on the port of its first network. One that is allocated carries the description of its machine; Neutron
 * lets a port have one only, so that a repeated allocation is refused.
 */
export async function ensureFloatingIP(
  cloud: Cloud,
  wanted: WantedFloatingIP,
  portID: string,
  owner: string,
  signal: AbortSignal,
): Promise<string> {
  const { network } = cloud;
  if (wanted.address !== undefined) return await giveAddress(cloud, wanted.address, portID, signal);
  const [own] = await network.floatingIPs({ description: owner }, signal);
  if (own !== undefined) {
    if (own.port_id !== portID) await network.associate(own.id, portID, signal);
    return own.floating_ip_address;
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
  { address }: Pick<WantedFloatingIP, 'address'>,
  serverID: string,
  owner: string,
  signal: AbortSignal,
): Promise<boolean> {
  const { network } = cloud;
  const [given] = await network.floatingIPs(address === undefined ? { description: owner } : { address }, signal);
  if (given === undefined || given.port_id === null) return false;
  const ports = await network.portsOfDevice(serverID, signal);
  return ports.some(({ id }) => id === given.port_id);
}

/** Releases what was allocated for a machine; one whose address the class gives only loses its port, with the port. Says whether there was any. */
export async function releaseFloatingIPs(cloud: Cloud, owner: string, signal: AbortSignal): Promise<boolean> {
  const own = await cloud.network.floatingIPs({ description: owner }, signal);
  for (const { id } of own) await cloud.network.releaseFloatingIP(id, signal);
  return own.length > 0;
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
