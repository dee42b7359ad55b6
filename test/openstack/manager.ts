import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';

import type { Api } from '../../hack/control-plane/api.ts';
import { applyManifests, parseManifests, readManifests } from '../../hack/control-plane/apply.ts';
import { API_VERSION } from '../../pkg/apis/machine/v1alpha1/group.ts';
import {
  DELETION_POLICY_ANNOTATION,
  FORCED_REMOVAL_PREFIX,
  NODE_LABEL,
} from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import type { MachineClass } from '../../pkg/apis/machine/v1alpha1/machine-class.ts';
import type { ClusterMachine } from '../../pkg/worlds/mirantis/api/machine.ts';
import type { Event } from '../../pkg/apis/wire.ts';
import { InProcessManager } from '../cloud/manager.ts';
import { Site } from '../cloud/site.ts';
import { DriverProcess } from '../drivers/driver-process.ts';
import { eventually } from '../expect/eventually.ts';
import { DOCUMENTED_MACHINE } from '../integration/documented-machine.ts';
import { grant } from '../integration/shipped-roles.ts';
import type { Bed } from './bed.ts';
import { belongingsOf, clear, SELDOM, type SeenServer, volumesOf } from './leftovers.ts';
import { openStackClass, secretOf, TAGS } from './requests.ts';
import { seedImage } from './seed.ts';

const NAMESPACE = 'example-ns';
const POOL = { name: 'pool', namespace: NAMESPACE };
const PATH = `/apis/machine.sapcloud.io/v1alpha1/namespaces/${NAMESPACE}`;
const DOCUMENTED_PATH = `/apis/cluster.k8s.io/v1alpha1/namespaces/${NAMESPACE}/machines/example-control-plane`;
/** Of each Node: less than its flavor has, as a kernel keeps some memory for itself. */
const NODE_CAPACITY = { cpu: 7, memory: '23000Mi' } as const;
const PATIENCE = { ...SELDOM, timeoutMs: 240_000 };

/** What the documented Machine asks the cloud for by name. */
const DOCUMENTED = {
  name: 'example-control-plane',
  flavor: { id: 'documented', name: 'kaas.small', vcpus: 8, ram: 24_576, disk: 20 },
  image: 'bionic-server-cloudimg-amd64-20200724',
  groups: ['kaas-sg-ctrl-abcdefgh-0123-4567-890a-0a1b2c3d4e5f', 'kaas-sg-glob-abcdefgh-0123-4567-890a-0a1b2c3d4e5f'],
  floatingIP: '172.16.246.182',
} as const;

/**
 * Everything that is shipped, over the real services, Cinder among them: definitions and roles, the manager with all of its controllers,
 * the driver as a process beside it.
 */
