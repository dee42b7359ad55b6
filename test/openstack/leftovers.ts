import { eventually } from '../expect/eventually.ts';
import type { Api } from './api.ts';
import type { Bed } from './bed.ts';

/** A server, as much of it as tests look at. */
export interface SeenServer {
  readonly id: string;
  readonly name: string;
  readonly status: string;
  /** What Nova does with it; null: nothing. */
  readonly 'OS-EXT-STS:task_state': string | null;
  readonly metadata: Readonly<Record<string, string>>;
  readonly addresses: Readonly<
    Record<string, readonly { readonly addr: string; readonly 'OS-EXT-IPS:type': string }[]>
  >;
  readonly tags: readonly string[];
  readonly flavor: { readonly original_name: string };
}

/** A port, as much of it as tests look at. */
export interface SeenPort {
  readonly id: string;
  readonly name: string;
  readonly device_id: string;
  readonly device_owner: string;
  readonly network_id: string;
  readonly port_security_enabled: boolean;
  readonly fixed_ips: readonly { readonly ip_address: string }[];
  readonly description: string;
  readonly tags: readonly string[];
  readonly security_groups: readonly string[];
  readonly allowed_address_pairs: readonly { readonly ip_address: string }[];
}

/** A volume, as much of it as tests look at. */
export interface SeenVolume {
  readonly id: string;
  readonly name: string;
  readonly size: number;
  readonly status: string;
  readonly bootable: string;
  readonly volume_type: string;
  readonly description: string | null;
  readonly metadata: Readonly<Record<string, string>>;
  readonly volume_image_metadata?: { readonly image_name: string };
  readonly attachments: readonly { readonly server_id: string }[];
}

/** What a project has that costs something. */
export interface Belongings {
  readonly servers: readonly SeenServer[];
  readonly ports: readonly SeenPort[];
  readonly floatingIPs: readonly {
    readonly id: string;
    readonly floating_ip_address: string;
    readonly port_id: string | null;
  }[];
}

/** All that machines have in the driver's project; a server that is gone may show for a moment, as deleted. */
export async function belongingsOf({ user }: Pick<Bed, 'user'>): Promise<Belongings> {
  const servers = await serversOf(user);
  const { ports } = await user.call<{ ports: SeenPort[] }>('neutron', 'GET', '/v2.0/ports');
  const { floatingips } = await user.call<{ floatingips: Belongings['floatingIPs'] }>(
    'neutron',
    'GET',
    '/v2.0/floatingips',
  );
  return {
    servers,
    ports: ports.filter(({ device_owner: owner }) => !owner.startsWith('network:')),
    floatingIPs: floatingips,
  };
}

/** All volumes of the driver's project, where Cinder runs. */
export async function volumesOf({ user }: Pick<Bed, 'user'>): Promise<readonly SeenVolume[]> {
  const path = `/v3/${user.projectID}/volumes/detail`;
  return (await user.call<{ volumes: SeenVolume[] }>('cinder', 'GET', path)).volumes;
}

/** A look at a cloud costs it as much as a change: rarely, then. */
export const SELDOM = { timeoutMs: 120_000, intervalMs: 700 } as const;

/**
 * Deletes everything that machines have in the driver's project, past the driver. A server may appear meanwhile, by a request that nobody
 * waited for, and a deletion may fail: each look deletes what is not being deleted.
 */
export async function clear(bed: Pick<Bed, 'user'>): Promise<void> {
  const { user } = bed;
  const serversAreGone = async (): Promise<void> => {
    const servers = await serversOf(user);
    for (const { id, 'OS-EXT-STS:task_state': task } of servers)
      if (task !== 'deleting') await remove(user, 'nova', `/v2.1/servers/${id}`);
    if (servers.length > 0) throw new Error(`there is still ${JSON.stringify(servers)}`);
  };
  await eventually(serversAreGone, { ...SELDOM, describe: 'no server to be left' });
  const { ports, floatingIPs } = await belongingsOf(bed);
  for (const { id } of floatingIPs) await remove(user, 'neutron', `/v2.0/floatingips/${id}`);
  for (const { id } of ports) await remove(user, 'neutron', `/v2.0/ports/${id}`);
}

async function serversOf(user: Api): Promise<readonly SeenServer[]> {
  const { servers } = await user.call<{ servers: SeenServer[] }>('nova', 'GET', '/v2.1/servers/detail');
  return servers.filter(({ status }) => status !== 'DELETED');
}

async function remove(user: Api, service: 'nova' | 'neutron', path: string): Promise<void> {
  await user.call(service, 'DELETE', path).catch((err: unknown) => {
    if (!String(err).includes(': 404')) throw err;
  });
}
