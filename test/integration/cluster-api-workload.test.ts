import { readFileSync } from 'node:fs';
import path from 'node:path';

import { afterAll, beforeAll, expect, test } from '@jest/globals';

import type { Api } from '../../hack/control-plane/api.ts';
import { applyManifests, readManifests } from '../../hack/control-plane/apply.ts';
import { kubeconfig } from '../../hack/control-plane/kubeconfig.ts';
import { HAD_KUBECONFIG_ANNOTATION, NODE_CLUSTER_ANNOTATION } from '../../pkg/worlds/cluster-api/api/keys.ts';
import type { ClusterAPIMachine } from '../../pkg/worlds/cluster-api/api/machine.ts';
import type { KubeObject } from '../../pkg/apis/meta.ts';
import type { Event, Node } from '../../pkg/apis/wire.ts';
import { JumpingClock } from '../cloud/jumping-clock.ts';
import { InProcessManager } from '../cloud/manager.ts';
import { ContractSimulator, SIM_MACHINE } from '../contract-simulator.ts';
import { privateApiServer, type TestServer } from '../env/api-server.ts';
import { namespace, type TestNamespace, WITHOUT_KUBELETS } from '../env/environment.ts';
import { eventually } from '../expect/eventually.ts';
import { Program } from '../e2e/program.ts';
import { FaultProxy } from '../proxy/fault-proxy.ts';
import { grant } from './shipped-roles.ts';

/*
 * Two API servers: that of the manager, with Machines and Clusters, which is its target cluster too; and one that only kubeconfigs in Secrets
 * lead to, by a network that can fail.
 */

const PATIENCE = { timeoutMs: 120_000 };
const CONDITIONS = [
  { type: 'Ready', status: 'True' },
  ...['MemoryPressure', 'DiskPressure', 'PIDPressure'].map((type) => ({ type, status: 'False' })),
];

const stack = new AsyncDisposableStack();
let plane: TestServer;
/** The other one, where no kubelet keeps a Node Ready either. */
let other: TestServer;
let home: Api;
let away: Api;
let ns: TestNamespace;
let pods: TestNamespace;
let sim: ContractSimulator;
let proxy: FaultProxy;
let manager: InProcessManager;
const clock = new JumpingClock();

beforeAll(async () => {
  const { 'kube-controller-manager': withoutKubelets } = WITHOUT_KUBELETS.extraArguments;
  // Owners that tests name by hand are not those that are there: garbage collection would delete what they are said to own.
  const without = [...withoutKubelets, '--controllers=-garbage-collector-controller'];
  plane = await privateApiServer({ extraArguments: { 'kube-controller-manager': without } });
  stack.use(plane);
  home = plane.connection.api();
  stack.defer(() => home.close());
  other = await privateApiServer(WITHOUT_KUBELETS);
  stack.use(other);
  away = other.connection.api();
  stack.defer(() => away.close());
  await applyManifests(home, readManifests(path.join(import.meta.dirname, '../../crds/cluster-api')));
  ns = stack.use(await namespace(plane.connection));
  pods = stack.use(await namespace(other.connection));
  for (const role of ['control-machine-controller', 'target', 'cluster-api'] as const) await grant(home, role, ns.name);
  sim = new ContractSimulator(home, ns.name);
  await home.send('POST', `/api/v1/namespaces/${ns.name}/secrets`, {
    metadata: { name: 'given' },
    stringData: { value: '#cloud-config' },
  });
  await sim.install(SIM_MACHINE, 'v1beta2');
  proxy = stack.use(await FaultProxy.start(other.connection.url));
  manager = stack.use(
    await InProcessManager.start({
      kubeconfig: await plane.connection.kubeconfigFor({ user: 'machinist' }),
      namespace: ns.name,
      clock,
      flags: {
        controllers: 'cluster-api',
        'machine-safety-apiserver-statuscheck-period': '9s',
        // A probe may take a third of it, and takes long on a busy host.
        'machine-safety-apiserver-statuscheck-timeout': '9s',
      },
    }),
  );
});

afterAll(async () => {
  await stack.disposeAsync();
});