export function describeManager(bed: Bed): void {
  describe('the manager over OpenStack', () => {
    const stack = new AsyncDisposableStack();
    let api: Api;
    let nodes: Nodes;
    let driver: DriverProcess;
    let startDriver: () => Promise<DriverProcess>;

    beforeAll(async () => {
      const site = stack.use(await Site.open());
      api = site.api;
      nodes = new Nodes(bed, api);
      const directory = await mkdtemp(join(tmpdir(), 'manager-'));
      stack.defer(async () => await rm(directory, { recursive: true, force: true }));
      const address = `unix://${join(directory, 'driver.sock')}`;
      const flags = [`--address=${address}`, `--state-directory=${join(directory, 'state')}`];
      startDriver = async () => await DriverProcess.start('openstack-driver', flags);
      driver = await startDriver();
      stack.defer(async () => await driver.end('SIGKILL'));
      await api.send('POST', '/api/v1/namespaces', { metadata: { name: NAMESPACE } });
      await applyManifests(api, readManifests(join(import.meta.dirname, '../../crds/mirantis')));
      await grant(api, 'control', NAMESPACE);
      await grant(api, 'mirantis', NAMESPACE);
      const { kubeconfig } = site;
      stack.use(
        await InProcessManager.start({
          kubeconfig,
          namespace: NAMESPACE,
          flags: {
            driver: `OpenStack=${address}`,
            controllers: '*,mirantis',
            'forced-deletion-timeout': '5s',
            'machine-safety-orphan-vms-period': '10s',
            'machine-safety-orphan-vms-grace': '5s',
          },
        }),
      );
    }, 240_000);

    afterEach(async () => {
      await clear(bed);
    });

    afterAll(async () => {
      await stack.disposeAsync();
    });

    // promise: openstack/server-vanishes-replaced
    // promise: openstack/cloud/server-vanishes-replaced-leaves
    test('makes three machines, replaces one whose server vanishes, and leaves nothing of them', async () => {
      await applyManifests(api, manifestsOf(bed));

      const untilUp = async (): Promise<readonly string[]> =>
        await eventually(async () => {
          const machines = await nodes.join();
          expect(machines.map(({ status }) => status?.currentStatus?.phase)).toEqual(['Running', 'Running', 'Running']);
          const { servers, ports } = await belongingsOf(bed);
          const ids = servers.map(({ id }) => `openstack:///${bed.settings.region}/${id}`);
          expect(ids.toSorted()).toEqual(machines.map(({ spec }) => spec.providerID ?? '').toSorted());
          expect(ports.map(({ device_id: device }) => device).toSorted()).toEqual(
            servers.map(({ id }) => id).toSorted(),
          );
          return servers.map(({ name }) => name).toSorted();
        }, PATIENCE);
      const first = await untilUp();

      const [vanished = ''] = first;
      const { servers } = await belongingsOf(bed);
      const gone = servers.find(({ name }) => name === vanished);
      await bed.user.call('nova', 'DELETE', `/v2.1/servers/${gone?.id}`);
      await eventually(async () => (await belongingsOf(bed)).servers.every(({ id }) => id !== gone?.id), SELDOM);
      // As a cloud controller does.
      await api.send('DELETE', `/api/v1/nodes/${vanished}`);
      const second = await untilUp();
      expect(second).not.toContain(vanished);
      expect(second.filter((name) => first.includes(name))).toHaveLength(2);

      await api.send('PATCH', `${PATH}/machinedeployments/${POOL.name}`, { spec: { replicas: 0 } });
      await eventually(async () => {
        expect(await belongingsOf(bed)).toEqual({ servers: [], ports: [], floatingIPs: [] });
        expect(await nodes.machines()).toEqual([]);
      }, PATIENCE);
    }, 900_000);

    // promise: openstack/keystone-down-machine-goes
    // promise: openstack/cloud/both-tags-machine-deleted
    // promise: openstack/cloud/lost-objects-server-tags
    // promise: openstack/deletion/keystone-down-server-port
    test('lets a Machine go by force while Keystone is down, and removes server and port, and a server that nobody owns, when it is back', async () => {
      const { user, seeds } = bed;
      const name = 'let-go';
      await applyManifests(
        api,
        manifestsOf(bed).filter(({ kind }) => kind !== 'MachineDeployment'),
      );
      await api.send('POST', `${PATH}/machines`, {
        apiVersion: API_VERSION,
        kind: 'Machine',
        metadata: { name, annotations: { [DELETION_POLICY_ANNOTATION]: 'forced' } },
        spec: { class: { kind: 'MachineClass', name: POOL.name } },
      });
      const running = await eventually(async () => {
        const one = (await nodes.join()).find(({ metadata }) => metadata.name === name);
        expect(one?.status?.currentStatus?.phase).toBe('Running');
        return one;
      }, PATIENCE);
      const providerID = running?.spec.providerID ?? '';
      // What a creation that broke off leaves: it is bound to no server, and in no list.
      const [port] = (await belongingsOf(bed)).ports;
      const description = port?.description;
      await user.call('neutron', 'POST', '/v2.0/ports', {
        port: { name, description, network_id: seeds.networkID },
      });
      const stray = async (of: string, metadata: object): Promise<void> => {
        const server = { name: of, flavorRef: '1', imageRef: seeds.imageID, networks: [{ uuid: seeds.networkID }] };
        await user.call('nova', 'POST', '/v2.1/servers', { server: { ...server, metadata } });
      };
      const [role, cluster] = Object.entries(TAGS);
      await stray('half', Object.fromEntries([role ?? []]));
      await stray('other-half', Object.fromEntries([cluster ?? []]));
      await stray('foreign', {});
      // None can be built without Keystone.
      await eventually(async () => {
        const { servers } = await belongingsOf(bed);
        expect(servers.map(({ status }) => status)).toEqual(['ACTIVE', 'ACTIVE', 'ACTIVE', 'ACTIVE']);
      }, PATIENCE);
      await stray('lost', TAGS);
      await bed.kill('keystone');
      // Without the token that it had.
      await driver.end('SIGKILL');
      driver = await startDriver();

      await api.send('DELETE', `${PATH}/machines/${name}`);
      await eventually(async () => expect(await nodes.machines()).toEqual([]), PATIENCE);
      await eventually(async () => {
        const { items } = await api.send<{ items: Event[] }>('GET', `/api/v1/namespaces/${NAMESPACE}/events`);
        const told = items.find(({ reason }) => reason === 'ForcedRemoval');
        expect(told).toMatchObject({ type: 'Warning', message: expect.stringContaining(`VM ${providerID} `) });
      }, PATIENCE);
      await bed.revive('keystone');

      await eventually(async () => {
        const { servers, ports } = await belongingsOf(bed);
        expect(servers.map((server) => server.name).toSorted()).toEqual(['foreign', 'half', 'other-half']);
        const owners = ports.map(({ device_id: device }) => device);
        expect(owners.toSorted()).toEqual(servers.map(({ id }) => id).toSorted());
        const { annotations } = (await api.send<MachineClass>('GET', `${PATH}/machineclasses/${POOL.name}`)).metadata;
        expect(JSON.stringify(annotations ?? {})).not.toContain(FORCED_REMOVAL_PREFIX);
        await expect(api.send('GET', `/api/v1/nodes/${name}`)).rejects.toThrow(/404|not found/i);
      }, PATIENCE);
    }, 600_000);

    // promise: openstack/two-examples-documentation-mirantis
    // promise: openstack/cloud/documents-two-yaml-examples
    // promise: openstack/cloud/floating-ip-same-address
    // promise: openstack/cloud/hardware-private-address-shown
    // promise: openstack/cloud/hardware-flavor-node
    // promise: openstack/cloud/state-server-novas-words
    // promise: openstack/front-end/kubelet-stops-kubelet-ready
    test('makes the server that the documentation of Mirantis Container Cloud asks for, of its two examples as they are, and removes it', async () => {
      const { name, flavor, image } = DOCUMENTED;
      const groupIDs = await seedDocumented(bed);
      await applyManifests(api, settingsOf(bed));
      const manifests = parseManifests(DOCUMENTED_MACHINE);
      await applyManifests(api, manifests);
      const read = async (): Promise<ClusterMachine> => await api.send('GET', DOCUMENTED_PATH);

      // Nothing has joined yet: all is what the cloud says.
      await eventually(async () => {
        const [server] = (await belongingsOf(bed)).servers;
        const early = await read();
        expect(early.status?.providerStatus).toMatchObject({
          hardware: { cpu: flavor.vcpus, ram: flavor.ram / 1_024 },
          privateIp: addressesIn(server).find((one) => !isFloating(one))?.addr ?? 'that of its port',
        });
        expect(early.metadata.annotations?.['openstack-floating-ip-address']).toBe(DOCUMENTED.floatingIP);
      }, PATIENCE);
      await expect(api.send('GET', `/api/v1/nodes/${name}`)).rejects.toThrow(/404|not found/i);

      let last: ClusterMachine | undefined;
      const told = (): string => `the documented Machine to be Ready: ${JSON.stringify(last?.status)}`;
      const shown = await eventually(
        async () => {
          await nodes.join();
          last = await read();
          expect(last.status?.providerStatus).toMatchObject({ status: 'Ready' });
          return last;
        },
        { ...PATIENCE, describe: told },
      );

      expect(shown.spec).toEqual(manifests[0]?.['spec']);
      const { servers, ports, floatingIPs } = await belongingsOf(bed);
      expect(servers).toMatchObject([
        // A server that boots from a volume has no image of its own.
        {
          name,
          status: 'ACTIVE',
          image: '',
          flavor: { original_name: flavor.name },
          'OS-EXT-AZ:availability_zone': 'nova',
        },
      ]);
      const id = servers[0]?.id ?? '';
      expect(await volumesOf(bed)).toMatchObject([
        {
          size: 120,
          status: 'in-use',
          bootable: 'true',
          volume_image_metadata: { image_name: image },
          attachments: [{ server_id: id }],
        },
      ]);
      expect(ports.map(({ device_id: device, security_groups: of }) => [device, of.toSorted()])).toEqual([
        [id, groupIDs.toSorted()],
      ]);
      const [floatingIP] = floatingIPs;
      expect([floatingIP?.floating_ip_address, floatingIP?.port_id]).toEqual([DOCUMENTED.floatingIP, ports[0]?.id]);
      const addresses = addressesIn(servers[0]);
      expect(shown.status?.providerStatus).toMatchObject({
        providerInstanceState: { id, ready: true },
        hardware: { cpu: NODE_CAPACITY.cpu, ram: 23 },
        privateIp: addresses.find((one) => !isFloating(one))?.addr,
      });
      expect(shown.metadata.annotations?.['openstack-floating-ip-address']).toBe(DOCUMENTED.floatingIP);
      expect((await api.send<Machine>('GET', `${PATH}/machines/${name}`)).status?.addresses).toContainEqual({
        type: 'ExternalIP',
        address: DOCUMENTED.floatingIP,
      });
      const node = await api.send<{ metadata: { labels: object } }>('GET', `/api/v1/nodes/${name}`);
      expect(node.metadata.labels).toMatchObject({ 'openstack-control-plane': 'enabled' });

      const showsState = async (state: string): Promise<unknown> =>
        await eventually(async () => {
          expect((await read()).status?.providerStatus?.providerInstanceState).toMatchObject({ id, state });
        }, PATIENCE);
      await showsState('ACTIVE');
      await bed.user.call('nova', 'POST', `/v2.1/servers/${id}/action`, { 'os-stop': null });
      await showsState('SHUTOFF');
      await nodes.stop(name);
      await eventually(async () => {
        const message = expect.stringContaining('Kubelet stopped posting node status.');
        const { conditions } = (await read()).status?.providerStatus ?? {};
        expect(conditions).toContainEqual({ type: 'Kubelet', ready: false, message });
      }, PATIENCE);

      await api.send('PATCH', DOCUMENTED_PATH, { spec: { providerSpec: { value: { delete: true } } } });
      await eventually(async () => {
        const left = await belongingsOf(bed);
        // The address was there before.
        expect({ ...left, volumes: await volumesOf(bed) }).toMatchObject({
          servers: [],
          ports: [],
          volumes: [],
          floatingIPs: [{ port_id: null }],
        });
        await expect(read()).rejects.toThrow(/404|not found/i);
      }, PATIENCE);
    }, 600_000);

    // promise: openstack/cloud/floating-ip-same-address
    test('gives a Machine of Mirantis that names no floating IP one of its own, shows it, and releases it with the server', async () => {
      const name = 'example-worker';
      const path = DOCUMENTED_PATH.replace(DOCUMENTED.name, name);
      await applyManifests(api, [...settingsOf(bed), plainMachine(name)]);

      await eventually(async () => {
        const { servers, ports, floatingIPs } = await belongingsOf(bed);
        const address = floatingIPs[0]?.floating_ip_address ?? 'none';
        expect(floatingIPs).toMatchObject([{ port_id: ports[0]?.id }]);
        expect(addressesIn(servers[0]).filter(isFloating)).toMatchObject([{ addr: address }]);
        const { metadata } = await api.send<ClusterMachine>('GET', path);
        expect(metadata.annotations?.['openstack-floating-ip-address']).toBe(address);
        const { status } = await api.send<Machine>('GET', `${PATH}/machines/${name}`);
        expect(status?.addresses).toContainEqual({ type: 'ExternalIP', address });
      }, PATIENCE);

      await api.send('DELETE', path);
      await eventually(async () => {
        expect(await belongingsOf(bed)).toEqual({ servers: [], ports: [], floatingIPs: [] });
        await expect(api.send('GET', path)).rejects.toThrow(/404|not found/i);
      }, PATIENCE);
    }, 600_000);
  });
}

