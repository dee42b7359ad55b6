import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { afterAll, beforeAll, expect, test } from '@jest/globals';

import type { Api } from '../../hack/control-plane/api.ts';
import { applyManifests, type Manifest } from '../../hack/control-plane/apply.ts';
import type { ControlPlane } from '../../hack/control-plane/control-plane.ts';
import { CLUSTER_API_GROUP } from '../../pkg/worlds/cluster-api/api/keys.ts';
import type { ClusterAPIMachine } from '../../pkg/worlds/cluster-api/api/machine.ts';
import { API_VERSION } from '../../pkg/apis/machine/v1alpha1/group.ts';
import type { KubeObject } from '../../pkg/apis/meta.ts';
import { SystemClock } from '../../pkg/base/clock/system-clock.ts';
import { ClusterAPIDriver } from '../../pkg/worlds/cluster-api/driver/driver.ts';
import { apiVersionOf } from '../../pkg/kube/client/resource.ts';
import { clusterAPIMachines } from '../../pkg/worlds/cluster-api/api/resources.ts';
import { silentLogger } from '../../pkg/base/log/logger.ts';
import { CLUSTER_API_KINDS } from '../../pkg/worlds/cluster-api/controllers/kinds.ts';
import { attachVolume, detachVolume } from '../attachments.ts';
import { ConversionWebhook } from '../cluster-api/conversion.ts';
import { definitions } from '../cluster-api/contestant.ts';
import { definitionsIn } from '../cluster-api/dialect.ts';
import { ContractSimulator, SIM_CONFIG, SIM_MACHINE, templateOf } from '../contract-simulator.ts';
import { DriverProcess } from '../drivers/driver-process.ts';
import { callOf, classOf, requestOf } from '../drivers/requests.ts';
import { privateControlPlane, WITHOUT_KUBELETS } from '../env/environment.ts';
import { eventually } from '../expect/eventually.ts';
import { SimProvider } from '../sim-provider.ts';
import { KubeSession } from './kube-session.ts';
import { OperatorSession } from './operator-session.ts';

/** That of requests. */
const NAMESPACE = 'shoot';
const PATIENCE = { timeoutMs: 120_000 };
const OLDER = `${CLUSTER_API_GROUP}/v1beta1`;
const NEWER = `${CLUSTER_API_GROUP}/v1beta2`;
const providerSpec = {
  clusterName: 'c',
  infrastructureRef: { ...templateOf(SIM_MACHINE), name: 'small' },
  bootstrap: { configRef: { ...templateOf(SIM_CONFIG), name: 'w' } },
};

let plane: ControlPlane;
let api: Api;
let sim: ContractSimulator;
let user: KubeSession;
let session: OperatorSession;
let driver: DriverProcess;
let provider: SimProvider;
let directory: string;

beforeAll(async () => {
  // To the garbage collector, which finds owners by the version in the reference, a version that is no longer served has no objects: it
  // deletes what they own (kubernetes/kubernetes#98471; within seconds in one of eight tries). Here it is the manager that is looked at.
  const [withoutNodeLifecycle] = WITHOUT_KUBELETS.extraArguments['kube-controller-manager'];
  const controllers = [withoutNodeLifecycle, '--controllers=-garbage-collector-controller'];
  plane = await privateControlPlane({ extraArguments: { 'kube-controller-manager': controllers } });
  api = plane.connection.api();
  user = new KubeSession(plane.connection);
  sim = new ContractSimulator(api, NAMESPACE);
  directory = mkdtempSync(path.join(tmpdir(), 'cluster-api-versions-'));
  // As a release of Cluster API that knows no other version serves them.
  await applyManifests(api, await definitionsIn('v1beta1'));
  await api.send('POST', '/api/v1/namespaces', { metadata: { name: NAMESPACE } });
  for (const kind of [SIM_MACHINE, SIM_CONFIG]) {
    await sim.install(kind, 'v1beta1');
    await sim.install(templateOf(kind), 'v1beta1');
  }
  await sim.create(templateOf(SIM_MACHINE), 'small', { spec: { template: { spec: { size: 1 } } } });
  await sim.create(templateOf(SIM_CONFIG), 'w', { spec: { template: { spec: { users: [] } } } });
  await post(theirs('clusters'), { apiVersion: OLDER, kind: 'Cluster', metadata: { name: 'c' }, spec: {} });
  const socket = path.join(directory, 'driver.sock');
  driver = await DriverProcess.start('cluster-api-driver', [
    `--address=unix://${socket}`,
    `--state-directory=${path.join(directory, 'state')}`,
    `--kubeconfig=${plane.connection.kubeconfig}`,
  ]);
  session = await OperatorSession.start({
    connection: plane.connection,
    namespace: NAMESPACE,
    controllers: '*,cluster-api',
    flags: { driver: `cluster-api=unix://${socket}` },
  });
  provider = await SimProvider.start(user, NAMESPACE, SIM_MACHINE, 'v1beta1');
  provider.hasNodes = true;
});