const secretPath = (cluster: string): string => `/api/v1/namespaces/${ns.name}/secrets/${cluster}-kubeconfig`;

/** A kubeconfig that leads to the other API server. */
function wayAway(url = proxy.url): string {
  const { ca, adminToken } = other.connection;
  return kubeconfig({ url, ca, identity: { token: adminToken } });
}

async function storeKubeconfig(cluster: string, value: string): Promise<void> {
  const body = { metadata: { name: `${cluster}-kubeconfig` }, stringData: { value } };
  const { status } = await home.request(secretPath(cluster));
  if (status === 200) await home.send('PATCH', secretPath(cluster), { stringData: { value } });
  else await home.send('POST', path.dirname(secretPath(cluster)), body);
}

const machines = (name = ''): string => `/apis/cluster.x-k8s.io/v1beta2/namespaces/${ns.name}/machines/${name}`;

async function createCluster(name: string, value?: string): Promise<void> {
  if (value !== undefined) await storeKubeconfig(name, value);
  await home.send('POST', `/apis/cluster.x-k8s.io/v1beta2/namespaces/${ns.name}/clusters`, {
    apiVersion: 'cluster.x-k8s.io/v1beta2',
    kind: 'Cluster',
    metadata: { name },
    spec: {},
  });
}

const clusterPath = (name: string): string => `/apis/cluster.x-k8s.io/v1beta2/namespaces/${ns.name}/clusters/${name}`;
const unique = (name: string): string => `${ns.name}-${name}`;

/** A Machine whose infrastructure is there. */
async function createMachine(
  cluster: string,
  name: string,
  metadata: object = {},
  spec: object = {},
  provisioned = true,
): Promise<void> {
  await sim.create(SIM_MACHINE, name, { spec: { providerID: `sim://${unique(name)}` } });
  await sim.report(SIM_MACHINE, name, { initialization: { provisioned } });
  await home.send('POST', machines().slice(0, -1), {
    apiVersion: 'cluster.x-k8s.io/v1beta2',
    kind: 'Machine',
    metadata: { name, labels: { 'node.cluster.x-k8s.io/x': 'y' }, ...metadata },
    spec: {
      clusterName: cluster,
      bootstrap: { dataSecretName: 'given' },
      infrastructureRef: { ...SIM_MACHINE, name },
      ...spec,
    },
  });
}

async function createNode(
  api: Api,
  name: string,
  spec: object = { providerID: `sim://${unique(name)}` },
): Promise<void> {
  const node = unique(name);
  await api.send('POST', '/api/v1/nodes', { metadata: { name: node }, spec });
  await api.send('PATCH', `/api/v1/nodes/${node}/status`, { status: { conditions: CONDITIONS } });
}

const nodeOf = (api: Api, name: string): Promise<Node | undefined> => api.find<Node>(`/api/v1/nodes/${unique(name)}`);

async function shows(name: string, look: (machine: ClusterAPIMachine | undefined) => unknown): Promise<void> {
  let seen: ClusterAPIMachine | undefined;
  await eventually(
    async () => {
      seen = await home.find<ClusterAPIMachine>(machines(name));
      await look(seen);
    },
    { ...PATIENCE, describe: () => `${name}: ${JSON.stringify(seen)}` },
  );
}

async function says(name: string, type: string, status: string, reason: string, part = ''): Promise<void> {
  await shows(name, (machine) => {
    const found = machine?.status?.conditions?.find((one) => one.type === type);
    expect(found).toMatchObject({ status, reason });
    expect(found?.message).toContain(part);
  });
}

/** Whether the manager is connected to a workload cluster. */
async function isConnectedTo(cluster: string): Promise<boolean> {
  const metrics = await (await fetch(`${manager.url}/metrics`)).text();
  return metrics.includes(`machinist_cluster_outage{cluster="${ns.name}/${cluster}"}`);
}

const machineGone = (name: string): Promise<void> => shows(name, (machine) => expect(machine).toBeUndefined());
const takeAway = (name: string): Promise<unknown> => home.send('DELETE', machines(name));