/** The documented Machine as a worker, of what every bed has, and without an address. */
function plainMachine(name: string): Parameters<typeof applyManifests>[1][number] {
  const [documented] = parseManifests(DOCUMENTED_MACHINE);
  const { metadata, spec } = documented as unknown as ClusterMachine;
  const { 'cluster.sigs.k8s.io/control-plane': _role, ...labels } = metadata.labels ?? {};
  const { bootFromVolume: _disk, ...value } = (spec as { providerSpec: { value: object } }).providerSpec.value as {
    readonly bootFromVolume?: unknown;
  };
  const plain = { ...value, flavor: 'tiny', image: 'image', securityGroups: ['group-a'] };
  const named = { name, namespace: NAMESPACE, labels };
  const kind = { apiVersion: documented?.apiVersion ?? '', kind: documented?.kind ?? '' };
  return { ...kind, metadata: named, spec: { providerSpec: { value: plain } } };
}

function addressesIn(server: SeenServer | undefined): readonly { readonly addr: string }[] {
  return Object.values(server?.addresses ?? {}).flat();
}

function isFloating(address: Readonly<Record<string, string>>): boolean {
  return address['OS-EXT-IPS:type'] === 'floating';
}

/** Makes what the documented Machine names; says the IDs of its security groups. */
async function seedDocumented({ admin, user, seeds }: Bed): Promise<readonly string[]> {
  const { flavor, image, groups, floatingIP } = DOCUMENTED;
  await admin.call('nova', 'POST', '/v2.1/flavors', { flavor });
  await seedImage(admin, image);
  const ids: string[] = [];
  for (const name of groups) {
    const answer = await user.call<{ security_group: { id: string } }>('neutron', 'POST', '/v2.0/security-groups', {
      security_group: { name },
    });
    ids.push(answer.security_group.id);
  }
  const { externalNetworkID } = seeds;
  await admin.call('neutron', 'POST', '/v2.0/subnets', {
    subnet: { network_id: externalNetworkID, ip_version: 4, cidr: '172.16.246.0/24', enable_dhcp: false },
  });
  await admin.call('neutron', 'POST', '/v2.0/floatingips', {
    floatingip: {
      floating_network_id: externalNetworkID,
      floating_ip_address: floatingIP,
      project_id: user.projectID,
    },
  });
  return ids;
}

