import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import type { Api } from '../../hack/control-plane/api.ts';
import { applyManifests } from '../../hack/control-plane/apply.ts';
import { resolveProgram } from '../../hack/control-plane/binaries.ts';
import type { ControlPlane } from '../../hack/control-plane/control-plane.ts';
import { CLONED_FROM_NAME_ANNOTATION } from '../../pkg/worlds/cluster-api/api/keys.ts';
import type { ClusterAPICluster } from '../../pkg/worlds/cluster-api/api/cluster.ts';
import type { ClusterAPIMachine } from '../../pkg/worlds/cluster-api/api/machine.ts';
import { API_VERSION } from '../../pkg/apis/machine/v1alpha1/group.ts';
import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import type { KubeObject, OwnerReference } from '../../pkg/apis/meta.ts';
import type { Node } from '../../pkg/apis/wire.ts';
import { attachVolume, detachVolume } from '../attachments.ts';
import { Audit, type AuditedRequest } from '../cloud/audit.ts';
import { normalised } from '../cluster-api/comparison.ts';
import { definitions, startContestant } from '../cluster-api/contestant.ts';
import { DriverProcess } from '../drivers/driver-process.ts';
import { namespace, privateControlPlane, type TestNamespace, WITHOUT_KUBELETS } from '../env/environment.ts';
import { eventually } from '../expect/eventually.ts';
import { OperatorSession } from './operator-session.ts';
import { grant } from './shipped-roles.ts';

/*
 * Cluster API's own reconcilers, as they are published, beside ours: its provider in memory makes machines for both, and the same objects go
 * through its core and through ours, on one API server, in a namespace each. The provider makes those of a MachineDeployment too.
 */

/** Built before any test's time begins. */
await resolveProgram('cluster-api');

const PATIENCE = { timeoutMs: 120_000 };
/** Both, by what the names of their objects begin with. */
const SIDES = ['ours', 'core'] as const;
type Side = (typeof SIDES)[number];
const HEALTHY = [
  { type: 'Ready', status: 'True' },
  ...['MemoryPressure', 'DiskPressure', 'PIDPressure'].map((type) => ({ type, status: 'False' })),
];
const PRE_DRAIN = 'pre-drain.delete.hook.machine.cluster.x-k8s.io/backup';
const PRE_TERMINATE = 'pre-terminate.delete.hook.machine.cluster.x-k8s.io/report';

const stack = new AsyncDisposableStack();
let audit: Audit;
let plane: ControlPlane;
let api: Api;
const namespaces = new Map<Side, TestNamespace>();

beforeAll(async () => {
  audit = stack.use(new Audit());
  plane = await privateControlPlane({
    extraArguments: {
      'kube-apiserver': audit.arguments,
      ...WITHOUT_KUBELETS.extraArguments,
    },
  });
  stack.use(plane);
  const { connection } = plane;
  api = connection.api();
  stack.defer(() => api.close());
  await applyManifests(api, await definitions());
  for (const side of SIDES) namespaces.set(side, stack.use(await namespace(connection)));
  const roles = ['control-machine-controller', 'target', 'cluster-api'] as const;
  for (const role of roles) await grant(api, role, namespaceOf('ours'));
  await both(async (side) => {
    await api.send('POST', `/api/v1/namespaces/${namespaceOf(side)}/secrets`, {
      metadata: { name: 'given' },
      stringData: { value: '#cloud-config' },
    });
  });
  stack.use(await startContestant(connection, { coreIn: namespaceOf('core') }));
  stack.use(
    await OperatorSession.start({
      connection,
      subject: { user: 'machinist' },
      namespace: namespaceOf('ours'),
      controllers: 'cluster-api',
    }),
  );
});

afterAll(async () => {
  await stack.disposeAsync();
});

const CORE = 'cluster.x-k8s.io/v1beta2';
const INFRASTRUCTURE = 'infrastructure.cluster.x-k8s.io/v1beta2';

function namespaceOf(side: Side): string {
  return namespaces.get(side)?.name ?? '';
}

/** Whose an object is, by its name. */
function sideOf(name: string): Side {
  return name.startsWith('core-') ? 'core' : 'ours';
}