// promise: cluster-api/nodes/kubeconfig-cluster-nodes-found
test('Nodes of a Cluster with a kubeconfig are those of its cluster: found, shown, drained and deleted there, and nowhere else', async () => {
  await createCluster('own', wayAway());
  await createMachine('own', 'own-1');
  await shows('own-1', (machine) => expect(machine?.status?.phase).toBe('Provisioned'));
  // One of the same name and provider ID in the target cluster of the manager is none of its business.
  await createNode(home, 'own-1');
  await createNode(away, 'own-1');
  await says('own-1', 'Available', 'True', 'Available');

  const { uid } = (await away.find<KubeObject>('/api/v1/namespaces/kube-system'))?.metadata ?? {};
  await shows('own-1', (machine) =>
    expect(machine?.metadata.annotations).toMatchObject({ [NODE_CLUSTER_ANNOTATION]: uid }),
  );
  expect((await nodeOf(away, 'own-1'))?.metadata).toMatchObject({
    labels: { 'node.cluster.x-k8s.io/x': 'y' },
    annotations: { 'cluster.x-k8s.io/machine': 'own-1' },
  });
  const pod = `/api/v1/namespaces/${pods.name}/pods/leaves`;
  await away.send('POST', path.dirname(pod), {
    metadata: { name: 'leaves', finalizers: ['sim/holds'] },
    spec: { nodeName: unique('own-1'), terminationGracePeriodSeconds: 0, containers: [{ name: 'c', image: 'i' }] },
  });
  await takeAway('own-1');
  await says('own-1', 'Deleting', 'True', 'DrainingNode');
  await eventually(async () => (await away.find<KubeObject>(pod))?.metadata.deletionTimestamp !== undefined, {
    ...PATIENCE,
    describe: 'the pod to be evicted',
  });
  expect((await sim.read(SIM_MACHINE, 'own-1'))?.metadata.deletionTimestamp).toBeUndefined();
  await away.send('PATCH', pod, { metadata: { finalizers: null } });
  await machineGone('own-1');
  expect(await nodeOf(away, 'own-1')).toBeUndefined();
  const decoy = await nodeOf(home, 'own-1');
  expect([decoy?.spec?.unschedulable, decoy?.metadata.annotations?.['cluster.x-k8s.io/machine']]).toEqual([
    undefined,
    undefined,
  ]);
  await eventually(() => proxy.open === 0, { ...PATIENCE, describe: 'the connection to be given up' });
});

// promise: machines-cluster-api/cluster-answer-keeps-machines
// promise: cluster-api/nodes/cluster-answer-holds-own
test('a cluster that does not answer holds its own Machines, and nobody else', async () => {
  await createCluster('silent', wayAway());
  await createCluster('here');
  await createNode(away, 'silent-1');
  await createNode(home, 'here-1');
  await createMachine('silent', 'silent-1');
  await createMachine('here', 'here-1');
  for (const name of ['silent-1', 'here-1']) await says(name, 'Available', 'True', 'Available');

  proxy.set('refuse');
  const outage = (): Promise<number> => manager.metric('machinist_cluster_outage', `cluster="${ns.name}/silent"`);
  await eventually(async () => (await outage()) === 1, { ...PATIENCE, describe: 'the outage' });
  expect(await manager.metric('mcm_machine_controller_frozen')).toBe(0);
  await takeAway('silent-1');
  await says('silent-1', 'Deleting', 'True', 'DrainingNode', 'the API server in Secret silent-kubeconfig');
  await says('silent-1', 'NodeReady', 'True', 'NodeReady');
  await takeAway('here-1');
  await machineGone('here-1');
  expect(await nodeOf(home, 'here-1')).toBeUndefined();
  // Two minutes later nobody knows how the Node is; that is all.
  clock.aheadMs = 120_000;
  await home.send('PATCH', machines('silent-1'), { metadata: { labels: { 'node.cluster.x-k8s.io/x': 'z' } } });
  await says('silent-1', 'NodeReady', 'Unknown', 'ConnectionDown', 'the API server in Secret silent-kubeconfig');
  await says('silent-1', 'Deleting', 'True', 'DrainingNode', 'the API server in Secret silent-kubeconfig');
  expect((await sim.read(SIM_MACHINE, 'silent-1'))?.metadata.deletionTimestamp).toBeUndefined();

  proxy.set('up');
  await machineGone('silent-1');
  expect(await nodeOf(away, 'silent-1')).toBeUndefined();
});

