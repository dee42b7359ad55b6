import path from 'node:path';

import { afterAll, beforeAll, expect, test } from '@jest/globals';

import type { Api } from '../../hack/control-plane/api.ts';
import { applyManifests, readManifests } from '../../hack/control-plane/apply.ts';
import type { ClusterMachine, ProviderStatus } from '../../pkg/worlds/mirantis/api/machine.ts';
import type { MachinePool } from '../../pkg/worlds/mirantis/api/pool.ts';
import { DriverError } from '../../pkg/driver/error.ts';
import type { Driver, MachineRequest } from '../../pkg/driver/driver.ts';
import { parseProviderSpec } from '../../pkg/drivers/openstack/provider-spec.ts';
import {
  events,
  machineClasses,
  machineDeployments,
  machines,
  nodeLabelPolicies,
  nodes,
} from '../../pkg/kube/client/resource.ts';
import { clusterMachines, machinePools } from '../../pkg/worlds/mirantis/api/resources.ts';
import { MIRANTIS_KINDS } from '../../pkg/worlds/mirantis/controllers/kinds.ts';
import { secret } from '../builders.ts';
import { privateApiServer, type TestServer } from '../env/api-server.ts';
import { eventually } from '../expect/eventually.ts';
import { type DocumentedMachine, documentedMachine } from './documented-machine.ts';
import { MachineWorld } from './machine-world.ts';
import { driverWith } from '../drivers/driver-with.ts';

const PATIENCE = { timeoutMs: 90_000 };

const SETTINGS = {
  region: 'RegionOne',
  keyName: 'key',
  networkID: 'network-1',
  podNetworkCIDRs: '10.96.0.0/12',
};
/** A flavor that the cloud does not have. */
const UNKNOWN_FLAVOR = 'kaas.unknown';

let plane: TestServer;
let api: Api;
let world: MachineWorld;
/** Every state in one word that a Machine showed, by name. */
const states = new Map<string, string[]>();

/** The simulated cloud in the place of OpenStack: it takes what the real driver takes. */
function asOpenStack(sim: Driver): Driver {
  const translated = (request: MachineRequest): MachineRequest => {
    const { flavor } = parseProviderSpec(request.machineClass.providerSpec);
    if (flavor.value === UNKNOWN_FLAVOR)
      throw new DriverError('InvalidArgument', `flavor ${flavor.value} does not exist`);
    return { ...request, machineClass: { ...request.machineClass, providerSpec: { zone: world.namespace } } };
  };
  return driverWith(sim, {
    createMachine: async (request, call) => await sim.createMachine(translated(request), call),
  });
}

beforeAll(async () => {
  // Of its own: where both groups are served, kubectl takes `machine` for theirs.
  plane = await privateApiServer();
  const { connection } = plane;
  api = connection.api();
  await applyManifests(api, readManifests(path.join(import.meta.dirname, '../../crds/mirantis')));
  world = await MachineWorld.open({
    connection,
    controllers: 'machine,machine-class,secret,machine-set,machine-deployment,mirantis',
    roles: ['control', 'mirantis'],
    flags: { driver: 'OpenStack=unix:///in-process,sim=unix:///in-process' },
    wrap: asOpenStack,
  });
  world.session.caches.of(MIRANTIS_KINDS).clusterMachines.onChange((_old, current) => {
    const word = current?.status?.providerStatus?.status;
    if (current === undefined || word === undefined) return;
    const before = states.get(current.metadata.name) ?? [];
    if (before.at(-1) !== word) states.set(current.metadata.name, [...before, word]);
  });
});

afterAll(async () => {
  const pools = await world.user.reader.list(machinePools, { namespace: world.namespace });
  for (const { metadata } of pools.items) await api.request(poolPath(metadata.name), { method: 'DELETE' });
  for (const { metadata } of pools.items) await poolGone(metadata.name);
  const { items } = await world.user.reader.list(clusterMachines, { namespace: world.namespace });
  for (const one of items) await remove(one.metadata.name);
  for (const one of items) await gone(one.metadata.name);
  await world[Symbol.asyncDispose]();
  await api.close();
  await plane[Symbol.asyncDispose]();
});

const collection = (): string => `/apis/cluster.k8s.io/v1alpha1/namespaces/${world.namespace}/machines`;

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