function pathOf(version: string, plural: string, name: string): string {
  return `/apis/${version}/namespaces/${namespaceOf(sideOf(name))}/${plural}/${name}`;
}

interface NewObject {
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly annotations?: object;
    readonly labels?: object;
    readonly ownerReferences?: readonly object[];
  };
  readonly [member: string]: unknown;
}

async function create(version: string, plural: string, object: NewObject): Promise<void> {
  const collection = path.dirname(pathOf(version, plural, object.metadata.name));
  await api.send('POST', `${collection}?fieldValidation=Strict`, { ...object, apiVersion: version });
}

async function find<T extends KubeObject>(at: string): Promise<T | undefined> {
  return await api.find(at);
}

const machine = (name: string) => find<ClusterAPIMachine>(pathOf(CORE, 'machines', name));
const devMachine = (name: string) => find<KubeObject>(pathOf(INFRASTRUCTURE, 'devmachines', name));
const readNode = (name: string) => find<Node>(`/api/v1/nodes/${name}`);
const edit = (name: string, change: object) => api.send('PATCH', pathOf(CORE, 'machines', name), change);
const both = async <T>(act: (side: Side) => Promise<T>): Promise<readonly T[]> => await Promise.all(SIDES.map(act));

async function shows(name: string, look: (one: ClusterAPIMachine | undefined) => unknown): Promise<void> {
  let seen: ClusterAPIMachine | undefined;
  await eventually(
    async () => {
      seen = await machine(name);
      await look(seen);
    },
    { ...PATIENCE, describe: () => `${name}: ${JSON.stringify({ ...seen, metadata: seen?.metadata.annotations })}` },
  );
}

async function says(name: string, type: string, status: string, reason: string): Promise<void> {
  await shows(name, (one) => {
    expect(one?.status?.conditions?.find((condition) => condition.type === type)).toMatchObject({ status, reason });
  });
}

/** A Cluster of that name with its infrastructure in memory, and access to its Nodes, which are those of this API server. */
async function createCluster(name: string): Promise<void> {
  const secretLabels = { 'cluster.x-k8s.io/cluster-name': name };
  await api.send('POST', `/api/v1/namespaces/${namespaceOf(sideOf(name))}/secrets`, {
    metadata: { name: `${name}-kubeconfig`, labels: secretLabels },
    type: 'cluster.x-k8s.io/secret',
    stringData: { value: readFileSync(plane.kubeconfig, 'utf8') },
  });
  await create(INFRASTRUCTURE, 'devclusters', {
    kind: 'DevCluster',
    // Its provider falls over one without annotations.
    metadata: { name, annotations: { 'example.com/made-for': 'tests' } },
    spec: { backend: { inMemory: {} } },
  });
  await create(CORE, 'clusters', {
    kind: 'Cluster',
    metadata: { name },
    spec: {
      clusterNetwork: { pods: { cidrBlocks: ['10.1.0.0/16'] } },
      infrastructureRef: { apiGroup: 'infrastructure.cluster.x-k8s.io', kind: 'DevCluster', name },
    },
  });
}

/** A Machine that the provider in memory makes, and once it has made it, its Node. */
async function createMachine(
  cluster: string,
  name: string,
  more: Partial<KubeObject['metadata']> = {},
  spec: object = {},
): Promise<void> {
  await create(INFRASTRUCTURE, 'devmachines', {
    kind: 'DevMachine',
    metadata: { name },
    spec: { backend: { inMemory: {} } },
  });
  await create(CORE, 'machines', {
    kind: 'Machine',
    metadata: { name, ...more },
    spec: {
      clusterName: cluster,
      version: 'v1.34.0',
      bootstrap: { dataSecretName: 'given' },
      infrastructureRef: { apiGroup: 'infrastructure.cluster.x-k8s.io', kind: 'DevMachine', name },
      // Its webhook, which does not run here, has written that before the core sees a Machine.
      ...(sideOf(name) === 'core' && { deletion: { nodeDeletionTimeoutSeconds: 10 } }),
      ...spec,
    },
  });
  await shows(name, (one) => expect(one?.spec?.providerID).toBe(`in-memory://${name}`));
  await join(name);
}

