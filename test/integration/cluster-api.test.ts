import path from 'node:path';

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import type { Api } from '../../hack/control-plane/api.ts';
import { applyManifests, readManifests } from '../../hack/control-plane/apply.ts';
import type { ClusterAPICluster } from '../../pkg/worlds/cluster-api/api/cluster.ts';
import type { ClusterAPIMachine } from '../../pkg/worlds/cluster-api/api/machine.ts';
import type { KubeObject } from '../../pkg/apis/meta.ts';
import type { Event, Node } from '../../pkg/apis/wire.ts';
import { CLUSTER_API_KINDS } from '../../pkg/worlds/cluster-api/controllers/kinds.ts';
import { attachVolume, detachVolume } from '../attachments.ts';
import { DIALECTS, type Dialect } from '../cluster-api/dialect.ts';
import {
  ContractSimulator,
  SIM_CLUSTER,
  SIM_CONFIG,
  SIM_CONTROL_PLANE,
  SIM_MACHINE,
  type SimKind,
} from '../contract-simulator.ts';
import { privateApiServer, type TestServer } from '../env/api-server.ts';
import { namespace, type TestNamespace, WITHOUT_KUBELETS } from '../env/environment.ts';
import { eventually } from '../expect/eventually.ts';
import { OperatorSession } from './operator-session.ts';
import { grant } from './shipped-roles.ts';

const PATIENCE = { timeoutMs: 120_000 };
const EXPIRY = 'machine.cluster.x-k8s.io/certificates-expiry';
const HEALTHY = ['MemoryPressure', 'DiskPressure', 'PIDPressure'].map((type) => ({ type, status: 'False' }));

let dialect: Dialect;
let plane: TestServer;
let api: Api;
let ns: TestNamespace;
let sim: ContractSimulator;
let session: OperatorSession;
/** Every phase that a Machine showed, by name; and all that its deletion waited for. */
const phases = new Map<string, string[]>();
const waits = new Map<string, string[]>();

function note(all: Map<string, string[]>, name: string, one: string | undefined): void {
  const before = all.get(name) ?? [];
  if (one !== undefined && before.at(-1) !== one) all.set(name, [...before, one]);
}

async function secret(name: string, stringData: object): Promise<void> {
  await api.send('POST', `/api/v1/namespaces/${ns.name}/secrets`, { metadata: { name }, stringData });
}

/** What Events have told of a Machine, and how often. */
async function told(name: string, kind: 'Machine' | 'Cluster' = 'Machine'): Promise<readonly string[]> {
  const selector = `involvedObject.kind=${kind},involvedObject.name=${name}`;
  const { items } = await api.send<{ items: Event[] }>(
    'GET',
    `/api/v1/namespaces/${ns.name}/events?fieldSelector=${encodeURIComponent(selector)}`,
  );
  return items.map(({ type, reason, message, count = 1 }) => `${type} ${reason} ${message} x${count}`).toSorted();
}

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';

async function send<T = unknown>(method: Method, plural: string, name?: string, body?: object): Promise<T> {
  const collection = dialect.pathOf(ns.name, plural);
  const full = method === 'POST' ? { apiVersion: dialect.apiVersion, ...withNamespace(body) } : body;
  const strict = method === 'POST' ? '?fieldValidation=Strict' : '';
  const sent = full && dialect.wire(plural, full);
  const answer = await api.send<T>(method, `${collection}${name === undefined ? '' : `/${name}`}${strict}`, sent);
  return method === 'GET' ? (dialect.read(plural, answer as KubeObject) as T) : answer;
}

function withNamespace(object: { readonly metadata?: object } = {}): object {
  return { ...object, metadata: { ...object.metadata, namespace: ns.name } };
}

async function createMachine(name: string, spec: object = {}, metadata: object = {}): Promise<void> {
  await send('POST', 'machines', undefined, {
    kind: 'Machine',
    metadata: { name, ...metadata },
    spec: {
      clusterName: 'c',
      bootstrap: { dataSecretName: 'given' },
      infrastructureRef: { ...SIM_MACHINE, name },
      ...spec,
    },
  });
}

/** A Machine whose infrastructure is provisioned, with its Node. */
async function running(name: string, spec: object = {}, metadata: object = {}): Promise<void> {
  await sim.create(SIM_MACHINE, name, { spec: { providerID: `sim://${name}` } });
  await createMachine(name, spec, metadata);
  await sim.report(SIM_MACHINE, name, { initialization: { provisioned: true } });
  await createNode(name, `sim://${name}`);
  await shows(name, ({ status }) => expect(status?.phase).toBe('Running'));
}

async function createNode(name: string, providerID: string): Promise<void> {
  // Nobody renews its Lease: the taint keeps what evicts Pods of silent Nodes from this one for minutes.
  await api.send('POST', '/api/v1/nodes', { metadata: { name }, spec: { providerID } });
  const conditions = [{ type: 'Ready', status: 'True' }, ...HEALTHY];
  await api.send('PATCH', `/api/v1/nodes/${name}/status`, { status: { conditions } });
}

async function readNode(name: string): Promise<Node | undefined> {
  return await api.find(`/api/v1/nodes/${name}`);
}

function read(name: string): Promise<ClusterAPIMachine> {
  return send<ClusterAPIMachine>('GET', 'machines', name);
}

async function edit(name: string, change: object): Promise<void> {
  await send('PATCH', 'machines', name, change);
}

async function shows(name: string, look: (machine: ClusterAPIMachine) => unknown): Promise<ClusterAPIMachine> {
  let seen: ClusterAPIMachine | undefined;
  return await eventually(
    async () => {
      seen = await read(name);
      await look(seen);
      return seen;
    },
    { ...PATIENCE, describe: () => `${name}: ${JSON.stringify({ ...seen, metadata: seen?.metadata.annotations })}` },
  );
}

/** Resolves when a condition has this status and reason, and this in its message. */
async function says(name: string, type: string, status: string, reason: string, part = ''): Promise<void> {
  await shows(name, (machine) => {
    const found = machine.status?.conditions?.find((one) => one.type === type);
    expect(found).toMatchObject({ status, reason });
    expect(found?.message).toContain(part);
  });
}

async function gone(look: () => Promise<unknown>, what: string): Promise<void> {
  await eventually(async () => (await look()) === undefined, { ...PATIENCE, describe: `${what} to be gone` });
}

async function machineGone(name: string): Promise<void> {
  const look = async () => {
    return (await api.request(`${dialect.pathOf(ns.name, 'machines')}/${name}`)).status === 404 ? undefined : name;
  };
  await gone(look, name);
}

/** Removes a Machine with all that belongs to it. */
async function remove(name: string): Promise<void> {
  await send('DELETE', 'machines', name);
  await machineGone(name);
}

/** An owner of a group that is not served: where it can look for the owner, and does not find it, garbage collection deletes the object. */
function creatorReference(kind: string): object {
  return { apiVersion: 'controlplane.cluster.x-k8s.io/v1', kind, name: 'creator', uid: 'uid-of-creator' };
}