async function apply(manifest: object): Promise<void> {
  const { status, body } = await api.request(`${collection()}?fieldValidation=Strict`, {
    method: 'POST',
    body: manifest,
  });
  expect({ status, body }).toMatchObject({ status: 201 });
}

/** The documented Machine in the namespace of the test, with changes. */
function documented(name?: string, value: object = {}): DocumentedMachine {
  return documentedMachine(world.namespace, { ...(name !== undefined && { name }), value });
}

/** Changes `spec.providerSpec.value` as a user does. */
async function edit(name: string, value: object): Promise<Answer> {
  return await api.request(`${collection()}/${name}`, {
    method: 'PATCH',
    contentType: 'application/merge-patch+json',
    body: { spec: { providerSpec: { value } } },
  });
}

async function remove(name: string): Promise<void> {
  await api.request(`${collection()}/${name}`, { method: 'DELETE' });
}

function read(name: string): Promise<ClusterMachine> {
  return world.user.reader.get(clusterMachines, { namespace: world.namespace, name });
}

/** Resolves with the provider status once it matches. */
async function shows(name: string, want: object): Promise<ProviderStatus> {
  let seen: ClusterMachine | undefined;
  return await eventually(
    async () => {
      seen = await read(name);
      const { providerStatus = {} } = seen.status ?? {};
      expect(providerStatus).toMatchObject(want);
      return providerStatus;
    },
    { ...PATIENCE, describe: () => `${name} to show ${JSON.stringify(want)}: ${JSON.stringify(seen?.status)}` },
  );
}

/** Resolves when the message of condition LCM has this in it, and it is not ready. */
async function complains(name: string, ...of: readonly string[]): Promise<void> {
  await eventually(
    async () => {
      const lcm = (await read(name)).status?.providerStatus?.conditions?.find(({ type }) => type === 'LCM');
      expect(lcm?.ready).toBe(false);
      for (const part of of) expect(lcm?.message).toContain(part);
    },
    { ...PATIENCE, describe: `${name} to complain of ${of.join(', ')}` },
  );
}

async function gone(name: string): Promise<void> {
  await eventually(() => world.isMissing(() => read(name)), { ...PATIENCE, describe: `${name} to be gone` });
}

async function madeClasses(): Promise<string[]> {
  const { items } = await world.user.reader.list(machineClasses, { namespace: world.namespace });
  return items.map(({ metadata }) => metadata.name).filter((name) => name.startsWith('mcc-'));
}

async function settings(data: object): Promise<void> {
  await applyManifests(api, [
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'example-cluster', namespace: world.namespace },
      data,
    },
  ]);
}

// promise: front-end-mirantis/state-words-follow-order
// promise: openstack/cloud/object-keeps-members-nobody
// promise: openstack/front-end/state-words-follow-provision
test('the documented Machine, applied unchanged, says what is missing, makes a server when it is there, and keeps what it does not know', async () => {
  const name = 'example-control-plane';
  const manifest = documented(undefined, { futureField: { b: 1, a: [null, 'x'] } });
  await apply(manifest);

  await complains(name, 'ConfigMap example-cluster: missing', 'Secret example-cluster: missing');
  expect(await madeClasses()).toEqual([]);
  const { userData } = secret().data;
  await applyManifests(api, [
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'example-cluster', namespace: world.namespace },
      data: { userData },
    },
  ]);
  await settings({ ...SETTINGS, region: '' });
  await complains(name, 'ConfigMap example-cluster, data.region: must be set');
  await settings(SETTINGS);

  const status = await shows(name, { status: 'Ready', maintenance: false, delete: false, upgradeIndex: 1 });
  const made = await world.read(name);
  expect(status).toMatchObject({
    apiVersion: 'openstackproviderconfig.k8s.io/v1alpha1',
    kind: 'OpenstackMachineProviderStatus',
    providerInstanceState: { id: made.spec.providerID?.split('/').at(-1), ready: true },
  });
  expect(status.conditions).toContainEqual({
    type: 'Kubelet',
    ready: true,
    message: "Kubelet's NodeReady condition is True",
  });
  expect(status.conditions).toContainEqual(expect.objectContaining({ type: 'LCM', ready: true }));
  expect(status.conditions?.map(({ type }) => type)).not.toContain('Swarm');
  expect(made.spec.class?.name).toMatch(/^mcc-[0-9a-f]{16}$/);
  const { metadata, ...rest } = (await read(name)) as ClusterMachine & { status?: unknown };
  expect(JSON.stringify(rest.spec)).toBe(JSON.stringify((await stored(manifest)).spec));
  expect(metadata.annotations?.['openstack-floating-ip-address']).toBe('172.16.246.182');
  const order = ['Provision', 'Uninitialized', 'Pending', 'Deploy', 'Ready'];
  const recorded = (states.get(name) ?? []).map((word) => order.indexOf(word));
  expect(recorded).toEqual(recorded.toSorted((a, b) => a - b));
});