/** ConfigMap and Secret of the documented Machine's Cluster. */
function settingsOf(bed: Bed): Parameters<typeof applyManifests>[1] {
  const metadata = { name: 'example-cluster', namespace: NAMESPACE };
  const { networkID, externalNetworkID } = bed.seeds;
  const data = {
    region: bed.settings.region,
    keyName: 'key',
    networkID,
    podNetworkCIDRs: '10.96.0.0/12',
    floatingNetworkID: externalNetworkID,
    labelledRegion: 'eu',
  };
  const stringData = { ...secretOf(bed), userData: '#cloud-config' };
  return [
    { apiVersion: 'v1', kind: 'ConfigMap', metadata, data },
    { apiVersion: 'v1', kind: 'Secret', metadata, type: 'Opaque', stringData },
  ];
}

/** In the place of kubelets and a cloud controller: servers boot nothing. */
class Nodes {
  readonly #bed: Bed;
  readonly #api: Api;
  readonly #joined = new Set<string>();

  constructor(bed: Bed, api: Api) {
    this.#bed = bed;
    this.#api = api;
  }

  async machines(): Promise<readonly Machine[]> {
    return (await this.#api.send<{ items: Machine[] }>('GET', `${PATH}/machines`)).items;
  }

  /** A kubelet that is gone. */
  async stop(name: string): Promise<void> {
    const message = 'Kubelet stopped posting node status.';
    const conditions = [{ type: 'Ready', status: 'Unknown', reason: 'NodeStatusUnknown', message }];
    await this.#api.send('PATCH', `/api/v1/nodes/${name}/status`, { status: { conditions } });
  }

  /** Makes the Node of each machine that has a server, once; says which machines there are. */
  async join(): Promise<readonly Machine[]> {
    const machines = await this.machines();
    for (const { metadata, spec } of machines) {
      const name = metadata.labels?.[NODE_LABEL];
      if (name === undefined || this.#joined.has(name) || metadata.deletionTimestamp !== undefined) continue;
      this.#joined.add(name);
      await this.#api.send('POST', '/api/v1/nodes', { metadata: { name }, spec: { providerID: spec.providerID } });
      const conditions = [{ type: 'Ready', status: 'True', reason: 'KubeletReady' }];
      const { servers } = await belongingsOf(this.#bed);
      const own = addressesIn(servers.find((server) => server.name === name));
      const addresses = own.map((one) => ({ type: isFloating(one) ? 'ExternalIP' : 'InternalIP', address: one.addr }));
      const capacity = { cpu: String(NODE_CAPACITY.cpu), memory: NODE_CAPACITY.memory };
      await this.#api.send('PATCH', `/api/v1/nodes/${name}/status`, { status: { conditions, capacity, addresses } });
    }
    return machines;
  }
}

function manifestsOf(bed: Bed): Parameters<typeof applyManifests>[1] {
  const { providerSpec } = openStackClass(bed);
  const labels = { pool: POOL.name };
  const stringData = { ...secretOf(bed), userData: '#cloud-config' };
  const template = {
    metadata: { labels },
    spec: { class: { kind: 'MachineClass', name: POOL.name }, healthTimeout: '5s' },
  };
  return [
    { apiVersion: 'v1', kind: 'Secret', metadata: POOL, type: 'Opaque', stringData },
    {
      apiVersion: API_VERSION,
      kind: 'MachineClass',
      metadata: POOL,
      provider: 'OpenStack',
      providerSpec,
      secretRef: POOL,
    },
    {
      apiVersion: API_VERSION,
      kind: 'MachineDeployment',
      metadata: POOL,
      spec: { replicas: 3, selector: { matchLabels: labels }, strategy: { type: 'Recreate' }, template },
    },
  ];
}