/** Resolves when the Machine is the only owner of the object, which shows its Cluster. */
async function ownedBy(kind: SimKind, name: string, uid: string): Promise<void> {
  await eventually(
    async () => {
      const { metadata } = (await sim.read(kind, name)) ?? {};
      expect(metadata?.ownerReferences).toMatchObject([{ kind: 'Machine', name, uid, controller: true }]);
      expect(metadata?.labels).toMatchObject({ 'cluster.x-k8s.io/cluster-name': 'c' });
    },
    { ...PATIENCE, describe: `${kind.kind} ${name} to be owned` },
  );
}

async function nodeShows(
  name: string,
  want: { readonly keys: readonly string[]; readonly labels: object; readonly not?: string },
): Promise<void> {
  await eventually(
    async () => {
      const { metadata, spec } = (await readNode(name)) ?? {};
      expect(metadata).toBeDefined();
      expect(metadata?.labels ?? {}).toMatchObject(want.labels);
      expect(Object.keys(metadata?.labels ?? {})).not.toContain(want.not);
      const ours = (spec?.taints ?? []).filter(({ key }) => !key.startsWith('node.kubernetes.io/'));
      expect(ours.map(({ key }) => key)).toEqual(want.keys);
    },
    { ...PATIENCE, describe: `Node ${name} to show ${JSON.stringify(want)}` },
  );
}

const podPath = (name: string): string => `/api/v1/namespaces/${ns.name}/pods/${name}`;

async function pod(name: string, nodeName: string, labels: object = {}, more: HeldPod = {}): Promise<void> {
  const { isHeld = false, graceSeconds = 0, claim } = more;
  const volumes = claim === undefined ? [] : [{ name: 'v', persistentVolumeClaim: { claimName: claim } }];
  await api.send('POST', `/api/v1/namespaces/${ns.name}/pods`, {
    metadata: { name, labels: { app: name, ...labels }, ...(isHeld && { finalizers: ['sim/holds'] }) },
    spec: {
      nodeName,
      terminationGracePeriodSeconds: graceSeconds,
      // What evicts Pods of silent Nodes lets it alone.
      tolerations: [{ operator: 'Exists' }],
      containers: [{ name: 'c', image: 'i' }],
      volumes,
    },
  });
  // Budgets protect only what runs.
  const conditions = [{ type: 'Ready', status: 'True' }];
  await api.send('PATCH', `${podPath(name)}/status`, { status: { phase: 'Running', conditions } });
}

/** How a Pod ends. */
interface HeldPod {
  /** It does not go before it is let go. */
  readonly isHeld?: boolean;
  readonly graceSeconds?: number;
  readonly claim?: string;
}

async function isLeaving(podName: string): Promise<void> {
  const look = async () =>
    (await api.send<KubeObject>('GET', podPath(podName))).metadata.deletionTimestamp !== undefined;
  await eventually(look, { ...PATIENCE, describe: `${podName} to be evicted` });
}

async function letGo(podName: string): Promise<void> {
  await api.send('PATCH', podPath(podName), { metadata: { finalizers: null } });
}

/** What the node controller writes when the kubelet does not report any more, or again. */
async function setReady(nodeName: string, status: 'True' | 'Unknown'): Promise<void> {
  await api.send('PATCH', `/api/v1/nodes/${nodeName}/status`, { status: { conditions: [{ type: 'Ready', status }] } });
}

/** More than there are mutations in the life of a Machine. */
const LIVES = 30;

/** A Machine whose manager dies before its n-th mutation, from 1; with n = 0 it does not. */
class Life {
  readonly name: string;
  readonly n: number;
  readonly texts: string[] = [];
  isDead = false;

  constructor(name: string, n: number) {
    this.name = name;
    this.n = n;
  }

  /** Throws once the manager has died. */
  note(text: string, isMortal: boolean): void {
    this.isDead ||= isMortal && this.texts.length + 1 === this.n;
    if (this.isDead && isMortal) throw new Error('the process has died');
    this.texts.push(text);
  }
}

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