/** What the API server would store of a manifest. */
async function stored(manifest: object): Promise<{ readonly spec: unknown }> {
  const body = { ...manifest, metadata: { name: 'never', namespace: world.namespace } };
  const answer = await api.request(`${collection()}?dryRun=All`, { method: 'POST', body });
  return answer.body as { spec: unknown };
}

test('labels, maintenance and the order of upgrades reach the machine, and its server stays', async () => {
  const name = 'example-control-plane';
  const { providerID } = (await world.read(name)).spec;

  await edit(name, { nodeLabels: [{ key: 'stacklight', value: 'enabled' }], maintenance: true, upgradeIndex: 7 });
  await shows(name, { status: 'Maintenance', maintenance: true, upgradeIndex: 7 });
  await eventually(async () => {
    const { labels = {} } = (await world.user.reader.get(nodes, { name })).metadata;
    expect(labels['stacklight']).toBe('enabled');
    expect(Object.keys(labels)).not.toContain('openstack-control-plane');
  }, PATIENCE);
  await edit(name, { maintenance: false, flavor: 'kaas.large' });
  await complains(name, 'spec.providerSpec.value.flavor: cannot be changed once the server exists');
  await edit(name, { flavor: 'kaas.small' });
  await shows(name, { status: 'Ready', maintenance: false });

  expect((await world.read(name)).spec.providerID).toBe(providerID);
});

test('what is wrong is named, makes nothing, and is made good by correcting it', async () => {
  await apply(documented('mirantis-bad', { flavor: '', bootFromVolume: { enabled: true }, deletionPolicy: 'careful' }));

  const at = 'spec.providerSpec.value';
  await complains(
    'mirantis-bad',
    `${at}.flavor: must be`,
    `${at}.bootFromVolume.volumeSize: must be set`,
    `${at}.deletionPolicy`,
  );
  expect(await world.isMissing(() => world.read('mirantis-bad'))).toBe(true);
  await edit('mirantis-bad', { flavor: UNKNOWN_FLAVOR, bootFromVolume: null, deletionPolicy: null });
  await complains('mirantis-bad', 'does not exist');
  await edit('mirantis-bad', { flavor: 'kaas.small' });
  await shows('mirantis-bad', { status: 'Ready' });

  await eventually(async () => expect(await madeClasses()).toHaveLength(2), PATIENCE);
});

// promise: openstack/front-end/weaker-counts-machine-deleted
test('of a machine that is being deleted the policy can only be weakened; the object goes with the machine', async () => {
  await apply(documented('mirantis-leaving'));
  await shows('mirantis-leaving', { status: 'Ready' });

  const hook = { metadata: { annotations: { 'pre-drain.hook.machine.sapcloud.io/test': 'true' } } };
  await patchOurs('mirantis-leaving', hook);
  await edit('mirantis-leaving', { delete: true });
  await shows('mirantis-leaving', { delete: true, prepareDeletionPhase: 'started' });
  await edit('mirantis-leaving', { delete: false });
  await eventually(async () => {
    expect((await read('mirantis-leaving')).status?.providerStatus).toMatchObject({ delete: false, status: 'Ready' });
    expect((await read('mirantis-leaving')).status?.providerStatus).not.toHaveProperty('prepareDeletionPhase');
  }, PATIENCE);
  await edit('mirantis-leaving', { delete: true });
  await shows('mirantis-leaving', { delete: true });
  expect(await edit('mirantis-leaving', { deletionPolicy: 'unsafe' })).toMatchObject({ status: 200 });

  await gone('mirantis-leaving');
  expect(await world.isMissing(() => world.read('mirantis-leaving'))).toBe(true);
});

async function patchOurs(name: string, body: object): Promise<void> {
  const url = `/apis/machine.sapcloud.io/v1alpha1/namespaces/${world.namespace}/machines/${name}`;
  const answer = await api.request(url, { method: 'PATCH', contentType: 'application/merge-patch+json', body });
  expect(answer).toMatchObject({ status: 200 });
}