/** The Node of a machine that the provider has made, as its kubelet would. */
async function join(name: string): Promise<void> {
  await api.send('POST', '/api/v1/nodes', {
    metadata: { name, labels: { 'node-role.kubernetes.io/hand': '' } },
    spec: {
      providerID: `in-memory://${name}`,
      taints: [{ key: 'node.cluster.x-k8s.io/uninitialized', effect: 'NoSchedule' }],
    },
  });
  await api.send('PATCH', `/api/v1/nodes/${name}/status`, { status: { conditions: HEALTHY } });
}

const isGone = async (look: () => Promise<unknown>, what: string): Promise<void> => {
  await eventually(async () => (await look()) === undefined, { ...PATIENCE, describe: `${what} to be gone` });
};

// promise: cluster-api/contracts-providers/machines-real-provider-become
test('machines of a real provider become Running and go, with all that belongs to them', async () => {
  await createCluster('alone');
  const names = ['alone-1', 'alone-2', 'alone-3'];
  await Promise.all(names.map((name) => createMachine('alone', name)));
  for (const name of names) {
    await says(name, 'Available', 'True', 'Available');
    expect((await machine(name))?.status?.phase).toBe('Running');
  }

  await api.send('DELETE', pathOf(CORE, 'clusters', 'alone'));
  await isGone(() => find(pathOf(CORE, 'clusters', 'alone')), 'Cluster alone');
  expect(await Promise.all(names.map(machine))).toEqual([undefined, undefined, undefined]);
  expect(await Promise.all(names.map(devMachine))).toEqual([undefined, undefined, undefined]);
  expect(await find(pathOf(INFRASTRUCTURE, 'devclusters', 'alone'))).toBeUndefined();
});

/** A Machine with all that shows who has looked after it, as it stands on either side. */
async function picture(side: Side, of = 'worker'): Promise<unknown> {
  const name = `${side}-${of}`;
  const objects = await Promise.all([machine(name), devMachine(name), readNode(name)]);
  return pictureOf(side, objects);
}

/** Conditions of a Cluster that the core alone writes, of what makes Machines. */
const OF_THE_CORE = [
  'ControlPlaneMachinesReady',
  'ControlPlaneMachinesUpToDate',
  'Remediating',
  'RollingOut',
  'ScalingDown',
  'ScalingUp',
  'WorkerMachinesReady',
  'WorkerMachinesUpToDate',
  'WorkersAvailable',
];
/** Those that say something else of a Cluster that names no control plane. */
const OF_CONTROL_PLANE = ['Available', 'ControlPlaneAvailable'];

/** A Cluster, without the differences that the page for users lists. */
async function clusterPicture(side: Side): Promise<unknown> {
  const name = `${side}-c`;
  const cluster = await find<ClusterAPICluster>(pathOf(CORE, 'clusters', name));
  const devCluster = await find<KubeObject>(pathOf(INFRASTRUCTURE, 'devclusters', name));
  // Each has a port of its own.
  const port = cluster?.spec?.controlPlaneEndpoint?.port;
  const [seen, infrastructure] = JSON.parse(
    JSON.stringify(pictureOf(side, [cluster, devCluster])).replaceAll(`"port":${port}`, '"port":0'),
  ) as [ClusterAPICluster & { status: Record<string, unknown> }, unknown];
  const { conditions = [], initialization, controlPlane: _controlPlane, workers: _workers, ...status } = seen.status;
  const compared = conditions.filter(({ type }) => ![...OF_THE_CORE, ...OF_CONTROL_PLANE].includes(type));
  const reached = { ...(initialization as object), controlPlaneInitialized: undefined };
  return [{ ...seen, status: { ...status, conditions: compared, initialization: reached } }, infrastructure];
}

function pictureOf(side: Side, objects: readonly (KubeObject | undefined)[]): unknown {
  const own = { [side]: 'name', [namespaceOf(side)]: 'namespace' };
  return objects.map((one) => (one === undefined ? undefined : normalised(one, own)));
}

