import { Api, type Json } from './api.ts';
import type { BedSettings } from './configuration.ts';

/** What is in a new bed, by ID. */
export interface Seeds {
  readonly userPassword: string;
  readonly projectID: string;
  readonly smallProjectID: string;
  readonly imageID: string;
  readonly networkID: string;
  readonly subnetID: string;
  readonly secondNetworkID: string;
  /** A network of two addresses. */
  readonly tightNetworkID: string;
  readonly securityGroupIDs: readonly [string, string];
  readonly externalNetworkID: string;
}

/** The user of the driver. */
export const USER = 'machinist';
/** Its project without limits, and the one of two servers. */
export const PROJECTS = { machines: 'machines', small: 'small' } as const;

/** Of every key pair. */
export const PUBLIC_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ4NxUPiKXT3cQVZsBeYyVHQxNYQZ4V1lKsXuzh0pVZK bed';

const FLAVORS = [
  { id: '1', name: 'tiny', vcpus: 1, ram: 512, disk: 1 },
  { id: '2', name: 'half', vcpus: 5, ram: 1024, disk: 1 },
  { id: '3', name: 'huge', vcpus: 5000, ram: 2048, disk: 1 },
];

/**
 * Users, projects, and the catalog: must be there before the compute hosts start. `proxied` are the ports of a second region, whose
 * compute, network and volume services are reached through a proxy.
 */
export async function seedIdentity(
  settings: BedSettings,
  userPassword: string,
  proxied: Readonly<Record<'nova' | 'neutron' | 'cinder', number>>,
): Promise<Pick<Seeds, 'projectID' | 'smallProjectID'>> {
  const admin = await Api.open(settings, { user: 'admin', password: settings.adminPassword, project: 'admin' });
  const make = async (kind: string, fields: Json): Promise<string> => {
    const answer = await admin.call<Record<string, { id: string }>>('keystone', 'POST', `/v3/${kind}s`, {
      [kind]: fields,
    });
    return answer[kind]?.id ?? '';
  };
  const { roles } = await admin.call<{ roles: { name: string; id: string }[] }>('keystone', 'GET', '/v3/roles');
  const roleIDs = new Map(roles.map(({ name, id }) => [name, id]));
  roleIDs.set('service', await make('role', { name: 'service' }));
  const project = async (name: string) => await make('project', { name, domain_id: 'default' });
  const [service, projectID, smallProjectID] = [
    await project('service'),
    await project(PROJECTS.machines),
    await project(PROJECTS.small),
  ];
  const user = async (name: string, password: string, grants: readonly [string, string][]): Promise<void> => {
    const id = await make('user', { name, password, domain_id: 'default' });
    for (const [where, role] of grants)
      await admin.call('keystone', 'PUT', `/v3/projects/${where}/users/${id}/roles/${roleIDs.get(role)}`);
  };
  await user('services', settings.servicePassword, [
    [service, 'admin'],
    [service, 'service'],
  ]);
  await user(USER, userPassword, [
    [projectID, 'member'],
    [smallProjectID, 'member'],
  ]);

  await make('region', { id: LOSSY_REGION });
  const { ports, region } = settings;
  const url = (port: number, path = ''): string => `http://127.0.0.1:${port}${path}`;
  const catalog: readonly [string, string, string, string][] = [
    ['nova', 'compute', url(ports.nova, '/v2.1'), `https://127.0.0.1:${proxied.nova}/v2.1`],
    ['neutron', 'network', url(ports.neutron), `https://127.0.0.1:${proxied.neutron}`],
    ['glance', 'image', url(ports.glance), url(ports.glance)],
    [
      'cinder',
      'volumev3',
      url(ports.cinder, '/v3/%(project_id)s'),
      `https://127.0.0.1:${proxied.cinder}/v3/%(project_id)s`,
    ],
    ['placement', 'placement', url(ports.placement), url(ports.placement)],
  ];
  for (const [name, type, direct, lossy] of catalog) {
    const id = await make('service', { name, type });
    for (const [where, at] of [
      [region, direct],
      [LOSSY_REGION, lossy],
    ])
      for (const one of ['public', 'internal'])
        await make('endpoint', { service_id: id, interface: one, url: at, region_id: where });
  }
  return { projectID, smallProjectID };
}