test('a Machine that was never provisioned does not wait for a cluster that does not answer, which its control plane may bring back', async () => {
  await createCluster('never', wayAway());
  await createMachine('never', 'never-1', {}, {}, false);
  await createMachine('never', 'never-2');
  await shows('never-2', (machine) => expect(machine?.status?.phase).toBe('Provisioned'));
  proxy.set('refuse');
  const outage = (): Promise<number> => manager.metric('machinist_cluster_outage', `cluster="${ns.name}/never"`);
  await eventually(async () => (await outage()) === 1, { ...PATIENCE, describe: 'the outage' });
  for (const name of ['never-1', 'never-2']) {
    await takeAway(name);
    await says(name, 'Deleting', 'True', 'DrainingNode', 'the API server in Secret never-kubeconfig');
  }

  clock.aheadMs += 120_000;
  for (const name of ['never-1', 'never-2'])
    await home.send('PATCH', machines(name), { metadata: { labels: { 'node.cluster.x-k8s.io/x': 'z' } } });
  await machineGone('never-1');
  expect(await sim.read(SIM_MACHINE, 'never-1')).toBeUndefined();
  await says('never-2', 'Deleting', 'True', 'DrainingNode', 'the API server in Secret never-kubeconfig');
  expect((await sim.read(SIM_MACHINE, 'never-2'))?.metadata.deletionTimestamp).toBeUndefined();

  proxy.set('up');
  await machineGone('never-2');
});

test('a Machine that was never provisioned waits for a kubeconfig of no use, whose cluster may be well, and two minutes for one that is missing', async () => {
  await createCluster('useless', 'clusters: [');
  await createMachine('useless', 'useless-1', {}, {}, false);
  await says('useless-1', 'Paused', 'False', 'NotPaused');
  await takeAway('useless-1');
  await says('useless-1', 'Deleting', 'True', 'DrainingNode', 'Secret useless-kubeconfig is not usable');
  const paused = (value: string | null) => ({ metadata: { annotations: { 'cluster.x-k8s.io/paused': value } } });
  await home.send('PATCH', machines('useless-1'), paused(''));
  await says('useless-1', 'Paused', 'True', 'Paused');
  clock.aheadMs += 120_000;
  await home.send('PATCH', machines('useless-1'), paused(null));
  await says('useless-1', 'Paused', 'False', 'NotPaused');
  await says('useless-1', 'Deleting', 'True', 'DrainingNode', 'Secret useless-kubeconfig is not usable');

  await home.send('DELETE', secretPath('useless'));
  await says('useless-1', 'Deleting', 'True', 'DrainingNode', 'Secret useless-kubeconfig is missing');
  expect((await sim.read(SIM_MACHINE, 'useless-1'))?.metadata.deletionTimestamp).toBeUndefined();
  clock.aheadMs += 120_000;
  await home.send('PATCH', machines('useless-1'), { metadata: { labels: { 'node.cluster.x-k8s.io/x': 'z' } } });
  await machineGone('useless-1');
  expect(await sim.read(SIM_MACHINE, 'useless-1')).toBeUndefined();
});

async function told(name: string): Promise<string> {
  const selector = encodeURIComponent(`involvedObject.kind=Machine,involvedObject.name=${name}`);
  const at = `/api/v1/namespaces/${ns.name}/events?fieldSelector=${selector}`;
  const { items } = await home.send<{ items: Event[] }>('GET', at);
  return items.map(({ type, reason, message }) => `${type} ${reason} ${message}`).join('\n');
}