afterAll(async () => {
  await session[Symbol.asyncDispose]();
  await driver.end('SIGKILL');
  await user[Symbol.asyncDispose]();
  await api.close();
  await plane.stop();
  rmSync(directory, { recursive: true });
});

const theirs = (plural: string, version = OLDER): string => `/apis/${version}/namespaces/${NAMESPACE}/${plural}`;
const ours = (plural: string): string => `/apis/${API_VERSION}/namespaces/${NAMESPACE}/${plural}`;
const core = (plural: string): string => `/api/v1/namespaces/${NAMESPACE}/${plural}`;

async function post(collection: string, object: object): Promise<void> {
  await api.send('POST', `${collection}?fieldValidation=Strict`, object);
}

async function find<T extends KubeObject = KubeObject>(at: string): Promise<T | undefined> {
  return await api.find(at);
}

/** An object as it stands there, once it looks like this. */
async function shows(at: string, want: object): Promise<KubeObject> {
  let seen: KubeObject | undefined;
  return await eventually(
    async () => {
      seen = await find(at);
      expect(seen).toMatchObject(want);
      return seen as KubeObject;
    },
    { ...PATIENCE, describe: () => `${at}: ${JSON.stringify(seen)}` },
  );
}

async function gone(...at: readonly string[]): Promise<void> {
  let left: readonly string[] = [];
  const look = async (): Promise<boolean> => {
    const all = await Promise.all(at.map(async (one) => ((await find(one)) === undefined ? [] : [one])));
    left = all.flat();
    return left.length === 0;
  };
  await eventually(look, { ...PATIENCE, describe: () => `to be gone: ${left.join(', ')}` });
}

/** A Pod on a Node that no eviction takes away. */
async function protectedPod(name: string, nodeName: string): Promise<void> {
  await post(core('pods'), {
    metadata: { name, labels: { app: name } },
    spec: { nodeName, terminationGracePeriodSeconds: 0, containers: [{ name: 'c', image: 'i' }] },
  });
  const status = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
  await api.send('PATCH', `${core('pods')}/${name}/status`, { status });
  await post(`/apis/policy/v1/namespaces/${NAMESPACE}/poddisruptionbudgets`, {
    metadata: { name },
    spec: { minAvailable: 1, selector: { matchLabels: { app: name } } },
  });
}

const condition = (type: string, status: string): unknown => expect.objectContaining({ type, status });