// promise: openstack/front-end/deletion-policy-stronger-refused
test('equal machines share a class, those of other providers are left alone, and DELETE takes machine, server and class', async () => {
  const { metadata, ...other } = documented('mirantis-foreign', { delete: true, deletionPolicy: 'unsafe' });
  await apply({ ...other, metadata: { ...metadata, labels: { 'kaas.mirantis.com/provider': 'aws' } } });
  await apply(documented('mirantis-twin-1', { image: 'other', deletionPolicy: 'unsafe' }));
  await apply(documented('mirantis-twin-2', { image: 'other', deletionPolicy: 'unsafe' }));
  await shows('mirantis-twin-1', { status: 'Ready' });
  await shows('mirantis-twin-2', { status: 'Ready' });
  const [one, two] = [await world.read('mirantis-twin-1'), await world.read('mirantis-twin-2')];
  expect(one.spec.class?.name).toBe(two.spec.class?.name);

  await remove('mirantis-twin-1');
  await gone('mirantis-twin-1');
  expect(await madeClasses()).toContain(one.spec.class?.name);
  await remove('mirantis-twin-2');
  await gone('mirantis-twin-2');

  await eventually(async () => expect(await madeClasses()).not.toContain(one.spec.class?.name), PATIENCE);
  const named = (await world.user.reader.list(machines, { namespace: world.namespace })).items;
  expect(named.map((known) => known.metadata.name)).not.toContain('mirantis-foreign');
  const foreign = await read('mirantis-foreign');
  expect(foreign.status).toBeUndefined();
  expect(foreign.metadata.finalizers).toBeUndefined();
  const refused = await edit('mirantis-foreign', { deletionPolicy: 'graceful' });
  expect(refused.status).toBe(422);
  expect(JSON.stringify(refused.body)).toContain('can only be weakened');
  expect(await edit('mirantis-foreign', { deletionPolicy: 'forced' })).toMatchObject({ status: 200 });
});

test('a deletion with --cascade=orphan leaves the machine and its server, also while the garbage collector has not done its part yet', async () => {
  const name = 'mirantis-orphaned';
  await apply(documented(name));
  await shows(name, { status: 'Ready' });
  const { metadata, spec } = await world.read(name);

  await api.send('DELETE', `${collection()}/${name}`, { propagationPolicy: 'Orphan' });
  // As the garbage collector, which does not run here: first the reference, then its finalizer.
  await patchOurs(name, { metadata: { ownerReferences: null } });
  const { finalizers = [], resourceVersion } = (await read(name)).metadata;
  expect(finalizers).toContain('orphan');
  const others = finalizers.filter((one) => one !== 'orphan');
  await api.send('PATCH', `${collection()}/${name}`, { metadata: { finalizers: others, resourceVersion } });
  await gone(name);

  await world.touch(name);
  const left = await world.settled(name);
  expect(left).toMatchObject({ metadata: { uid: metadata.uid }, spec: { providerID: spec.providerID } });
  expect(left.metadata.deletionTimestamp).toBeUndefined();
  await world.delete(name);
  await world.gone(name);
});

const poolPath = (name = ''): string =>
  `/apis/kaas.mirantis.com/v1alpha1/namespaces/${world.namespace}/machinepools${name === '' ? '' : `/${name}`}`;

function readPool(name: string): Promise<MachinePool> {
  return world.user.reader.get(machinePools, { namespace: world.namespace, name });
}

async function poolGone(name: string): Promise<void> {
  await eventually(() => world.isMissing(() => readPool(name)), { ...PATIENCE, describe: `pool ${name} to be gone` });
}

async function editPool(name: string, spec: object): Promise<void> {
  const contentType = 'application/merge-patch+json';
  const answer = await api.request(poolPath(name), { method: 'PATCH', contentType, body: { spec } });
  expect(answer).toMatchObject({ status: 200 });
}

/** Resolves with the Machines that show those of a pool when there are so many and all of them match. */
async function members(pool: string, count: number, want: object): Promise<readonly ClusterMachine[]> {
  let seen: readonly ClusterMachine[] = [];
  return await eventually(
    async () => {
      const labelSelector = `kaas.mirantis.com/machinepool-name=${pool}`;
      seen = (await world.user.reader.list(clusterMachines, { namespace: world.namespace, labelSelector })).items;
      expect(seen).toHaveLength(count);
      for (const one of seen) expect(one).toMatchObject(want);
      return seen;
    },
    { ...PATIENCE, describe: () => `${count} of ${pool} to be ${JSON.stringify(want)}: ${JSON.stringify(seen)}` },
  );
}