// promise: cluster-api/deletion/timeouts-cluster-gone
// promise: cluster-api/deletion/control-plane-goes-node
test('when the API server is gone, timeouts end a deletion; a Machine whose VM is gone, or that was the last of the control plane, needs none', async () => {
  const isControlPlane = { labels: { 'cluster.x-k8s.io/control-plane': '' } };
  const timeouts = { deletion: { nodeDrainTimeoutSeconds: 3, nodeVolumeDetachTimeoutSeconds: 3 } };
  const half = { deletion: { nodeDrainTimeoutSeconds: 3, nodeVolumeDetachTimeoutSeconds: 0 } };
  await createCluster('dies', wayAway());
  await createCluster('ends', wayAway());
  const all = ['dies-limited', 'dies-waits', 'dies-going', 'ends-worker', 'ends-control'];
  for (const name of all) await createNode(away, name);
  await createMachine('dies', 'dies-limited', {}, timeouts);
  await createMachine('dies', 'dies-waits', {}, half);
  await createMachine('dies', 'dies-going');
  await createMachine('ends', 'ends-worker');
  await createMachine('ends', 'ends-control', isControlPlane);
  for (const name of all) await says(name, 'Available', 'True', 'Available');
  await sim.set(SIM_MACHINE, 'dies-going', { metadata: { finalizers: ['sim/holds'] } });
  await takeAway('dies-going');
  await says('dies-going', 'Deleting', 'True', 'WaitingForInfrastructureDeletion');

  proxy.set('refuse');
  for (const cluster of ['dies', 'ends']) {
    const outage = (): Promise<number> => manager.metric('machinist_cluster_outage', `cluster="${ns.name}/${cluster}"`);
    await eventually(async () => (await outage()) === 1, { ...PATIENCE, describe: `the outage of ${cluster}` });
  }
  for (const name of ['dies-limited', 'dies-waits', 'ends-worker']) await takeAway(name);
  await says('ends-worker', 'Deleting', 'True', 'DrainingNode', 'nodeDrainTimeoutSeconds');
  await sim.set(SIM_MACHINE, 'dies-going', { metadata: { finalizers: null } });
  await machineGone('dies-going');
  await machineGone('dies-limited');
  expect(await sim.read(SIM_MACHINE, 'dies-limited')).toBeUndefined();
  await eventually(async () => expect(await told('dies-limited')).toContain('Warning FailedDeleteNode Node '), {
    ...PATIENCE,
    describe: 'the Event about the Node that is left',
  });
  await says('dies-waits', 'Deleting', 'True', 'WaitingForVolumeDetach', 'nodeVolumeDetachTimeoutSeconds');
  expect((await sim.read(SIM_MACHINE, 'dies-waits'))?.metadata.deletionTimestamp).toBeUndefined();

  // Its last member takes the API server along: nobody can drain any more.
  expect((await sim.read(SIM_MACHINE, 'ends-worker'))?.metadata.deletionTimestamp).toBeUndefined();
  await takeAway('ends-control');
  for (const name of ['ends-control', 'ends-worker']) await machineGone(name);

  proxy.set('up');
  await machineGone('dies-waits');
  for (const name of ['dies-going', 'dies-limited', 'ends-control', 'ends-worker'])
    await away.send('DELETE', nodePath(name));
});