describe.each(DIALECTS)('where $version is served', (served) => {
  beforeAll(async () => {
    dialect = served;
    phases.clear();
    waits.clear();
    // Of its own: where both groups are served, kubectl takes `machine` for theirs.
    plane = await privateApiServer(WITHOUT_KUBELETS);
    const { connection } = plane;
    api = connection.api();
    await applyManifests(api, await dialect.definitions());
    ns = await namespace(connection);
    sim = new ContractSimulator(api, ns.name);
    await sim.install(SIM_MACHINE, 'v1beta2');
    await sim.install(SIM_CONFIG, 'v1beta2');
    for (const role of ['control-machine-controller', 'target', 'cluster-api'] as const)
      await grant(api, role, ns.name);
    session = await OperatorSession.start({
      connection,
      subject: { user: 'machinist' },
      namespace: ns.name,
      controllers: 'cluster-api',
    });
    session.caches.of(CLUSTER_API_KINDS).clusterAPIMachines.onChange((_old, current) => {
      if (current === undefined) return;
      const { name } = current.metadata;
      const { phase, conditions = [] } = current.status ?? {};
      note(phases, name, phase);
      note(waits, name, conditions.find(({ type, status }) => type === 'Deleting' && status === 'True')?.reason);
    });
    await send('POST', 'clusters', undefined, { kind: 'Cluster', metadata: { name: 'c' }, spec: {} });
    await secret('given', { value: 'data' });
  });

  afterAll(async () => {
    await session[Symbol.asyncDispose]();
    await ns[Symbol.asyncDispose]();
    await api.close();
    await plane[Symbol.asyncDispose]();
  });

  // promise: machines-cluster-api/phases-go-step-back
  // promise: cluster-api/contracts-providers/bootstrap-object-created-owns
  // promise: cluster-api/contracts-providers/addresses-failure-domain-follow
  // promise: cluster-api/contracts-providers/provider-id-taken-over
  // promise: cluster-api/contracts-providers/conditions-providers-mirrored-reasons
  // promise: cluster-api/contracts-providers/bootstrap-data-kind-object
  // promise: cluster-api/contracts-providers/defaults-cluster-apis-webhook
  // promise: cluster-api/contracts-providers/providers-older-contract-find
  // promise: cluster-api/nodes/phases-come-order-step
  // promise: cluster-api/deletion/drain-infrastructure-bootstrap-node
  test('a Machine becomes a Node in phases without a step back, and goes with all that belongs to it, in order', async () => {
    const name = 'whole';
    await sim.create(SIM_MACHINE, name, {
      metadata: { finalizers: ['sim/holds'], ownerReferences: [creatorReference('MachineSet')] },
    });
    await sim.create(SIM_CONFIG, name, { metadata: { finalizers: ['sim/holds'] } });
    await createMachine(
      name,
      { version: '1.34.0', bootstrap: { configRef: { ...SIM_CONFIG, name } } },
      { labels: { 'cluster.x-k8s.io/control-plane': '' }, annotations: { [EXPIRY]: '2027-01-01T00:00:00Z' } },
    );

    await says(name, 'BootstrapConfigReady', 'False', 'NotReady', 'SimConfig whole');
    const { uid } = (await read(name)).metadata;
    await ownedBy(SIM_MACHINE, name, uid);
    await ownedBy(SIM_CONFIG, name, uid);
    await sim.report(SIM_CONFIG, name, { initialization: { dataSecretCreated: true }, dataSecretName: 'made' });
    await shows(name, ({ spec, status }) =>
      expect([spec?.bootstrap?.dataSecretName, status?.phase]).toEqual(['made', 'Provisioning']),
    );
    await shows(name, ({ spec, status }) =>
      expect([spec?.version, spec?.deletion, status?.certificatesExpiryDate]).toEqual([
        'v1.34.0',
        { nodeDeletionTimeoutSeconds: 10 },
        '2027-01-01T00:00:00Z',
      ]),
    );
    // Provisioned without an id is not enough to find its Node.
    await sim.report(SIM_MACHINE, name, {
      initialization: { provisioned: true },
      conditions: [{ type: 'Ready', status: 'False', reason: 'Foo', message: 'bar' }],
    });
    await says(name, 'InfrastructureReady', 'False', 'Foo', 'bar');
    expect((await read(name)).status?.phase).toBe('Provisioning');
    await sim.set(SIM_MACHINE, name, { spec: { providerID: 'sim://whole' } });
    await sim.report(SIM_MACHINE, name, {
      conditions: [{ type: 'Ready', status: 'True', reason: 'Up' }],
      addresses: [{ type: 'InternalIP', address: '10.0.0.7' }],
      failureDomain: 'az1',
      interruptible: true,
    });
    await shows(name, ({ spec, status }) => {
      expect(spec?.providerID).toBe('sim://whole');
      expect(status).toMatchObject({
        phase: 'Provisioned',
        addresses: [{ type: 'InternalIP', address: '10.0.0.7' }],
        // The older version has no place for it.
        ...(dialect.version === 'v1beta2' && { failureDomain: 'az1' }),
      });
    });
    await createNode(name, 'sim://whole');
    const machine = await shows(name, ({ status }) =>
      expect(status).toMatchObject({ phase: 'Running', nodeRef: { name } }),
    );
    await says(name, 'Ready', 'True', 'Ready');
    await says(name, 'Available', 'True', 'Available');
    expect(machine.metadata.ownerReferences).toMatchObject([{ kind: 'Cluster', name: 'c' }]);
    expect(machine.metadata.labels).toMatchObject({ 'cluster.x-k8s.io/cluster-name': 'c' });
    const older = (await read(name)).status?.deprecated?.v1beta1?.conditions ?? [];
    expect(machine.status?.conditions?.map(({ observedGeneration }) => observedGeneration)).not.toContain(undefined);
    expect(older.filter(({ status }) => status === 'True').map(({ type }) => type)).toEqual([
      'BootstrapReady',
      'InfrastructureReady',
      'NodeHealthy',
      'Ready',
    ]);
    await eventually(async () => {
      expect((await readNode(name))?.metadata.labels).toMatchObject({ 'cluster.x-k8s.io/interruptible': '' });
    }, PATIENCE);

    // Once provisioned, it stays so.
    await sim.report(SIM_MACHINE, name, {
      initialization: { provisioned: false },
      addresses: [{ type: 'InternalIP', address: '10.0.0.8' }],
    });
    await shows(name, ({ status }) => {
      expect(status?.addresses).toEqual([{ type: 'InternalIP', address: '10.0.0.8' }]);
      expect(status?.initialization?.infrastructureProvisioned).toBe(true);
    });

    await send('DELETE', 'machines', name);
    await says(name, 'Deleting', 'True', 'WaitingForInfrastructureDeletion');
    expect((await readNode(name))?.spec?.unschedulable).toBe(true);
    expect((await sim.read(SIM_CONFIG, name))?.metadata.deletionTimestamp).toBeUndefined();
    await sim.set(SIM_MACHINE, name, { metadata: { finalizers: null } });
    await says(name, 'Deleting', 'True', 'WaitingForBootstrapDeletion');
    expect(await readNode(name)).toBeDefined();
    await sim.set(SIM_CONFIG, name, { metadata: { finalizers: null } });
    await machineGone(name);
    expect(await readNode(name)).toBeUndefined();
    expect(phases.get(name)).toEqual(['Pending', 'Provisioning', 'Provisioned', 'Running', 'Deleting']);
  });

  // promise: machines-cluster-api/machine-goes-nobody-tell
  // promise: cluster-api/contracts-providers/object-somebody-else-let
  // promise: cluster-api/contracts-providers/contracts-v1beta1-v1beta2-label
  // promise: cluster-api/contracts-providers/terminal-failures-shown-end
  // promise: cluster-api/deletion/definition-missing-nobody-takes
  test('bad references are told with what would help, and are made good: missing, foreign, of a kind that comes and goes', async () => {
    const kind = { apiGroup: SIM_MACHINE.apiGroup, kind: 'LateMachine' };
    const name = 'late';
    await createMachine(name, { infrastructureRef: { ...kind, name } });
    await says(
      name,
      'InfrastructureReady',
      'Unknown',
      'InternalError',
      'latemachines.infrastructure.cluster.x-k8s.io does',
    );
    await says(name, 'BootstrapConfigReady', 'True', 'DataSecretProvided');

    await sim.install(kind, undefined);
    await says(name, 'InfrastructureReady', 'Unknown', 'InternalError', 'has no label');
    await sim.relabel(kind, 'v1beta1');
    await says(
      name,
      'InfrastructureReady',
      'False',
      'ObjectDoesNotExist',
      'LateMachine late does not exist: create it',
    );
    const foreign = { ...creatorReference('Machine'), name: 'another', controller: true };
    await sim.create(kind, name, { metadata: { ownerReferences: [foreign] }, spec: { providerID: 'late://1' } });
    await says(name, 'InfrastructureReady', 'False', 'NotReady', 'belongs to Machine another');
    await sim.set(kind, name, { metadata: { ownerReferences: null } });
    await says(name, 'InfrastructureReady', 'False', 'NotReady', 'is not provisioned yet');

    // The contract says which field counts.
    await sim.report(kind, name, { initialization: { provisioned: true } });
    await sim.report(kind, name, { failureReason: 'InsufficientResources', failureMessage: 'no host' });
    await shows(name, ({ status }) =>
      expect(status?.deprecated?.v1beta1).toMatchObject({ failureReason: 'InsufficientResources' }),
    );
    expect((await read(name)).status?.phase).toBe('Pending');
    await sim.relabel(kind, 'v1beta2');
    await shows(name, ({ status }) => expect(status?.phase).toBe('Provisioned'));

    // Whether an object of a kind that is not served is gone nobody knows.
    await sim.set(kind, name, { metadata: { finalizers: ['sim/holds'] } });
    await sim.uninstall(kind);
    await sim.set(kind, name, { metadata: { finalizers: null } });
    await says(name, 'InfrastructureReady', 'Unknown', 'InternalError', 'does not exist: install the provider');
    await send('DELETE', 'machines', name);
    await says(name, 'Deleting', 'True', 'WaitingForInfrastructureDeletion', 'Unknown whether LateMachine late exists');
    await sim.install(kind, 'v1beta2');
    await machineGone(name);
  });

  // promise: cluster-api/contracts-providers/noticed-comes
  // promise: cluster-api/contracts-providers/why-something-ready-told
  test('what a machine cannot start without is told in a condition, and by one Event for each reason, and is noticed when it comes', async () => {
    const name = 'waiting';
    await createMachine(name, { bootstrap: { dataSecretName: 'own-data' } });
    await says(
      name,
      'InfrastructureReady',
      'False',
      'ObjectDoesNotExist',
      'SimMachine waiting does not exist: create it',
    );
    await says(name, 'BootstrapConfigReady', 'False', 'DataSecretMissing', 'Secret own-data does not exist: create it');
    await secret('own-data', { other: 'data' });
    await says(name, 'BootstrapConfigReady', 'False', 'DataSecretEmpty', 'has no data under key value');
    const ownData = `/api/v1/namespaces/${ns.name}/secrets/own-data`;
    await api.send('PATCH', ownData, { data: { value: Buffer.from('data').toString('base64') } });
    await says(name, 'BootstrapConfigReady', 'True', 'DataSecretProvided');
    await sim.create(SIM_MACHINE, name, { spec: { providerID: 'sim://waiting' } });
    await says(name, 'InfrastructureReady', 'False', 'NotReady', 'is not provisioned yet');
    for (const message of ['no host', 'still no host']) {
      const ready = { type: 'Ready', status: 'False', reason: 'NoHost', message };
      await sim.report(SIM_MACHINE, name, { conditions: [ready] });
      await says(name, 'InfrastructureReady', 'False', 'NoHost', message);
    }
    await sim.report(SIM_MACHINE, name, { initialization: { provisioned: true }, conditions: [] });
    await shows(name, ({ status }) => expect(status?.phase).toBe('Provisioned'));
    // Who has started needs it no more.
    await api.send('DELETE', ownData);
    await createNode(name, 'sim://waiting');
    await says(name, 'Available', 'True', 'Available');
    await says(name, 'BootstrapConfigReady', 'True', 'DataSecretProvided');

    const events = [
      'Normal InfrastructureNotReady NoHost: no host x1',
      'Normal InfrastructureNotReady NotReady: SimMachine waiting is not provisioned yet x1',
      'Normal SuccessfulSetNodeRef The Node is waiting x1',
      'Warning BootstrapNotReady DataSecretEmpty: Secret own-data has no data under key value: add the bootstrap data x1',
      'Warning BootstrapNotReady DataSecretMissing: Secret own-data does not exist: create it, with the bootstrap data under key value x1',
      'Warning InfrastructureNotReady ObjectDoesNotExist: SimMachine waiting does not exist: create it, or correct spec.infrastructureRef x1',
    ];
    await eventually(async () => expect(await told(name)).toEqual(events), { ...PATIENCE, describe: 'Events' });
    await remove(name);
  });

  // promise: cluster-api/deletion/machine-cluster-waits-says
  test('a Machine of a group that we may not read, or without its Cluster, says so and goes on when that is mended', async () => {
    const kind = { apiGroup: 'odd.example.com', kind: 'OddMachine' };
    const name = 'odd';
    await sim.install(kind, 'v1beta2');
    await sim.create(kind, name);
    await createMachine(name, { clusterName: 'later', infrastructureRef: { ...kind, name } });
    await says(name, 'Ready', 'False', 'NotReady', 'Cluster later does not exist: create it');
    expect((await read(name)).metadata.finalizers ?? []).toEqual([]);

    await send('POST', 'clusters', undefined, { kind: 'Cluster', metadata: { name: 'later' }, spec: { paused: true } });
    await says(name, 'Paused', 'True', 'Paused');
    expect((await read(name)).metadata.finalizers ?? []).toEqual([]);
    await send('PATCH', 'clusters', 'later', { spec: { paused: false } });
    await says(
      name,
      'InfrastructureReady',
      'Unknown',
      'InternalError',
      'cannot be read: apply deploy/rbac/cluster-api.yaml',
    );
    await says(name, 'Paused', 'False', 'NotPaused');

    const rule = { apiGroups: [kind.apiGroup], resources: ['*'], verbs: ['get', 'list', 'watch', 'patch', 'delete'] };
    const roles = `/apis/rbac.authorization.k8s.io/v1/namespaces/${ns.name}/roles/machinist-cluster-api`;
    const { rules } = await api.send<{ rules: object[] }>('GET', roles);
    await api.send('PATCH', roles, { rules: [...rules, rule] });
    await says(name, 'InfrastructureReady', 'False', 'NotReady', 'is not provisioned yet');

    // The Cluster takes its Machines along.
    await send('DELETE', 'clusters', 'later');
    await machineGone(name);
    expect(await sim.read(kind, name)).toBeUndefined();
    await eventually(async () => {
      const later = `${dialect.pathOf(ns.name, 'clusters')}/later`;
      return (await api.request(later)).status === 404;
    }, PATIENCE);
  });

  // promise: cluster-api/nodes/node-provider-id-becomes
  // promise: cluster-api/nodes/labels-domains-cluster-api
  // promise: cluster-api/nodes/taint-nodes-join-goes
  test('the Node shows what its Machine says, keeps what others put there, and is one only', async () => {
    const name = 'labels';
    const node = 'labels-node';
    await sim.create(SIM_MACHINE, name, { spec: { providerID: 'sim://labels' } });
    await createMachine(
      name,
      {
        taints: [
          { key: 'a', effect: 'NoSchedule', propagation: 'Always' },
          { key: 'b', effect: 'NoSchedule', propagation: 'OnInitialization' },
        ],
      },
      { labels: { 'node-role.kubernetes.io/x': '', other: 'y' } },
    );
    for (const one of [node, 'labels-twin']) {
      await api.send('POST', '/api/v1/nodes', {
        metadata: { name: one, labels: { 'node-role.kubernetes.io/hand': '' } },
        spec: {
          providerID: 'sim://labels',
          taints: [{ key: 'node.cluster.x-k8s.io/uninitialized', effect: 'NoSchedule' }],
        },
      });
    }
    await sim.report(SIM_MACHINE, name, { initialization: { provisioned: true } });
    await says(name, 'NodeReady', 'Unknown', 'InspectionFailed', 'have the same provider ID');
    expect((await read(name)).status?.nodeRef).toBeUndefined();
    await api.send('DELETE', '/api/v1/nodes/labels-twin');
    await shows(name, ({ status }) => expect(status?.nodeRef).toEqual({ name: node }));
    await nodeShows(node, {
      keys: ['a', 'b'],
      labels: { 'node-role.kubernetes.io/x': '', 'node-role.kubernetes.io/hand': '' },
    });
    expect((await readNode(node))?.metadata.labels).toEqual(expect.not.objectContaining({ other: 'y' }));
    expect((await readNode(node))?.metadata.annotations).toMatchObject({
      'cluster.x-k8s.io/machine': name,
      'cluster.x-k8s.io/cluster-name': 'c',
      'cluster.x-k8s.io/labels-from-machine': 'node-role.kubernetes.io/x',
    });

    const { spec } = (await readNode(node)) ?? {};
    await api.send('PATCH', `/api/v1/nodes/${node}`, {
      spec: { taints: spec?.taints?.filter(({ key }) => key === 'a') },
    });
    await edit(name, { metadata: { labels: { 'node-role.kubernetes.io/x': null } } });
    await nodeShows(node, {
      keys: ['a'],
      labels: { 'node-role.kubernetes.io/hand': '' },
      not: 'node-role.kubernetes.io/x',
    });
    await remove(name);
  });

  // promise: cluster-api/nodes/two-machines-provider-id
  test('of two Machines with one provider ID the Node goes with neither: the one that may own the VM waits, the other lets it alone', async () => {
    const hook = 'pre-drain.delete.hook.machine.cluster.x-k8s.io/look';
    await running('host-was');
    await sim.delete(SIM_MACHINE, 'host-was');
    await says('host-was', 'InfrastructureReady', 'False', 'ObjectDeleted');
    await sim.create(SIM_MACHINE, 'host-now', { spec: { providerID: 'sim://host-was' } });
    await createMachine('host-now', {}, { annotations: { [hook]: '' } });
    await sim.report(SIM_MACHINE, 'host-now', { initialization: { provisioned: true } });

    const both =
      /have the same provider ID sim:\/\/host-was \(Node host-was\): .*Delete neither until two sources confirm/;
    for (const name of ['host-was', 'host-now']) {
      await shows(name, ({ status }) => {
        const node = status?.conditions?.find(({ type }) => type === 'NodeReady');
        expect(node).toMatchObject({
          status: 'Unknown',
          reason: 'InspectionFailed',
          message: expect.stringMatching(both),
        });
      });
    }
    await send('DELETE', 'machines', 'host-now');
    await says('host-now', 'Deleting', 'True', 'DrainingNode', 'Waiting until its Node is known: Machines');
    expect(await sim.read(SIM_MACHINE, 'host-now')).toMatchObject({ metadata: { name: 'host-now' } });

    await remove('host-was');
    await says('host-now', 'Deleting', 'True', 'WaitingForPreDrainHook', hook);
    expect((await read('host-now')).status?.nodeRef).toEqual({ name: 'host-was' });
    expect(await readNode('host-was')).toBeDefined();
    await edit('host-now', { metadata: { annotations: { [hook]: null } } });
    await machineGone('host-now');
    expect(await readNode('host-was')).toBeUndefined();
  });

  test('two Machines whose infrastructure reports one provider ID take no Node, and do not fight over it', async () => {
    const [one, other] = ['twin-a', 'twin-b'];
    for (const name of [one, other]) {
      await sim.create(SIM_MACHINE, name, { spec: { providerID: 'sim://twin' } });
      await createMachine(name);
      await sim.report(SIM_MACHINE, name, { initialization: { provisioned: true } });
      await shows(name, ({ status }) => expect(status?.phase).toBe('Provisioned'));
    }
    await createNode('twin', 'sim://twin');
    for (const name of [one, other]) {
      await says(name, 'NodeReady', 'Unknown', 'InspectionFailed', 'have the same provider ID sim://twin');
      expect((await read(name)).status?.nodeRef).toBeUndefined();
    }
    await send('DELETE', 'machines', other);
    await says(other, 'Deleting', 'True', 'DrainingNode', 'Waiting until its Node is known: Machines');
    await sim.delete(SIM_MACHINE, other);
    await machineGone(other);
    await shows(one, ({ status }) => expect(status).toMatchObject({ phase: 'Running', nodeRef: { name: 'twin' } }));
    await remove(one);
  });

  // promise: cluster-api/deletion/infrastructure-waits-volumes-timeout
  // promise: cluster-api/deletion/rule-makes-sense-holds
  // promise: cluster-api/deletion/hooks-both-prefixes-hold
  // promise: cluster-api/deletion/budget-holds-drain-long
  test('a deletion waits for hooks, drains, and waits for volumes; a timeout ends what a budget or a volume holds', async () => {
    const name = 'drained';
    const preDrain = 'pre-drain.delete.hook.machine.cluster.x-k8s.io/backup';
    const preTerminate = 'pre-terminate.delete.hook.machine.cluster.x-k8s.io';
    await running(name, {}, { annotations: { [preDrain]: '', [preTerminate]: '' } });
    await pod('leaves', name);
    await pod('skipped', name, { 'cluster.x-k8s.io/drain': 'skip' });
    await pod('kept', name);
    await send('POST', 'machinedrainrules', undefined, {
      kind: 'MachineDrainRule',
      metadata: { name: 'kept' },
      spec: {
        drain: { behavior: 'Skip' },
        pods: [{ selector: { matchLabels: { app: 'kept' } }, namespaceSelector: { matchLabels: { team: 'a' } } }],
      },
    });
    await send('POST', 'machinedrainrules', undefined, {
      kind: 'MachineDrainRule',
      metadata: { name: 'wrong' },
      spec: { drain: { behavior: 'Skip' }, pods: [{ selector: { matchExpressions: [{ key: 'a', operator: 'In' }] } }] },
    });
    await api.send('PATCH', `/api/v1/namespaces/${ns.name}`, { metadata: { labels: { team: 'a' } } });
    await attachVolume(api, 'held', name);
    await send('DELETE', 'machines', name);
    await says(name, 'Deleting', 'True', 'WaitingForPreDrainHook', preDrain);
    expect((await readNode(name))?.spec?.unschedulable).not.toBe(true);
    expect((await api.request(podPath('leaves'))).status).toBe(200);

    await edit(name, { metadata: { annotations: { [preDrain]: null } } });
    await says(
      name,
      'Deleting',
      'True',
      'DrainingNode',
      'MachineDrainRule wrong: label selector: operator In at key a needs values',
    );
    expect((await api.request(podPath('leaves'))).status).toBe(200);
    await send('DELETE', 'machinedrainrules', 'wrong');
    await says(name, 'Deleting', 'True', 'WaitingForVolumeDetach', 'held');
    await eventually(
      async () => {
        const blocked = (await told(name)).filter((one) => one.includes('DrainBlocked Draining Node'));
        expect(blocked).toEqual([expect.stringMatching(/^Warning .*: MachineDrainRule wrong: .* x1$/)]);
      },
      { ...PATIENCE, describe: 'one Event of the rule that is wrong' },
    );
    expect((await api.request(podPath('leaves'))).status).toBe(404);
    for (const stays of ['skipped', 'kept']) {
      expect((await api.request(podPath(stays))).status).toBe(200);
      await api.send('DELETE', podPath(stays), { gracePeriodSeconds: 0 });
    }
    await send('DELETE', 'machinedrainrules', 'kept');
    await detachVolume(api, 'held');
    await says(name, 'Deleting', 'True', 'WaitingForPreTerminateHook', preTerminate);
    expect((await sim.read(SIM_MACHINE, name))?.metadata.deletionTimestamp).toBeUndefined();
    await edit(name, { metadata: { annotations: { [preTerminate]: null } } });
    await machineGone(name);
    expect(await readNode(name)).toBeUndefined();

    const held = 'timed';
    await running(held, { deletion: { nodeDrainTimeoutSeconds: 2, nodeVolumeDetachTimeoutSeconds: 1 } });
    await pod('stays', held);
    await api.send('POST', `/apis/policy/v1/namespaces/${ns.name}/poddisruptionbudgets`, {
      metadata: { name: 'none' },
      spec: { minAvailable: 1, selector: { matchLabels: { app: 'stays' } } },
    });
    await attachVolume(api, 'stuck', held);
    await send('DELETE', 'machines', held);
    await machineGone(held);
    expect(waits.get(held)?.slice(0, 2)).toEqual(['DrainingNode', 'WaitingForVolumeDetach']);
    expect((await api.request(podPath('stays'))).status).toBe(200);
    await api.send('DELETE', podPath('stays'), { gracePeriodSeconds: 0 });
    await detachVolume(api, 'stuck');
  });

  // promise: cluster-api/deletion/dead-node-held-up
  test('the Machine of a Node whose kubelet is silent goes, whatever grace its Pods have and whoever holds them', async () => {
    const name = 'dead';
    await running(name);
    await pod('never-ends', name, {}, { isHeld: true, graceSeconds: 3_600 });
    await attachVolume(api, 'left', name);
    await setReady(name, 'Unknown');
    await says(name, 'NodeReady', 'Unknown', 'NodeReadyUnknown');
    await remove(name);
    await isLeaving('never-ends');
    await detachVolume(api, 'left');
    await letGo('never-ends');

    const later = 'dies-later';
    await running(later);
    await pod('held-before', later, {}, { isHeld: true });
    await send('DELETE', 'machines', later);
    await isLeaving('held-before');
    await says(later, 'Deleting', 'True', 'DrainingNode');
    await setReady(later, 'Unknown');
    await machineGone(later);
    expect(await readNode(later)).toBeUndefined();
    await letGo('held-before');
  });

  test('the Node of a Machine goes with it that had joined before the infrastructure was provisioned', async () => {
    const name = 'joins-early';
    await sim.create(SIM_MACHINE, name, { spec: { providerID: `sim://${name}` } });
    await createMachine(name);
    await says(name, 'InfrastructureReady', 'False', 'NotReady');
    await createNode(name, `sim://${name}`);
    await pod('came-early', name, {}, { isHeld: true });
    await send('DELETE', 'machines', name);
    await isLeaving('came-early');
    expect((await sim.read(SIM_MACHINE, name))?.metadata.deletionTimestamp).toBeUndefined();
    await letGo('came-early');
    await machineGone(name);
    expect(await readNode(name)).toBeUndefined();
  });

  // promise: cluster-api/deletion/hook-node-gone
  test('a hook before the drain holds the machine also when the Node is gone', async () => {
    const name = 'hooked';
    const hook = 'pre-drain.delete.hook.machine.cluster.x-k8s.io/backup';
    await running(name, {}, { annotations: { [hook]: '' } });
    await api.send('DELETE', `/api/v1/nodes/${name}`);
    await says(name, 'NodeReady', 'False', 'NodeDeleted');
    await send('DELETE', 'machines', name);
    await says(name, 'Deleting', 'True', 'WaitingForPreDrainHook', hook);
    expect((await sim.read(SIM_MACHINE, name))?.metadata.deletionTimestamp).toBeUndefined();
    await edit(name, { metadata: { annotations: { [hook]: null } } });
    await machineGone(name);
  });

  // promise: cluster-api/deletion/pods-volumes-leave-once
  test('Pods with volumes leave at once, and their volumes are waited for when they are gone', async () => {
    const name = 'stateful';
    const each = [1, 2, 3, 4, 5].map((n) => ({ app: `db-${n}`, volume: `${ns.name}-pv-${n}` }));
    await running(name, { deletion: { nodeDrainTimeoutSeconds: 100 } });
    for (const { app, volume } of each) {
      await api.send('POST', `/api/v1/namespaces/${ns.name}/persistentvolumeclaims`, {
        metadata: { name: app },
        spec: {
          volumeName: volume,
          storageClassName: '',
          accessModes: ['ReadWriteOnce'],
          resources: { requests: { storage: '1Gi' } },
        },
      });
      await pod(app, name, {}, { isHeld: true, claim: app });
      await attachVolume(api, volume, name);
    }
    await send('DELETE', 'machines', name);
    for (const { app } of each) await isLeaving(app);
    await says(name, 'Deleting', 'True', 'DrainingNode', '5 Pods remain');

    for (const { app } of each) await letGo(app);
    await says(name, 'Deleting', 'True', 'WaitingForVolumeDetach');
    expect((await sim.read(SIM_MACHINE, name))?.metadata.deletionTimestamp).toBeUndefined();
    for (const { volume } of each) await detachVolume(api, volume);
    await machineGone(name);
  });

  // promise: machines-cluster-api/nothing-written-about-paused
  // promise: cluster-api/contracts-providers/infrastructure-object-controlling-owner
  // promise: cluster-api/beside/nothing-written-about-paused
  test('nothing is written about what is paused, and nobody is fought with', async () => {
    const name = 'paused';
    await running(name);
    await says(name, 'Ready', 'True', 'Ready');
    await edit(name, { metadata: { annotations: { 'cluster.x-k8s.io/paused': '' } } });
    await says(name, 'Paused', 'True', 'Paused');
    await edit(name, { metadata: { labels: { touched: 'yes' } } });
    await sim.set(SIM_MACHINE, name, { metadata: { labels: { 'cluster.x-k8s.io/cluster-name': 'x' } } });
    const versions = async (): Promise<readonly unknown[]> =>
      [await read(name), await sim.read(SIM_MACHINE, name)].map((one) => one?.metadata.resourceVersion);
    const before = await versions();
    // Whoever is not paused has got on meanwhile.
    await running('witness');
    await says('witness', 'Available', 'True', 'Available');
    expect(await versions()).toEqual(before);
    // Its provider ID was written just now, and what its status says of that comes after it.
    const settled = await eventually(async () => {
      const one = await read('witness');
      const { conditions = [] } = one.status ?? {};
      expect(new Set(conditions.map(({ observedGeneration }) => observedGeneration))).toEqual(
        new Set([one.metadata.generation]),
      );
      return one;
    }, PATIENCE);
    await sim.set(SIM_MACHINE, 'witness', { metadata: { labels: { touched: 'yes' } } });
    const { metadata } = await read(name);
    await edit(name, { metadata: { annotations: { 'cluster.x-k8s.io/paused': null } } });
    await ownedBy(SIM_MACHINE, name, metadata.uid);
    expect(await read('witness')).toEqual(settled);
    await remove(name);
    await remove('witness');
  });

  // promise: cluster-api/contracts-providers/cluster-whose-events-tell
  // promise: cluster-api/contracts-providers/cluster-too
  test('a Cluster owns its infrastructure, shows it to providers, and goes after its Machines', async () => {
    await sim.install(SIM_CLUSTER, 'v1beta1');
    await sim.create(SIM_CLUSTER, 'i', { spec: { controlPlaneEndpoint: { host: 'api.example.com', port: 6443 } } });
    await send('POST', 'clusters', undefined, {
      kind: 'Cluster',
      metadata: { name: 'i' },
      spec: { infrastructureRef: { ...SIM_CLUSTER, name: 'i' } },
    });
    const cluster = (): Promise<ClusterAPICluster> => send<ClusterAPICluster>('GET', 'clusters', 'i');
    const look = async (want: (one: ClusterAPICluster) => void): Promise<void> => {
      await eventually(async () => want(await cluster()), { ...PATIENCE, describe: 'Cluster i' });
    };
    await look(({ status }) =>
      expect(status?.conditions).toContainEqual(
        expect.objectContaining({ type: 'InfrastructureReady', status: 'False', reason: 'NotReady' }),
      ),
    );
    await sim.report(SIM_CLUSTER, 'i', { ready: true, failureDomains: { az1: { controlPlane: false } } });
    await look(({ spec, status }) => {
      expect(spec?.controlPlaneEndpoint).toEqual({ host: 'api.example.com', port: 6443 });
      expect(status).toMatchObject({
        initialization: { infrastructureProvisioned: true, controlPlaneInitialized: true },
        failureDomains: [{ name: 'az1', controlPlane: false }],
      });
      expect(status?.deprecated?.v1beta1?.conditions).toContainEqual(
        expect.objectContaining({ type: 'InfrastructureReady', status: 'True' }),
      );
    });
    const { uid } = (await cluster()).metadata;
    const { metadata } = (await sim.read(SIM_CLUSTER, 'i')) ?? {};
    expect(metadata?.ownerReferences).toEqual([{ apiVersion: dialect.apiVersion, kind: 'Cluster', name: 'i', uid }]);
    await running('left', { clusterName: 'i' });
    await send('DELETE', 'clusters', 'i');
    await gone(() => sim.read(SIM_CLUSTER, 'i'), 'SimCluster i');
    expect((await readNode('left'))?.spec?.unschedulable).toBeUndefined();
    await eventually(
      async () => expect((await told('left')).join()).toContain('Warning NodeLeft Node left is kept: '),
      {
        ...PATIENCE,
        describe: 'the Event about the Node',
      },
    );
    await eventually(
      async () => {
        const news = (await told('i', 'Cluster')).map((one) => one.split(' ').slice(0, 2).join(' '));
        expect(news).toEqual(
          expect.arrayContaining([
            'Normal InfrastructureNotReady',
            'Normal InfrastructureProvisioned',
            'Normal WaitingForWorkersDeletion',
          ]),
        );
      },
      { ...PATIENCE, describe: 'the Events about the Cluster' },
    );
  });

  // promise: cluster-api/clusters/control-plane-contract
  // promise: cluster-api/clusters/control-plane-goes
  test('a Cluster owns its control plane, believes what that says, and deletes it after its workers and before its infrastructure', async () => {
    const name = 'planned';
    for (const kind of [SIM_CLUSTER, SIM_CONTROL_PLANE]) await sim.install(kind, 'v1beta2');
    await sim.create(SIM_CLUSTER, name, { metadata: { finalizers: ['sim/holds'] } });
    await sim.report(SIM_CLUSTER, name, { initialization: { provisioned: true } });
    await send('POST', 'clusters', undefined, {
      kind: 'Cluster',
      metadata: { name },
      spec: { infrastructureRef: { ...SIM_CLUSTER, name }, controlPlaneRef: { ...SIM_CONTROL_PLANE, name } },
    });
    const look = async (want: (one: ClusterAPICluster) => void): Promise<void> => {
      const current = () => send<ClusterAPICluster>('GET', 'clusters', name);
      await eventually(async () => want(await current()), { ...PATIENCE, describe: `Cluster ${name}` });
    };
    const shown = (type: string, status: string, reason: string): Promise<void> =>
      look((one) => expect(one.status?.conditions).toContainEqual(expect.objectContaining({ type, status, reason })));
    await shown('ControlPlaneInitialized', 'Unknown', 'ObjectDoesNotExist');
    await sim.create(SIM_CONTROL_PLANE, name, {
      metadata: { finalizers: ['sim/holds'] },
      spec: { controlPlaneEndpoint: { host: 'api.example.com', port: 6443 } },
    });
    await shown('ControlPlaneInitialized', 'False', 'NotInitialized');
    await sim.report(SIM_CONTROL_PLANE, name, {
      externalManagedControlPlane: true,
      initialization: { controlPlaneInitialized: true },
    });
    await shown('ControlPlaneInitialized', 'True', 'Initialized');
    await look(({ spec, status }) => {
      expect(spec?.controlPlaneEndpoint).toEqual({ host: 'api.example.com', port: 6443 });
      expect(status?.initialization?.controlPlaneInitialized).toBe(true);
    });
    const { metadata } = (await sim.read(SIM_CONTROL_PLANE, name)) ?? {};
    expect(metadata?.ownerReferences).toMatchObject([{ kind: 'Cluster', name }]);

    await running('plan-worker', { clusterName: name });
    await sim.set(SIM_MACHINE, 'plan-worker', { metadata: { finalizers: ['sim/holds'] } });
    await running(
      'plan-control',
      { clusterName: name },
      {
        labels: { 'cluster.x-k8s.io/control-plane': '', 'cluster.x-k8s.io/control-plane-name': name },
        ownerReferences: [{ ...creatorReference('SimControlPlane'), controller: true }],
      },
    );
    await send('DELETE', 'clusters', name);
    await shown('Deleting', 'True', 'WaitingForWorkersDeletion');
    expect((await sim.read(SIM_CONTROL_PLANE, name))?.metadata.deletionTimestamp).toBeUndefined();
    await sim.set(SIM_MACHINE, 'plan-worker', { metadata: { finalizers: null } });
    await shown('Deleting', 'True', 'WaitingForControlPlaneDeletion');
    expect((await sim.read(SIM_CONTROL_PLANE, name))?.metadata.deletionTimestamp).toBeDefined();
    // As its provider would.
    await remove('plan-control');
    expect((await sim.read(SIM_CLUSTER, name))?.metadata.deletionTimestamp).toBeUndefined();
    await sim.set(SIM_CONTROL_PLANE, name, { metadata: { finalizers: null } });
    await shown('Deleting', 'True', 'WaitingForInfrastructureDeletion');
    await sim.set(SIM_CLUSTER, name, { metadata: { finalizers: null } });
    const clusterPath = `${dialect.pathOf(ns.name, 'clusters')}/${name}`;
    await eventually(async () => (await api.request(clusterPath)).status === 404, PATIENCE);
    for (const node of ['plan-worker', 'plan-control']) await api.send('DELETE', `/api/v1/nodes/${node}`);
  });

  // promise: cluster-api/clusters/topology-supported
  test('of a Cluster that a class is to make it is said that nobody does, and it is not called provisioned', async () => {
    const name = 'classy';
    await send('POST', 'clusters', undefined, {
      kind: 'Cluster',
      metadata: { name },
      spec: {
        topology:
          dialect.version === 'v1beta2'
            ? { classRef: { name: 'quick' }, version: 'v1.34.0' }
            : { class: 'quick', version: 'v1.34.0' },
      },
    });
    await eventually(
      async () => {
        const { status } = await send<ClusterAPICluster>('GET', 'clusters', name);
        expect(status?.phase).toBe('Pending');
        expect(status?.initialization ?? {}).toEqual({});
        const said = status?.conditions?.map(({ type, reason }) => `${type} ${reason}`);
        expect(said).toEqual(
          expect.arrayContaining([
            'TopologyReconciled NotSupported',
            'InfrastructureReady ObjectDoesNotExist',
            'ControlPlaneInitialized ObjectDoesNotExist',
          ]),
        );
      },
      { ...PATIENCE, describe: `Cluster ${name}` },
    );
    await send('DELETE', 'clusters', name);
  });

  // promise: machines-cluster-api/manager-dies-next-goes
  // promise: cluster-api/deletion/wherever-manager-dies
  test('whenever the manager dies, the next one goes on: one infrastructure for each Machine, deleted in order, and nothing left', async () => {
    await using other = await namespace(plane.connection);
    for (const role of ['control-machine-controller', 'cluster-api'] as const) await grant(api, role, other.name);
    const there = new ContractSimulator(api, other.name);
    const lives = Array.from({ length: LIVES }, (_, i) => new Life(`crash-${i}`, i));
    const start = (isMortal: boolean): Promise<OperatorSession> =>
      OperatorSession.start({
        connection: plane.connection,
        subject: { user: 'machinist' },
        namespace: other.name,
        controllers: 'cluster-api',
        hooks: {
          intercept: async (mutation, proceed) => {
            const life = lives.find(({ name }) => mutation.text.split(/[/ ]/).includes(name));
            if (life !== undefined && !mutation.text.startsWith('POST events')) life.note(mutation.text, isMortal);
            return await proceed();
          },
        },
      });
    const find = async (name: string): Promise<ClusterAPIMachine | undefined> => {
      const object = await api.find<ClusterAPIMachine>(`${dialect.pathOf(other.name, 'machines')}/${name}`);
      return object === undefined ? undefined : dialect.read('machines', object);
    };
    const all = async (isDone: (life: Life) => Promise<boolean>, what: string): Promise<void> => {
      let left: readonly string[] = [];
      const look = async (): Promise<boolean> => {
        const done = await Promise.all(lives.map(isDone));
        left = lives.filter((_, i) => done[i] !== true).map(({ name, texts }) => `${name}: ${texts.join(', ')}`);
        return left.length === 0;
      };
      await eventually(look, { ...PATIENCE, describe: () => `${what}: ${left.join('; ')}` });
    };
    const isRunning = async ({ name }: Life): Promise<boolean> => (await find(name))?.status?.phase === 'Running';

    await api.send('POST', dialect.pathOf(other.name, 'clusters'), {
      apiVersion: dialect.apiVersion,
      kind: 'Cluster',
      metadata: { name: 'c' },
      spec: {},
    });
    for (const { name } of lives) {
      await there.create(SIM_MACHINE, name, { spec: { providerID: `sim://${name}` } });
      await there.report(SIM_MACHINE, name, { initialization: { provisioned: true } });
      await there.create(SIM_CONFIG, name);
      await there.report(SIM_CONFIG, name, { initialization: { dataSecretCreated: true }, dataSecretName: name });
      await createNode(name, `sim://${name}`);
      await pod(name, name);
      const machine = {
        apiVersion: dialect.apiVersion,
        kind: 'Machine',
        metadata: { name, namespace: other.name, labels: { 'node.cluster.x-k8s.io/x': 'y' } },
        spec: {
          clusterName: 'c',
          bootstrap: { configRef: { ...SIM_CONFIG, name } },
          infrastructureRef: { ...SIM_MACHINE, name },
        },
      };
      await api.send('POST', dialect.pathOf(other.name, 'machines'), dialect.wire('machines', machine));
    }
    const first = await start(true);
    await all(async (life) => life.isDead || (await isRunning(life)), 'to run or to be dead');
    const early = lives.filter(({ isDead }) => isDead);
    const takeAway = ({ name }: Life): Promise<unknown> =>
      api.send('DELETE', `${dialect.pathOf(other.name, 'machines')}/${name}`);
    await Promise.all(lives.filter((life) => !early.includes(life)).map(takeAway));
    await all(async (life) => life.isDead || (await find(life.name)) === undefined, 'to be gone or to be dead');
    await first[Symbol.asyncDispose]();
    // It has died before each mutation: those who are left had none to die before.
    expect(lives.filter(({ isDead }) => isDead).length).toBeGreaterThan(15);
    expect(lives.filter(({ isDead, n }) => n > 0 && !isDead)).not.toEqual([]);

    await using _second = await start(false);
    await all(async (life) => !early.includes(life) || (await isRunning(life)), 'to run');
    await Promise.all(early.map(takeAway));
    await all(async ({ name }) => (await find(name)) === undefined, 'to be gone');
    const left = await Promise.all(
      lives.flatMap(({ name }) => [
        there.read(SIM_MACHINE, name),
        there.read(SIM_CONFIG, name),
        readNode(name),
        api.request(podPath(name)).then(({ status }) => (status === 404 ? undefined : name)),
      ]),
    );
    expect(left.filter((one) => one !== undefined)).toEqual([]);
    for (const { texts } of lives) {
      const at = (part: string): number => texts.findLastIndex((text) => text.includes(part));
      const order = ['eviction', 'DELETE simmachines', 'DELETE simconfigs', 'DELETE nodes'].map(at);
      expect(order).toEqual(order.toSorted((a, b) => a - b));
      expect(order).not.toContain(-1);
      expect(texts.at(-1)).toMatch(/^PATCH machines/);
    }
  }, 900_000);

  // promise: machines-cluster-api/controller-uses-permission-roles
  // promise: cluster-api/beside/permissions-those-roles-more
  test('uses every verb that its roles grant, and is refused nothing but the kind that no role grants', () => {
    const manifests = readManifests(path.join(import.meta.dirname, '../../deploy/rbac'));
    const roles = manifests.filter(
      ({ kind, metadata }) => kind.endsWith('Role') && /-cluster-api(?:-definitions|-namespaces)?$/.test(metadata.name),
    );
    const rules = roles.flatMap((role) => (role as unknown as { rules: Rule[] }).rules);
    const kinds = new Map<string, string>([
      [SIM_MACHINE.apiGroup, 'simmachines'],
      [SIM_CONFIG.apiGroup, 'simconfigs'],
      [SIM_CONTROL_PLANE.apiGroup, 'simcontrolplanes'],
    ]);
    // What owners of Machines say is read in cluster-api-workload.test.ts.
    const ofOwners = ['machinesets', 'machinedeployments'];
    const ofMachines = rules.filter(({ resources }) => !ofOwners.some((one) => resources.includes(one)));
    const granted = ofMachines.flatMap(({ apiGroups: [group = ''], resources, verbs }) =>
      resources.flatMap((one) => verbs.map((verb) => `${verb} ${one === '*' ? kinds.get(group) : one}`)),
    );
    const { requests } = session;
    const used = new Set(requests.map(({ verb, resource }) => `${verb} ${resource}`));

    expect(roles).toHaveLength(3);
    expect(granted.filter((one) => !used.has(one))).toEqual([]);
    const refused = requests.filter(({ code }) => code === 401 || code === 403);
    expect(new Set(refused.map(({ resource }) => resource))).toEqual(new Set(['oddmachines']));
  });
});