const nodeLabel = async (name: string): Promise<string | undefined> =>
  (await world.user.reader.get(nodes, { name })).metadata.labels?.['stacklight'];

// promise: front-end-mirantis/edits-pool-reach-machines
// promise: openstack/front-end/pool-replicas-make-machines
// promise: openstack/maintenance/pool
test('a pool makes its Machines, scales from both sides, labels without and rolls with new servers, and takes all of it away', async () => {
  const name = 'mirantis-pool';
  const { metadata, spec } = documented(name, { deletionPolicy: 'unsafe', delete: null, upgradeIndex: 4 });
  const machineSpec = spec as { providerSpec: { value: { delete?: unknown } } };
  delete machineSpec.providerSpec.value.delete;
  const manifest = { apiVersion: 'kaas.mirantis.com/v1alpha1', kind: 'MachinePool', metadata, spec: { replicas: 1 } };
  const url = `${poolPath()}?fieldValidation=Strict`;
  expect(
    await api.request(url, { method: 'POST', body: { ...manifest, spec: { replicas: 1, machineSpec } } }),
  ).toMatchObject({ status: 201 });
  const ready = { status: { providerStatus: { status: 'Ready', upgradeIndex: 4 } } };
  const [first] = await members(name, 1, ready);
  if (first === undefined) throw new Error('there is no Machine');
  expect(first.spec).toEqual(machineSpec);
  expect(first.metadata.labels).toMatchObject({
    'cluster.sigs.k8s.io/cluster-name': 'example-cluster',
    'kaas.mirantis.com/machinepool-name': name,
  });

  // An autoscaler scales the MachineDeployment, and a user the pool.
  const scale = { metadata: { name, namespace: world.namespace }, spec: { replicas: 2 } };
  const deploymentUrl = `/apis/machine.sapcloud.io/v1alpha1/namespaces/${world.namespace}/machinedeployments/${name}/scale`;
  const contentType = 'application/merge-patch+json';
  expect(await api.request(deploymentUrl, { method: 'PATCH', contentType, body: scale })).toMatchObject({
    status: 200,
  });
  await members(name, 2, ready);
  await eventually(async () => expect((await readPool(name)).spec?.replicas).toBe(2), PATIENCE);
  await editPool(name, {
    replicas: 1,
    machineSpec: { providerSpec: { value: { nodeLabels: [{ key: 'stacklight', value: 'enabled' }] } } },
  });
  const [left] = await members(name, 1, ready);
  if (left === undefined) throw new Error('there is no Machine');
  await eventually(async () => expect(await nodeLabel(left.metadata.name)).toBe('enabled'), PATIENCE);

  // What a Machine of a pool is asked for itself outlives an edit of the pool, which makes a new server.
  await edit(left.metadata.name, { maintenance: true, flavor: 'of nobody' });
  await shows(left.metadata.name, { maintenance: true });
  expect((await read(left.metadata.name)).spec?.providerSpec?.value).toMatchObject({
    flavor: 'kaas.small',
    maintenance: true,
  });
  await editPool(name, { machineSpec: { providerSpec: { value: { flavor: 'kaas.large' } } } });
  await gone(left.metadata.name);
  await members(name, 1, { ...ready, spec: { providerSpec: { value: { flavor: 'kaas.large' } } } });
  await eventually(async () => {
    expect((await readPool(name)).status).toMatchObject({
      replicas: 1,
      readyReplicas: 1,
      updatedReplicas: 1,
      conditions: [{ type: 'LCM', ready: true }],
    });
  }, PATIENCE);

  await api.request(poolPath(name), { method: 'DELETE' });
  await poolGone(name);
  const deployment = (): Promise<unknown> =>
    world.user.reader.get(machineDeployments, { namespace: world.namespace, name });
  expect(await world.isMissing(deployment as never)).toBe(true);
  await members(name, 0, {});
});