// promise: cluster-api/nodes/kubeconfig-run-nothing-read
test('a kubeconfig may be of no use, be mended, be replaced, and be gone: nothing is deleted by what was known before', async () => {
  const runs = wayAway().replace(
    / {6}token: .*/,
    '      exec: { apiVersion: client.authentication.k8s.io/v1, command: sh }',
  );
  await createCluster('turns', runs);
  await createNode(away, 'turns-1');
  await createMachine('turns', 'turns-1');
  await says('turns-1', 'NodeReady', 'Unknown', 'ConnectionDown', 'exec is not allowed');
  await storeKubeconfig('turns', wayAway().replace(/certificate-authority-data: .*/, 'insecure-skip-tls-verify: true'));
  await says('turns-1', 'NodeReady', 'Unknown', 'ConnectionDown', 'insecure-skip-tls-verify is not allowed');
  await storeKubeconfig('turns', wayAway());
  await says('turns-1', 'Available', 'True', 'Available');

  await storeKubeconfig('turns', wayAway(other.connection.url));
  await eventually(() => proxy.open === 0, { ...PATIENCE, describe: 'the old connection to be closed' });
  await home.send('PATCH', machines('turns-1'), { metadata: { labels: { 'node.cluster.x-k8s.io/x': 'z' } } });
  await eventually(
    async () =>
      expect((await nodeOf(away, 'turns-1'))?.metadata.labels).toMatchObject({ 'node.cluster.x-k8s.io/x': 'z' }),
    { ...PATIENCE, describe: 'the Node to show the label' },
  );

  await home.send('DELETE', secretPath('turns'));
  await eventually(async () => !(await isConnectedTo('turns')), PATIENCE);
  await takeAway('turns-1');
  await says('turns-1', 'Deleting', 'True', 'DrainingNode', 'Secret turns-kubeconfig is missing');
  // That of the manager is another cluster.
  await storeKubeconfig('turns', readFileSync(plane.connection.kubeconfig, 'utf8'));
  await says('turns-1', 'Deleting', 'True', 'DrainingNode', 'refers to another cluster');
  expect((await sim.read(SIM_MACHINE, 'turns-1'))?.metadata.deletionTimestamp).toBeUndefined();
  await storeKubeconfig('turns', wayAway());
  await machineGone('turns-1');
  expect(await nodeOf(away, 'turns-1')).toBeUndefined();
});

// promise: cluster-api/nodes/kubeconfig-comes-late-leads
test('a kubeconfig that comes after the Node was found elsewhere takes nothing away from it', async () => {
  await createCluster('late');
  await createNode(home, 'late-1');
  await createMachine('late', 'late-1');
  await says('late-1', 'Available', 'True', 'Available');

  await storeKubeconfig('late', wayAway());
  await says('late-1', 'NodeReady', 'Unknown', 'ConnectionDown', 'was found in another cluster');
  await takeAway('late-1');
  await says('late-1', 'Deleting', 'True', 'DrainingNode', 'correct the Secret, or delete it');
  expect(await nodeOf(home, 'late-1')).toBeDefined();
  await home.send('DELETE', secretPath('late'));
  await says('late-1', 'Deleting', 'True', 'DrainingNode', 'Secret late-kubeconfig is missing');
  expect(await nodeOf(home, 'late-1')).toBeDefined();
  await home.send('PATCH', clusterPath('late'), { metadata: { annotations: { [HAD_KUBECONFIG_ANNOTATION]: null } } });
  await machineGone('late-1');
  expect(await nodeOf(home, 'late-1')).toBeUndefined();
});

const nodePath = (name: string): string => `/api/v1/nodes/${unique(name)}`;
const podOn = (name: string): string => `/api/v1/namespaces/${ns.name}/pods/on-${name}`;

/** A Pod on that Node, which does not go before it is let go. */
async function createPod(name: string): Promise<void> {
  await home.send('POST', path.dirname(podOn(name)), {
    metadata: { name: `on-${name}`, finalizers: ['sim/holds'] },
    spec: { nodeName: unique(name), terminationGracePeriodSeconds: 0, containers: [{ name: 'c', image: 'i' }] },
  });
}

/** Resolves when the Pod on that Node has been evicted, and lets it go. */
async function evicted(machine: string, name: string): Promise<void> {
  const isGoing = async () => (await home.find<KubeObject>(podOn(name)))?.metadata.deletionTimestamp !== undefined;
  await eventually(isGoing, { ...PATIENCE, describe: `the pod on ${name} to be evicted` });
  await says(machine, 'Deleting', 'True', 'DrainingNode');
  expect((await sim.read(SIM_MACHINE, machine))?.metadata.deletionTimestamp).toBeUndefined();
  await home.send('PATCH', podOn(name), { metadata: { finalizers: null } });
}