// promise: cluster-api/versions/v1beta1-served-written-machine
test('where only v1beta1 is served a machine of the driver lives and goes, and all of it is written as that version has it', async () => {
  const name = 'whole';
  await post(core('secrets'), { metadata: { name: 'user-data' }, stringData: { userData: '#cloud-config' } });
  await post(ours('machineclasses'), {
    apiVersion: API_VERSION,
    kind: 'MachineClass',
    metadata: { name: 'small' },
    provider: 'cluster-api',
    providerSpec,
    secretRef: { name: 'user-data', namespace: NAMESPACE },
  });
  await post(ours('machines'), {
    apiVersion: API_VERSION,
    kind: 'Machine',
    metadata: { name },
    spec: { class: { kind: 'MachineClass', name: 'small' }, drainTimeout: '3s' },
  });

  const place = { namespace: NAMESPACE, name };
  const made = await shows(`${theirs('machines')}/${name}`, {
    apiVersion: OLDER,
    spec: {
      clusterName: 'c',
      infrastructureRef: { apiVersion: `${SIM_MACHINE.apiGroup}/v1alpha7`, kind: 'SimMachine', ...place },
      bootstrap: { configRef: { apiVersion: `${SIM_CONFIG.apiGroup}/v1alpha7`, kind: 'SimConfig', ...place } },
    },
  });
  await eventually(() => sim.report(SIM_CONFIG, name, { ready: true, dataSecretName: 'made' }), PATIENCE);
  await shows(`${ours('machines')}/${name}`, { status: { currentStatus: { phase: 'Running' } } });
  const { uid: clusterUID } = (await find(`${theirs('clusters')}/c`))?.metadata ?? {};
  await shows(`${theirs('machines')}/${name}`, {
    metadata: { ownerReferences: [{ apiVersion: OLDER, kind: 'Cluster', name: 'c', uid: clusterUID }] },
    spec: { bootstrap: { dataSecretName: 'made' }, providerID: expect.stringContaining('sim://') },
    status: {
      bootstrapReady: true,
      infrastructureReady: true,
      nodeRef: { apiVersion: 'v1', kind: 'Node', name },
      phase: 'Running',
      addresses: [{ type: 'InternalIP', address: '10.0.0.7' }],
      conditions: expect.arrayContaining([condition('InfrastructureReady', 'True'), condition('Ready', 'True')]),
      v1beta2: { conditions: expect.arrayContaining([condition('Ready', 'True'), condition('Available', 'True')]) },
    },
  });
  const machine = { apiVersion: OLDER, kind: 'Machine', name, uid: made.metadata.uid };
  for (const kind of [SIM_MACHINE, SIM_CONFIG]) {
    expect((await sim.read(kind, name))?.metadata.ownerReferences).toMatchObject([{ ...machine, controller: true }]);
  }
  await shows(`${theirs('clusters')}/c`, {
    status: {
      infrastructureReady: true,
      controlPlaneReady: true,
      conditions: expect.arrayContaining([condition('InfrastructureReady', 'True')]),
      v1beta2: { conditions: expect.arrayContaining([condition('ControlPlaneInitialized', 'True')]) },
    },
  });

  await protectedPod('guarded', name);
  const begunMs = thisSecondMs();
  await api.send('DELETE', `${ours('machines')}/${name}`);
  await gone(
    `${ours('machines')}/${name}`,
    `${theirs('machines')}/${name}`,
    `/api/v1/nodes/${name}`,
    ...['simmachines', 'simconfigs'].map((plural) => {
      const { apiGroup } = plural === 'simmachines' ? SIM_MACHINE : SIM_CONFIG;
      return `/apis/${apiGroup}/v1alpha7/namespaces/${NAMESPACE}/${plural}/${name}`;
    }),
  );
  // Nobody but the timeout lets go of the Pod.
  expect(Date.now() - begunMs).toBeGreaterThan(3_000);
  expect(provider.instancesOf(name)).toBe(1);
});

/** When this second began, in milliseconds: timeouts count from times of the API, which are whole seconds. */
function thisSecondMs(): number {
  return Math.floor(Date.now() / 1_000) * 1_000;
}

/** A Machine of v1beta1, as a user of that version writes it, with its infrastructure; resolves when it runs. */
async function userMachine(name: string, spec: object = {}): Promise<void> {
  const place = { name, namespace: NAMESPACE };
  await sim.create(SIM_MACHINE, name);
  await post(theirs('machines'), {
    apiVersion: OLDER,
    kind: 'Machine',
    metadata: { name },
    spec: {
      clusterName: 'c',
      bootstrap: { dataSecretName: 'given' },
      infrastructureRef: { apiVersion: `${SIM_MACHINE.apiGroup}/v1alpha7`, kind: 'SimMachine', ...place },
      ...spec,
    },
  });
  await shows(`${theirs('machines')}/${name}`, { status: { phase: 'Running' } });
}

// promise: cluster-api/versions/timeouts-deletions-durations
test('timeouts of a Machine of v1beta1 are durations, and end what a budget or a volume holds', async () => {
  const name = 'timed';
  await userMachine(name, { nodeDrainTimeout: '5s', nodeVolumeDetachTimeout: '1500ms', nodeDeletionTimeout: '10s' });
  await protectedPod('stays', name);
  await attachVolume(api, 'stuck', name);

  const begunMs = thisSecondMs();
  await api.send('DELETE', `${theirs('machines')}/${name}`);
  await shows(`${theirs('machines')}/${name}`, {
    status: {
      deletion: { nodeDrainStartTime: expect.any(String) },
      v1beta2: { conditions: expect.arrayContaining([condition('Deleting', 'True')]) },
    },
  });
  expect((await sim.read(SIM_MACHINE, name))?.metadata.deletionTimestamp).toBeUndefined();
  await gone(`${theirs('machines')}/${name}`, `/api/v1/nodes/${name}`);
  expect(await sim.read(SIM_MACHINE, name)).toBeUndefined();
  expect(Date.now() - begunMs).toBeGreaterThan(6_000);
  await detachVolume(api, 'stuck');
});

/** A driver in this process, of which every answer can be looked at. */
function driverHere(kube: KubeSession): ClusterAPIDriver {
  const { reader, writer, transport } = kube;
  return new ClusterAPIDriver({
    reader,
    writer,
    servedAs: (resource) => apiVersionOf(transport.served.current(resource)),
    clock: new SystemClock(),
    log: silentLogger,
    close: () => Promise.resolve(),
  });
}