async function expectSame(when: string, of = 'worker'): Promise<void> {
  await eventually(
    async () => {
      const [ours, core] = await both((side) => picture(side, of));
      expect({ when, is: ours }).toEqual({ when, is: core });
    },
    { ...PATIENCE, describe: `the same ${when}` },
  );
}

async function expectSameCluster(when: string): Promise<void> {
  await eventually(
    async () => {
      const [ours, core] = await both(clusterPicture);
      expect({ when, is: ours }).toEqual({ when, is: core });
    },
    { ...PATIENCE, describe: `the same ${when}` },
  );
}

// promise: cluster-api/beside/same-machine-through-cluster
test('what becomes of a Machine is the same as with the core of Cluster API', async () => {
  await both(async (side) => {
    await createCluster(`${side}-c`);
    await createMachine(`${side}-c`, `${side}-control`, { labels: { 'cluster.x-k8s.io/control-plane': '' } });
    await says(`${side}-control`, 'NodeReady', 'True', 'NodeReady');
    await createMachine(
      `${side}-c`,
      `${side}-worker`,
      {
        labels: { 'node-role.kubernetes.io/x': '', 'node.cluster.x-k8s.io/y': 'z', other: 'w' },
        annotations: { 'node.cluster.x-k8s.io/note': 'n', [PRE_DRAIN]: '', [PRE_TERMINATE]: '' },
      },
      {
        taints: [
          { key: 'always', effect: 'NoSchedule', propagation: 'Always' },
          { key: 'first', value: 'v', effect: 'PreferNoSchedule', propagation: 'OnInitialization' },
        ],
      },
    );
    await says(`${side}-worker`, 'Available', 'True', 'Available');
  });
  await expectSame('after creation');
  await expectSameCluster('with its Machines');

  await both(async (side) => {
    await edit(`${side}-worker`, {
      metadata: {
        labels: { 'node-role.kubernetes.io/x': null, 'node.cluster.x-k8s.io/y': 'q' },
        annotations: { 'node.cluster.x-k8s.io/note': null },
      },
      spec: { taints: [{ key: 'other', effect: 'NoSchedule', propagation: 'Always' }] },
    });
    await nodeShows(`${side}-worker`, ({ metadata }) =>
      expect(metadata.labels).toMatchObject({ 'node.cluster.x-k8s.io/y': 'q' }),
    );
  });
  await expectSame('after new labels and taints');

  await both(async (side) => {
    await edit(`${side}-worker`, { metadata: { annotations: { 'cluster.x-k8s.io/paused': '' } } });
    await says(`${side}-worker`, 'Paused', 'True', 'Paused');
    await edit(`${side}-worker`, { metadata: { labels: { 'node.cluster.x-k8s.io/y': 'paused' } } });
  });
  await expectSame('while it is paused');
  await both(async (side) => {
    await edit(`${side}-worker`, { metadata: { annotations: { 'cluster.x-k8s.io/paused': null } } });
    await nodeShows(`${side}-worker`, ({ metadata }) =>
      expect(metadata.labels).toMatchObject({ 'node.cluster.x-k8s.io/y': 'paused' }),
    );
  });
  await expectSame('after the pause');

  await both(async (side) => {
    await createPod(`${side}-stays`, `${side}-worker`, { 'cluster.x-k8s.io/drain': 'skip' });
    await createPod(`${side}-leaves`, `${side}-worker`);
    await attachVolume(api, `${side}-volume`, `${side}-worker`);
    await api.send('DELETE', pathOf(CORE, 'machines', `${side}-worker`));
    await says(`${side}-worker`, 'Deleting', 'True', 'WaitingForPreDrainHook');
  });
  await expectSame('while a hook holds its drain');
  await both(async (side) => {
    await edit(`${side}-worker`, { metadata: { annotations: { [PRE_DRAIN]: null } } });
    await isBeingDeleted(`${side}-leaves`);
    await says(`${side}-worker`, 'Deleting', 'True', 'DrainingNode');
  });
  await expectSame('while it is drained');
  await both(async (side) => {
    await api.send('PATCH', podPath(`${side}-leaves`), { metadata: { finalizers: null } });
    await says(`${side}-worker`, 'Deleting', 'True', 'WaitingForVolumeDetach');
  });
  await expectSame('while its volumes are attached');
  await both(async (side) => {
    await detachVolume(api, `${side}-volume`);
    await says(`${side}-worker`, 'Deleting', 'True', 'WaitingForPreTerminateHook');
  });
  await expectSame('while a hook holds its infrastructure');
  await both(async (side) => {
    await edit(`${side}-worker`, { metadata: { annotations: { [PRE_TERMINATE]: null } } });
    await isGone(() => machine(`${side}-worker`), `${side}-worker`);
  });
  await expectSame('after it is gone');
  expect(await picture('ours')).toEqual([undefined, undefined, undefined]);
  expect((await find<KubeObject>(podPath('ours-stays')))?.metadata.deletionTimestamp).toBeUndefined();
});