// promise: machines-cluster-api/registers-anew-drain
test('a Node that registers anew after its drain is drained once more before its machine goes', async () => {
  const name = 'twice-1';
  const attachments = '/apis/storage.k8s.io/v1/volumeattachments';
  const attachment = `${attachments}/${unique(name)}`;
  await createCluster('twice');
  await createNode(home, name);
  await createMachine('twice', name);
  await says(name, 'Available', 'True', 'Available');
  await home.send('POST', attachments, {
    metadata: { name: unique(name) },
    spec: { attacher: 'sim', nodeName: unique(name), source: { persistentVolumeName: `pv-${unique(name)}` } },
  });
  await home.send('PATCH', `${attachment}/status`, { status: { attached: true } });
  await takeAway(name);
  await says(name, 'Deleting', 'True', 'WaitingForVolumeDetach');

  // A pass between the two would find that there is no Node to drain any more.
  const paused = (value: string | null) => ({ metadata: { annotations: { 'cluster.x-k8s.io/paused': value } } });
  await home.send('PATCH', machines(name), paused(''));
  await says(name, 'Paused', 'True', 'Paused');
  await home.send('DELETE', nodePath(name));
  await createNode(home, name);
  await createPod(name);
  await home.send('PATCH', machines(name), paused(null));
  await evicted(name, name);
  await says(name, 'Deleting', 'True', 'WaitingForVolumeDetach');
  expect((await nodeOf(home, name))?.spec).toMatchObject({ unschedulable: true });
  await home.send('DELETE', attachment);
  await machineGone(name);
  expect(await nodeOf(home, name)).toBeUndefined();
});

// promise: machines-cluster-api/node-registers-anew-go
test('a Node that registers anew, without its provider ID or under another name, is still drained; of two nothing is destroyed', async () => {
  const drains = async (machine: string, name: string): Promise<void> => {
    await evicted(machine, name);
    await machineGone(machine);
    expect(await nodeOf(home, name)).toBeUndefined();
  };
  await createCluster('anew');
  for (const name of ['anew-1', 'anew-2']) {
    await createNode(home, name);
    await createMachine('anew', name);
    await says(name, 'Available', 'True', 'Available');
    await home.send('DELETE', nodePath(name));
    await says(name, 'NodeReady', 'False', 'NodeDeleted');
  }

  await createNode(home, 'anew-1', {});
  await says('anew-1', 'NodeReady', 'Unknown', 'InspectionFailed', 're-registered without a provider ID');
  await createPod('anew-1');
  await takeAway('anew-1');
  await drains('anew-1', 'anew-1');

  const spec = { providerID: `sim://${unique('anew-2')}` };
  await createNode(home, 'anew-3', spec);
  await shows('anew-2', (machine) => expect(machine?.status?.nodeRef).toEqual({ name: unique('anew-3') }));
  for (const name of ['anew-4', 'anew-5']) await createNode(home, name, spec);
  await home.send('DELETE', nodePath('anew-3'));
  await says('anew-2', 'NodeReady', 'Unknown', 'InspectionFailed', 'have its provider ID');
  await createPod('anew-4');
  await takeAway('anew-2');
  await says('anew-2', 'Deleting', 'True', 'DrainingNode', 'Waiting until its Node is known:');
  expect((await sim.read(SIM_MACHINE, 'anew-2'))?.metadata.deletionTimestamp).toBeUndefined();
  await home.send('DELETE', nodePath('anew-5'));
  await drains('anew-2', 'anew-4');
});

test('a Machine whose Node was never found waits for a Secret that is gone: its Node may have joined where that led to', async () => {
  await createCluster('lost', wayAway());
  await createMachine('lost', 'lost-1');
  await says('lost-1', 'NodeReady', 'Unknown', 'InspectionFailed');
  expect(await isConnectedTo('lost')).toBe(true);
  await home.send('DELETE', secretPath('lost'));
  // As long as the manager does not know of that, the cluster is known to have no such Node.
  await eventually(async () => !(await isConnectedTo('lost')), PATIENCE);
  await takeAway('lost-1');
  await says('lost-1', 'Deleting', 'True', 'DrainingNode', 'Secret lost-kubeconfig is missing');
  expect((await sim.read(SIM_MACHINE, 'lost-1'))?.metadata.deletionTimestamp).toBeUndefined();
  await storeKubeconfig('lost', wayAway());
  await machineGone('lost-1');
});