interface Definition extends Manifest {
  readonly spec: { readonly group: string; readonly versions: readonly { readonly name: string }[] };
}

/** Serves these versions of Cluster API's kinds, stored in the newest, from now on. */
async function serve(webhook: ConversionWebhook, ...versions: readonly string[]): Promise<void> {
  const all = (await definitions()) as readonly Definition[];
  for (const { metadata, spec } of all.filter((one) => one.spec.group === CLUSTER_API_GROUP)) {
    const listed = spec.versions.filter(({ name }) => name === 'v1beta1' || name === 'v1beta2');
    await api.send('PATCH', `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${metadata.name}`, {
      spec: {
        conversion: webhook.conversion,
        versions: listed.map((one) => ({
          ...one,
          served: versions.includes(one.name),
          storage: one.name === 'v1beta2',
        })),
      },
    });
  }
}

// promise: machines-cluster-api/machine-cluster-api-taken
// promise: cluster-api/versions/upgrade-cluster-api-manager
test('Cluster API is upgraded while the manager runs: no Machine is taken for gone meanwhile, and the new version is written after', async () => {
  const name = 'moved';
  await userMachine(name);
  const here = driverHere(user);
  const own = requestOf('kept', classOf('kept', providerSpec));
  await expect(here.createMachine(own, callOf())).rejects.toMatchObject({ code: 'Uninitialized' });
  await eventually(() => here.getMachineStatus(own, callOf()), PATIENCE);
  const before = await sim.read(SIM_MACHINE, name);
  expect(before?.metadata.ownerReferences).toMatchObject([{ apiVersion: OLDER, kind: 'Machine' }]);
  await using webhook = await ConversionWebhook.start();

  // Neither version is served: nobody can tell what there is.
  await serve(webhook);
  await eventually(async () => (await api.request(`${theirs('machines')}/${name}`)).status === 404, PATIENCE);
  const refused = (): number =>
    session.requests.filter(({ resource, verb, code }) => resource === 'machines' && verb !== 'get' && code === 404)
      .length;
  const sofar = refused();
  await sim.set(SIM_MACHINE, name, { metadata: { labels: { touched: 'yes' } } });
  await eventually(() => Promise.resolve(refused() > sofar), { ...PATIENCE, describe: 'the manager to be refused' });
  for (const ask of [
    () => here.getMachineStatus(own, callOf()),
    () => here.deleteMachine(own, callOf()),
    () => here.listMachines(own, callOf()),
  ]) {
    await expect(ask()).rejects.toMatchObject({
      code: 'Unavailable',
      detail: expect.stringContaining('machines.cluster.x-k8s.io is not served in version v1beta2 or v1beta1'),
    });
  }
  expect(
    session.caches
      .of(CLUSTER_API_KINDS)
      .clusterAPIMachines.list()
      .map(({ metadata }) => metadata.name),
  ).toContain(name);
  expect((await sim.read(SIM_MACHINE, name))?.metadata).toMatchObject({ uid: before?.metadata.uid });

  await serve(webhook, 'v1beta2');
  const owner = { apiVersion: NEWER, kind: 'Machine', name };
  await eventually(
    async () => expect((await sim.read(SIM_MACHINE, name))?.metadata.ownerReferences).toMatchObject([owner]),
    { ...PATIENCE, describe: 'the new version to be written' },
  );
  await shows(`${theirs('machines', NEWER)}/${name}`, {
    metadata: { ownerReferences: [{ apiVersion: NEWER, kind: 'Cluster', name: 'c' }] },
  });
  const moved = (await find<ClusterAPIMachine>(`${theirs('machines', NEWER)}/${name}`))?.status;
  expect(moved).toMatchObject({
    phase: 'Running',
    nodeRef: { name },
    initialization: { infrastructureProvisioned: true },
  });
  expect((await sim.read(SIM_MACHINE, name))?.metadata).toMatchObject({ uid: before?.metadata.uid });
  expect(await user.reader.get(clusterAPIMachines, { namespace: NAMESPACE, name: 'kept' })).toBeDefined();

  await api.send('DELETE', `${theirs('machines', NEWER)}/${name}`);
  await gone(`${theirs('machines', NEWER)}/${name}`, `/api/v1/nodes/${name}`);
  expect(await sim.read(SIM_MACHINE, name)).toBeUndefined();
  await eventually(async () => {
    const ended = await here.deleteMachine(own, callOf()).catch((err: unknown) => err);
    expect(ended).toMatchObject({ code: 'NotFound' });
  }, PATIENCE);
});

test('the provider had no trouble', () => {
  expect(provider.failures).toEqual([]);
});