// promise: cluster-api/beside/nothing-fought-over-core
test('beside the core nobody writes about what the other looks after, and nobody at all once all is well', async () => {
  const statuses = audit.requests().filter(({ resource }) => /^(machines|clusters)\/status$/.test(resource));
  const writers = (side: Side): ReadonlySet<boolean> =>
    new Set(statuses.filter(({ name }) => name.startsWith(`${side}-`)).map(({ user }) => user === 'machinist'));
  expect([writers('ours'), writers('core')]).toEqual([new Set([true]), new Set([false])]);

  await both(async (side) => {
    await createMachine(`${side}-c`, `${side}-idle`);
    await says(`${side}-idle`, 'Available', 'True', 'Available');
  });
  const since = audit.requests().length;
  // Whoever works has got on meanwhile.
  await both(async (side) => {
    await createMachine(`${side}-c`, `${side}-witness`);
    await says(`${side}-witness`, 'Available', 'True', 'Available');
    await edit(`${side}-witness`, { metadata: { labels: { 'node.cluster.x-k8s.io/y': 'z' } } });
    await nodeShows(`${side}-witness`, ({ metadata }) =>
      expect(metadata.labels).toMatchObject({ 'node.cluster.x-k8s.io/y': 'z' }),
    );
  });
  const later = audit.requests().slice(since);
  expect(later.filter(({ name }) => name.endsWith('-witness')).length).toBeGreaterThan(10);
  const isOurBusiness = ({ name, user }: AuditedRequest): boolean => name === 'ours-idle' || user === 'machinist';
  expect(later.filter((one) => one.name.endsWith('-idle') && isOurBusiness(one))).toEqual([]);
});

// promise: cluster-api/beside/same-machine-through-cluster
test('what becomes of a Machine whose Node is dead or gone, or which is the last of its control plane, is the same as with the core', async () => {
  await both(async (side) => {
    await createMachine(`${side}-c`, `${side}-dead`);
    await createMachine(`${side}-c`, `${side}-hooked`, { annotations: { [PRE_DRAIN]: '' } });
    for (const name of ['dead', 'hooked']) await says(`${side}-${name}`, 'Available', 'True', 'Available');
    await createPod(`${side}-stuck`, `${side}-dead`);
    const conditions = [{ type: 'Ready', status: 'Unknown' }];
    await api.send('PATCH', `/api/v1/nodes/${side}-dead/status`, { status: { conditions } });
    await says(`${side}-dead`, 'NodeReady', 'Unknown', 'NodeReadyUnknown');
  });
  await expectSame('while its Node is dead', 'dead');
  await both(async (side) => {
    await api.send('DELETE', pathOf(CORE, 'machines', `${side}-dead`));
    await isGone(() => machine(`${side}-dead`), `${side}-dead`);
    await api.send('PATCH', podPath(`${side}-stuck`), { metadata: { finalizers: null } });
  });

  await both(async (side) => {
    await api.send('DELETE', `/api/v1/nodes/${side}-hooked`);
    await says(`${side}-hooked`, 'NodeReady', 'False', 'NodeDeleted');
    await api.send('DELETE', pathOf(CORE, 'machines', `${side}-hooked`));
    await says(`${side}-hooked`, 'Deleting', 'True', 'WaitingForPreDrainHook');
  });
  await both(async (side) => {
    expect((await devMachine(`${side}-hooked`))?.metadata.deletionTimestamp).toBeUndefined();
    await edit(`${side}-hooked`, { metadata: { annotations: { [PRE_DRAIN]: null } } });
    await isGone(() => machine(`${side}-hooked`), `${side}-hooked`);
  });

  await both(async (side) => {
    await api.send('DELETE', pathOf(CORE, 'machines', `${side}-control`));
    await isGone(() => machine(`${side}-control`), `${side}-control`);
  });
  await expectSame('after the last of the control plane', 'control');
  expect((await readNode('ours-control'))?.spec?.unschedulable).toBeUndefined();
});