test('a Cluster admits the maintenance of its Machines, and limits the labels of its Nodes', async () => {
  const clusters = `/apis/cluster.k8s.io/v1alpha1/namespaces/${world.namespace}/clusters`;
  const metadata = { name: 'example-cluster', labels: { 'kaas.mirantis.com/provider': 'openstack' } };
  const cluster = { apiVersion: 'cluster.k8s.io/v1alpha1', kind: 'Cluster', metadata };
  const contentType = 'application/merge-patch+json';
  const change = async (body: object, subresource = ''): Promise<void> => {
    const url = `${clusters}/example-cluster${subresource}`;
    expect(await api.request(url, { method: 'PATCH', contentType, body })).toMatchObject({ status: 200 });
  };
  const maintained = (maintenance: boolean): object => ({ spec: { providerSpec: { value: { maintenance } } } });
  const name = 'mirantis-clustered';
  await apply(documented(name, { deletionPolicy: 'unsafe', nodeLabels: [{ key: 'rack', value: '7' }] }));
  await shows(name, { status: 'Ready' });
  expect(await api.request(clusters, { method: 'POST', body: cluster })).toMatchObject({ status: 201 });

  await change(
    { status: { providerStatus: { releaseRef: { current: { allowedNodeLabels: [{ key: 'rack' }] } } } } },
    '/status',
  );
  await eventually(async () => {
    const { items } = await world.user.reader.list(nodeLabelPolicies, { namespace: world.namespace });
    expect(items.map((one) => one.spec.allowed)).toEqual([[{ key: 'rack' }]]);
  }, PATIENCE);
  await change(
    {
      status: {
        providerStatus: { releaseRef: { current: { allowedNodeLabels: [{ key: 'rack' }, { key: 'tier' }] } } },
      },
    },
    '/status',
  );
  await edit(name, { maintenance: true, nodeLabels: [{ key: 'forbidden', value: '7' }] });
  await complains(name, 'ClusterNotInMaintenance');
  await change(maintained(true));
  await shows(name, { maintenance: true });
  await complains(name, 'label forbidden (NodeLabelPolicy mcc-example-cluster does not allow this key)');
  await change(maintained(false));
  await edit(name, { maintenance: false });
  await shows(name, { maintenance: false });
  await eventually(async () => {
    const answer = await api.request(`${clusters}/example-cluster`);
    expect(answer.body).toMatchObject({ status: { providerStatus: { maintenance: false } } });
  }, PATIENCE);

  await change({ status: { providerStatus: { releaseRef: null } } }, '/status');
  await eventually(async () => {
    expect((await world.user.reader.list(nodeLabelPolicies, { namespace: world.namespace })).items).toEqual([]);
  }, PATIENCE);
  await api.request(`${clusters}/example-cluster`, { method: 'DELETE' });
});

test('what happens is told where an operator looks, and why', async () => {
  // Events are written a while after what they tell of.
  await eventually(async () => {
    const { items } = await world.user.reader.list(events, { namespace: world.namespace });
    const told = items
      .filter(({ involvedObject }) => involvedObject.apiVersion === 'cluster.k8s.io/v1alpha1')
      .map(({ involvedObject, reason = '', message = '' }) => `${involvedObject.name} ${reason} ${message}`);
    expect(told).toContainEqual(expect.stringMatching(/^mirantis-bad Problem .*flavor: must be/));
    expect(told).toContainEqual(expect.stringMatching(/^mirantis-clustered MaintenanceProgress InMaintenance/));
    expect(told).toContainEqual(expect.stringMatching(/^example-control-plane KubeletReady/));
  }, PATIENCE);
});

// promise: front-end-mirantis/front-end-uses-permission
test('uses every verb that its role grants, and is refused nothing', () => {
  const manifests = readManifests(path.join(import.meta.dirname, '../../deploy/rbac'));
  const role = manifests.find(({ kind, metadata }) => kind === 'Role' && metadata.name === 'machinist-mirantis');
  const rules = (role as unknown as { rules: { resources: string[]; verbs: string[] }[] }).rules;
  const granted = rules.flatMap(({ resources, verbs }) =>
    resources.flatMap((one) => verbs.map((verb) => `${verb} ${one}`)),
  );
  const { requests } = world.session;
  const used = new Set(requests.map(({ verb, resource }) => `${verb} ${resource}`));

  expect(granted.filter((one) => !used.has(one))).toEqual([]);
  expect(requests.filter(({ code }) => code === 401 || code === 403)).toEqual([]);
});