// promise: cluster-api/nodes/taint-older-revision-comes
test('the Node of an older revision is tainted for as long as it is one, by what its owners say', async () => {
  const name = 'older-1';
  const revision = (n: number): object => ({ annotations: { 'machinedeployment.clusters.x-k8s.io/revision': `${n}` } });
  const owned = (kind: string, by: string) => ({
    ownerReferences: [{ apiVersion: 'cluster.x-k8s.io/v1beta2', kind, name: by, uid: `uid-of-${by}` }],
  });
  const isTainted = async (want: boolean): Promise<void> => {
    const look = async (): Promise<void> => {
      const node = await nodeOf(home, name);
      const taints = node?.spec?.taints?.map(({ key, effect }) => `${key}:${effect}`) ?? [];
      expect(node?.metadata.annotations).toMatchObject({ 'cluster.x-k8s.io/owner-kind': 'MachineSet' });
      expect(taints.includes('node.cluster.x-k8s.io/outdated-revision:PreferNoSchedule')).toBe(want);
    };
    await eventually(look, { ...PATIENCE, describe: `the taint: ${want}` });
  };
  for (const kind of [SET, DEPLOYMENT]) await sim.install(kind, 'v1beta2');
  await createCluster('older');
  await createNode(home, name);
  const owners = owned('MachineSet', 's').ownerReferences.map((one) => ({ ...one, controller: true }));
  await createMachine('older', name, { ownerReferences: owners });
  await sim.create(DEPLOYMENT, 'd', { metadata: revision(1) });
  await sim.create(SET, 's', { metadata: { ...owned('MachineDeployment', 'd'), ...revision(1) } });
  await isTainted(false);
  await sim.set(DEPLOYMENT, 'd', { metadata: revision(2) });
  await isTainted(true);
  await sim.set(SET, 's', { metadata: revision(2) });
  await isTainted(false);
  await sim.set(DEPLOYMENT, 'd', { metadata: revision(3) });
  await isTainted(true);
  await sim.delete(DEPLOYMENT, 'd');
  await isTainted(false);
  await takeAway(name);
  await machineGone(name);
});

const SET = { apiGroup: 'cluster.x-k8s.io', kind: 'MachineSet' } as const;
const DEPLOYMENT = { apiGroup: 'cluster.x-k8s.io', kind: 'MachineDeployment' } as const;

// promise: cluster-api/contracts-providers/command-explains-machine
test('machinist describe explains what a Machine waits for, while it comes up and while it goes', async () => {
  const name = 'explained';
  const hook = 'pre-drain.delete.hook.machine.cluster.x-k8s.io/backup';
  const look = async (kind = 'cluster-api-machine', which = name): Promise<string> => {
    const access = ['-n', ns.name, '--kubeconfig', plane.connection.kubeconfig];
    const { code, stdout, stderr } = await Program.run('machinist', ['describe', kind, which, ...access]);
    expect([code, stderr]).toEqual([0, '']);
    return stdout;
  };
  await createCluster('told');
  await createMachine('told', name, { annotations: { [hook]: '' } });
  await says(name, 'NodeReady', 'Unknown', 'InspectionFailed');
  expect(await look()).toMatch(
    /^Name: +explained\n[^]*\nCluster: +told\n[^]*\nReason: +InspectionFailed\n[^]*\nInfrastructure: +SimMachine explained \(ready, Ready\)\n/,
  );
  await createNode(home, name);
  await says(name, 'Available', 'True', 'Available');
  expect(await look('cluster-api-cluster', 'told')).toMatch(
    new RegExp(
      `^Name: +told\\n[^]*\\nReason: +Provisioned\\n[^]*\\nNodes: +in the target cluster of the manager\\nMachines:\\n[^]*\\n  ${name} +Running +True +${unique(name)}\\n`,
    ),
  );
  await takeAway(name);
  await says(name, 'Deleting', 'True', 'WaitingForPreDrainHook', hook);
  expect(await look()).toMatch(
    new RegExp(
      `\\nPhase: +Deleting\\nReason: +WaitingForPreDrainHook\\n[^]*\\nNode: +${unique(name)}\\nHooks: +${hook}\\n`,
    ),
  );
  await home.send('PATCH', machines(name), { metadata: { annotations: { [hook]: null } } });
  await machineGone(name);
}, 180_000);