// promise: cluster-api/beside/same-machine-through-cluster
// promise: cluster-api/nodes/up-to-date-template
test('what a Machine of a MachineDeployment of Cluster API says of its template is the same as with the core', async () => {
  const wanted = (version: string) => ({ template: { spec: { version } } });
  const revised = (revision: string) => ({ 'machinedeployment.clusters.x-k8s.io/revision': revision });
  await both(async (side) => {
    const [deployment, set] = [`${side}-deployment`, `${side}-set`];
    const selector = { matchLabels: { of: set } };
    const template = {
      metadata: { labels: { of: set } },
      spec: {
        clusterName: `${side}-c`,
        version: 'v1.34.0',
        bootstrap: { dataSecretName: 'given' },
        infrastructureRef: {
          apiGroup: 'infrastructure.cluster.x-k8s.io',
          kind: 'DevMachineTemplate',
          name: 'small',
        },
      },
    };
    const spec = { clusterName: `${side}-c`, replicas: 1, selector, template };
    const owned = async (plural: string, kind: string, name: string): Promise<OwnerReference> => {
      const owner = await find<KubeObject>(pathOf(CORE, plural, name));
      return { apiVersion: CORE, kind, name, uid: owner?.metadata.uid ?? '', controller: true };
    };
    await create(CORE, 'machinedeployments', {
      kind: 'MachineDeployment',
      metadata: { name: deployment, annotations: revised('1') },
      spec,
    });
    await create(CORE, 'machinesets', {
      kind: 'MachineSet',
      metadata: {
        name: set,
        // By the label the core finds its MachineDeployment.
        labels: { 'cluster.x-k8s.io/deployment-name': deployment },
        annotations: revised('1'),
        ownerReferences: [await owned('machinedeployments', 'MachineDeployment', deployment)],
      },
      spec,
    });
    await createMachine(`${side}-c`, `${side}-member`, {
      labels: { of: set, 'cluster.x-k8s.io/set-name': set },
      ownerReferences: [await owned('machinesets', 'MachineSet', set)],
    });
    await says(`${side}-member`, 'UpToDate', 'True', 'UpToDate');
    await says(`${side}-member`, 'Available', 'True', 'Available');
  });
  await expectSame('while it is of the template', 'member');

  await both(async (side) => {
    const change = { metadata: { annotations: revised('2') }, spec: wanted('v1.35.0') };
    await api.send('PATCH', pathOf(CORE, 'machinedeployments', `${side}-deployment`), change);
    // The core does not watch MachineDeployments.
    await edit(`${side}-member`, { metadata: { labels: { 'node.cluster.x-k8s.io/y': 'z' } } });
    await says(`${side}-member`, 'UpToDate', 'False', 'NotUpToDate');
  });
  await expectSame('while its MachineDeployment wants another version', 'member');
  const texts = await both(async (side) => {
    const { conditions = [] } = (await machine(`${side}-member`))?.status ?? {};
    return conditions.find(({ type }) => type === 'UpToDate')?.message;
  });
  expect(texts).toEqual(Array(2).fill('* Version v1.34.0, v1.35.0 required'));
});