/** The same cloud once more, reached through a proxy that loses answers. */
export const LOSSY_REGION = 'lossy';

/** Flavors, zones, an image, networks and the rest. */
export async function seedCloud(
  settings: BedSettings,
  known: Pick<Seeds, 'projectID' | 'smallProjectID' | 'userPassword'>,
): Promise<Seeds> {
  const admin = await Api.open(settings, { user: 'admin', password: settings.adminPassword, project: 'admin' });
  const user = await Api.open(settings, { user: USER, password: known.userPassword, project: PROJECTS.machines });
  for (const flavor of FLAVORS) await admin.call('nova', 'POST', '/v2.1/flavors', { flavor });
  for (const host of Object.keys(settings.hosts)) {
    const { aggregate } = await admin.call<{ aggregate: { id: number } }>('nova', 'POST', '/v2.1/os-aggregates', {
      aggregate: { name: host, availability_zone: host },
    });
    await admin.call('nova', 'POST', `/v2.1/os-aggregates/${aggregate.id}/action`, { add_host: { host } });
  }
  await admin.call('nova', 'PUT', `/v2.1/os-quota-sets/${known.smallProjectID}`, { quota_set: { instances: 2 } });
  await user.call('nova', 'POST', '/v2.1/os-keypairs', { keypair: { name: 'key', public_key: PUBLIC_KEY } });
  const imageID = await seedImage(admin, 'image');

  const make = async (api: Api, kind: string, fields: Json): Promise<string> => {
    const path = `/v2.0/${kind.replaceAll('_', '-')}s`;
    const answer = await api.call<Record<string, { id: string }>>('neutron', 'POST', path, { [kind]: fields });
    return answer[kind]?.id ?? '';
  };
  const subnet = async (api: Api, name: string, network: string, cidr: string): Promise<string> =>
    await make(api, 'subnet', { network_id: network, name, ip_version: 4, cidr, enable_dhcp: false });
  // Shared, so that the project of two servers can use it as well.
  const networkID = await make(admin, 'network', { name: 'network', shared: true, tenant_id: user.projectID });
  const subnetID = await subnet(admin, 'subnet', networkID, '10.0.0.0/16');
  const secondNetworkID = await make(user, 'network', { name: 'second' });
  await subnet(user, 'second', secondNetworkID, '10.9.0.0/16');
  const tightNetworkID = await make(user, 'network', { name: 'tight' });
  await subnet(user, 'tight', tightNetworkID, '10.8.0.0/29');
  const groups = [
    await make(user, 'security_group', { name: 'group-a' }),
    await make(user, 'security_group', { name: 'group-b' }),
  ] as const;
  const externalNetworkID = await make(admin, 'network', { name: 'outside', 'router:external': true, shared: true });
  await subnet(admin, 'outside', externalNetworkID, '192.0.2.0/24');
  const router = await make(admin, 'router', {
    name: 'router',
    external_gateway_info: { network_id: externalNetworkID },
  });
  await admin.call('neutron', 'PUT', `/v2.0/routers/${router}/add_router_interface`, { subnet_id: subnetID });
  return {
    ...known,
    imageID,
    networkID,
    subnetID,
    secondNetworkID,
    tightNetworkID,
    securityGroupIDs: groups,
    externalNetworkID,
  };
}

/** An image of that name, which may be there already. */
export async function seedImage(admin: Api, name: string): Promise<string> {
  const { id } = await admin.call<{ id: string }>('glance', 'POST', '/v2/images', {
    name,
    disk_format: 'raw',
    container_format: 'bare',
    visibility: 'public',
    min_disk: 1,
  });
  await admin.call('glance', 'PUT', `/v2/images/${id}/file`, new Uint8Array(512));
  return id;
}