describe('machines of a MachineDeployment', () => {
  const DRIVER = 'machinist-cluster-api-driver';
  const REPLICAS = 20;
  const ROLLOUT = { timeoutMs: 150_000, intervalMs: 1000 };
  const deployment = (): string => pathOf(API_VERSION, 'machinedeployments', 'pool');
  const templateOf = (className: string): object => ({
    metadata: { labels: { pool: 'pool' } },
    spec: { class: { kind: 'MachineClass', name: className } },
  });

  /** Whatever there is of the machines, by its collection. */
  async function objects<T extends KubeObject>(version: string, plural: string): Promise<readonly T[]> {
    const collection = version === 'v1' ? `/api/v1/${plural}` : path.dirname(pathOf(version, plural, 'pool'));
    const { items } = await api.send<{ items: T[] }>('GET', collection);
    return items.filter(({ metadata }) => metadata.name.startsWith('pool-'));
  }

  async function everything() {
    const [machines, theirs, infrastructure, nodes, secrets] = await Promise.all([
      objects<Machine>(API_VERSION, 'machines'),
      objects<ClusterAPIMachine>(CORE, 'machines'),
      objects(INFRASTRUCTURE, 'devmachines'),
      objects<Node>('v1', 'nodes'),
      objects('v1', `namespaces/${namespaceOf('ours')}/secrets`),
    ]);
    const userData = secrets.filter(({ metadata }) => metadata.name.endsWith('-userdata'));
    return { machines, theirs, infrastructure, nodes, userData };
  }

  /** Each machine joins once: a Node that was deleted does not come back. */
  const joined = new Set<string>();

  /** Node by Node, what has been made joins; resolves when all machines are of one template and run. */
  async function rolledTo(template: string) {
    const runningAtOnce: number[] = [];
    const seen = await eventually(
      async () => {
        const now = await everything();
        const { machines, theirs, infrastructure, nodes, userData } = now;
        const run = machines.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
        runningAtOnce.push(run.filter(({ status }) => status?.currentStatus?.phase === 'Running').length);
        const made = theirs.filter(({ spec }) => spec?.providerID !== undefined).map(({ metadata }) => metadata.name);
        for (const name of made.filter((one) => !joined.has(one))) {
          await join(name);
          joined.add(name);
        }
        const of = infrastructure.map(({ metadata }) => metadata.annotations?.[CLONED_FROM_NAME_ANNOTATION]);
        expect({
          machines: machines.map(({ status }) => status?.currentStatus?.phase),
          theirs: theirs.map(({ status }) => status?.phase),
          of,
          others: [nodes.length, userData.length],
        }).toEqual({
          machines: Array(REPLICAS).fill('Running'),
          theirs: Array(REPLICAS).fill('Running'),
          of: Array(REPLICAS).fill(template),
          others: [REPLICAS, REPLICAS],
        });
        return now;
      },
      { ...ROLLOUT, describe: `${REPLICAS} machines of ${template}` },
    );
    return { ...seen, fewest: Math.min(...runningAtOnce) };
  }

  /** Of the machines themselves, of those of Cluster API, and of the Nodes. */
  function expectSameProviderIDs({ machines, theirs, nodes }: Awaited<ReturnType<typeof everything>>): void {
    const idsOf = (of: readonly (Machine | ClusterAPIMachine | Node)[]): object =>
      Object.fromEntries(of.map(({ metadata, spec }) => [metadata.name, spec?.providerID]));
    const expected = Object.fromEntries(machines.map(({ metadata: { name } }) => [name, `in-memory://${name}`]));
    expect([machines, theirs, nodes].map(idsOf)).toEqual([expected, expected, expected]);
  }

  // The last one: whole Machinist marks the Nodes of the other tests, which are of no Machine of its own.
  // promise: cluster-api/machinedeployments/twenty-machines-come-up
  test('twenty come up on a real provider, are rolled to another template, and go, with all that belongs to them', async () => {
    await using parts = new AsyncDisposableStack();
    const directory = mkdtempSync(path.join(tmpdir(), 'machinist-pool-'));
    parts.defer(() => rmSync(directory, { recursive: true }));
    const roles = ['control', 'control-identity', 'cluster-api-driver'] as const;
    for (const role of roles) await grant(api, role, namespaceOf('ours'));
    const { connection } = plane;
    const address = `unix://${path.join(directory, 'driver.sock')}`;
    parts.use(
      await DriverProcess.start('cluster-api-driver', [
        `--address=${address}`,
        `--state-directory=${path.join(directory, 'state')}`,
        `--kubeconfig=${await connection.kubeconfigFor({ user: DRIVER })}`,
      ]),
    );
    parts.use(
      await OperatorSession.start({
        connection,
        subject: { user: 'machinist' },
        namespace: namespaceOf('ours'),
        controllers: '*',
        flags: { driver: `cluster-api=${address}` },
      }),
    );
    await createCluster('pool');
    await api.send('POST', `/api/v1/namespaces/${namespaceOf('ours')}/secrets`, {
      metadata: { name: 'user-data' },
      stringData: { userData: '#cloud-config of <<MACHINE_NAME>>' },
    });
    for (const name of ['small', 'large']) {
      const spec = { backend: { inMemory: {} } };
      await create(INFRASTRUCTURE, 'devmachinetemplates', {
        kind: 'DevMachineTemplate',
        metadata: { name },
        spec: { template: { spec } },
      });
      const template = { apiGroup: 'infrastructure.cluster.x-k8s.io', kind: 'DevMachineTemplate', name };
      await create(API_VERSION, 'machineclasses', {
        kind: 'MachineClass',
        metadata: { name },
        provider: 'cluster-api',
        providerSpec: { clusterName: 'pool', infrastructureRef: template, version: 'v1.34.0' },
        secretRef: { name: 'user-data', namespace: namespaceOf('ours') },
      });
    }

    await create(API_VERSION, 'machinedeployments', {
      kind: 'MachineDeployment',
      metadata: { name: 'pool' },
      spec: {
        replicas: REPLICAS,
        selector: { matchLabels: { pool: 'pool' } },
        strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: REPLICAS, maxUnavailable: 0 } },
        template: templateOf('small'),
      },
    });
    expectSameProviderIDs(await rolledTo('small'));

    await api.send('PATCH', deployment(), { spec: { template: templateOf('large') } });
    const after = await rolledTo('large');
    expectSameProviderIDs(after);
    expect(after.fewest).toBeGreaterThanOrEqual(REPLICAS);

    await api.send('PATCH', deployment(), { spec: { replicas: 0 } });
    await eventually(
      async () =>
        // By names: the difference of so many objects takes long to be told.
        expect(Object.values(await everything()).flatMap((some) => some.map(({ metadata }) => metadata.name))).toEqual(
          [],
        ),
      { ...ROLLOUT, describe: 'nothing to be left' },
    );
    const made = audit
      .requests()
      .filter(
        ({ user, verb, resource, code }) =>
          user === DRIVER && verb === 'create' && code === 201 && resource === 'devmachines',
      );
    expect(made).toHaveLength(2 * REPLICAS);
  }, 480_000);
});

const podPath = (name: string): string => `/api/v1/namespaces/${namespaceOf(sideOf(name))}/pods/${name}`;

async function nodeShows(name: string, look: (node: Node) => unknown): Promise<void> {
  await eventually(
    async () => {
      const node = await readNode(name);
      if (node === undefined) throw new Error(`Node ${name} is gone`);
      look(node);
    },
    { ...PATIENCE, describe: `Node ${name}` },
  );
}

/** A pod that runs until its finalizer is taken off. */
async function createPod(name: string, nodeName: string, labels: object = {}): Promise<void> {
  await api.send('POST', path.dirname(podPath(name)), {
    metadata: { name, labels, finalizers: ['example.com/holds'] },
    spec: {
      nodeName,
      terminationGracePeriodSeconds: 0,
      tolerations: [{ operator: 'Exists' }],
      containers: [{ name: 'c', image: 'i' }],
    },
  });
}

async function isBeingDeleted(pod: string): Promise<void> {
  await eventually(async () => (await find<KubeObject>(podPath(pod)))?.metadata.deletionTimestamp !== undefined, {
    ...PATIENCE,
    describe: `${pod} to be evicted`,
  });
}
