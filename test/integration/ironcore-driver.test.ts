import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';

import { applyManifests, readManifests } from '../../hack/control-plane/apply.ts';
import { API_VERSION } from '../../pkg/apis/machine/v1alpha1/group.ts';
import type { MachineClass } from '../../pkg/apis/machine/v1alpha1/machine-class.ts';
import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import type { IronCoreMachine } from '../../pkg/worlds/ironcore/api/machine.ts';
import type { Secret } from '../../pkg/apis/wire.ts';
import type { GrpcDriver } from '../../pkg/driver/grpc/client.ts';
import type { DriverError } from '../../pkg/driver/error.ts';
import { IRONCORE_CLASS_ANNOTATION, IRONCORE_NAMESPACE_LABEL } from '../../pkg/worlds/ironcore/driver/tags.ts';
import { TestPool } from '../cloud/ironcore-pool.ts';
import { InProcessManager } from '../cloud/manager.ts';
import { Site } from '../cloud/site.ts';
import { describeContract } from '../drivers/contract.ts';
import { DriverProcess } from '../drivers/driver-process.ts';
import { callOf, classOf, connect, requestOf, stubOf, type SecretTexts } from '../drivers/requests.ts';
import { Program } from '../e2e/program.ts';
import { eventually } from '../expect/eventually.ts';
import { grant } from './shipped-roles.ts';

/** Where the Machines of IronCore are; the Machines of ours are elsewhere in the same cluster. */
const NAMESPACE = 'ironcore';
const MACHINES = `/apis/compute.ironcore.dev/v1alpha1/namespaces/${NAMESPACE}/machines`;
const SECRETS = `/api/v1/namespaces/${NAMESPACE}/secrets`;
const LABELS = { 'shoot-name': 'one', 'shoot-namespace': 'garden' };
const SPEC = { image: 'registry/os:1', networkName: 'net', prefixName: 'prefix', labels: LABELS };

const stack = new AsyncDisposableStack();
const site = stack.use(await Site.open());
const { api } = site;
await applyManifests(api, readManifests(join(import.meta.dirname, '../../crds/ironcore')));
await api.send('POST', '/api/v1/namespaces', { metadata: { name: NAMESPACE } });
await grant(api, 'ironcore-driver', NAMESPACE);
const kubeconfig = await readFile(
  await site.plane.connection.kubeconfigFor({ user: 'machinist-ironcore-driver' }),
  'utf8',
);
const SECRET: SecretTexts = { kubeconfig, namespace: NAMESPACE };
const pool = stack.use(new TestPool(api, NAMESPACE));

afterAll(async () => {
  await stack.disposeAsync();
});

function ironCoreClass(spec: object = SPEC, nodeTemplate: MachineClass['nodeTemplate'] = template()): MachineClass {
  return { ...classOf('ironcore', spec), ...(nodeTemplate && { nodeTemplate }) };
}

function template(change: object = {}): NonNullable<MachineClass['nodeTemplate']> {
  return {
    capacity: { cpu: '4', gpu: '0', memory: '8Gi' },
    instanceType: 'large',
    region: 'eu',
    zone: 'eu-1',
    ...change,
  };
}

async function start(directory: string, socket: string): Promise<DriverProcess> {
  const flags = [`--address=unix://${socket}`, `--state-directory=${directory}`];
  return await DriverProcess.start('ironcore-driver', flags);
}

async function clear(): Promise<void> {
  for (const { metadata } of await pool.machines())
    await api.request(`${MACHINES}/${metadata.name}`, { method: 'DELETE' });
  await api.request(SECRETS, { method: 'DELETE' });
}

describeContract({
  name: 'ironcore',
  machineClass: ironCoreClass(),
  brokenClass: ironCoreClass({ ...SPEC, image: '' }),
  userData: '#!/bin/sh',
  secret: SECRET,
  brokenSecret: { ...SECRET, kubeconfig: kubeconfig.replaceAll(/client-(certificate|key)-data: .*/g, '') },
  notApplicable: [],
  makeUntagged: async ({ name }) => {
    await post('machines', { metadata: { name, labels: LABELS }, spec: earlierSpec(name) });
  },
  start,
  cleanUp: clear,
});

/** As whoever is not this driver. */
async function post(plural: 'machines' | 'machinepools', object: object): Promise<void> {
  const kind = plural === 'machines' ? 'Machine' : 'MachinePool';
  const path = plural === 'machines' ? MACHINES : '/apis/compute.ironcore.dev/v1alpha1/machinepools';
  await api.send('POST', path, { apiVersion: 'compute.ironcore.dev/v1alpha1', kind, ...object });
}

/** What the earlier provider writes. */
function earlierSpec(name: string): IronCoreMachine['spec'] {
  return { machineClassRef: { name: 'large' }, ignitionRef: { name: `${name}-ignition`, key: 'ignition.yaml' } };
}

describe('a Machine of IronCore', () => {
  let directory: string;
  let running: DriverProcess;
  let driver: GrpcDriver;

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'ironcore-driver-'));
    const socket = join(directory, 'driver.sock');
    running = await start(join(directory, 'state'), socket);
    driver = connect(socket);
  });

  beforeEach(async () => {
    Object.assign(pool.behaviour, { takes: true, state: 'Running', joins: false });
    await clear();
  });

  afterAll(async () => {
    await driver.close();
    await running.end('SIGKILL');
    await rm(directory, { recursive: true, force: true });
  });

  const call = (timeoutMs = 10_000) => callOf({ timeoutMs });
  const request = (name: string, machineClass = ironCoreClass(), options: Parameters<typeof requestOf>[2] = {}) =>
    requestOf(name, machineClass, { secret: SECRET, ...options });
  const secretNames = async (): Promise<readonly string[]> =>
    (await api.send<{ items: Secret[] }>('GET', SECRETS)).items.map(({ metadata }) => metadata.name);

  test('is made with its Ignition config, found, and removed with it', async () => {
    const made = await driver.createMachine(request('m'), call());

    expect(made).toMatchObject({ providerID: 'ironcore://ironcore/m', nodeName: 'm' });
    const [machine] = await pool.machines();
    expect(machine).toMatchObject({
      metadata: { name: 'm', labels: { ...LABELS, [IRONCORE_NAMESPACE_LABEL]: 'shoot' } },
      spec: {
        machineClassRef: { name: 'large' },
        machinePoolSelector: { 'topology.ironcore.dev/zone': 'eu-1', 'topology.ironcore.dev/region': 'eu' },
        volumes: [{ name: 'root', localDisk: { image: 'registry/os:1' } }],
        ignitionRef: { name: 'm', key: 'ignition.yaml' },
      },
    });
    const secret = await api.send<Secret>('GET', `${SECRETS}/m`);
    expect(Buffer.from(secret.data?.['ignition.yaml'] ?? '', 'base64').toString()).toContain(
      'data:,%23!%2Fbin%2Fsh%0A',
    );
    expect(secret.metadata.ownerReferences).toMatchObject([{ kind: 'Machine', uid: machine?.metadata.uid }]);
    expect(await driver.listMachines(request('m'), call())).toEqual([
      { providerID: 'ironcore://ironcore/m', machineName: 'm', machineUID: 'u-m', machineNamespace: 'shoot' },
    ]);

    await driver.deleteMachine(request('m'), call());
    expect([await pool.machines(), await secretNames()]).toEqual([[], []]);
  });

  test('is removed where it was made, although the Secret names another namespace by now', async () => {
    const { providerID } = await driver.createMachine(request('m'), call());
    const moved = { secret: { ...SECRET, namespace: 'elsewhere' } };

    await driver.deleteMachine(request('m', ironCoreClass(), { ...moved, providerID }), call());

    expect([await pool.machines(), await secretNames()]).toEqual([[], []]);
  });

  // promise: ironcore/driver/pool-zones-name
  test('goes into the pool that has the name of its zone', async () => {
    await post('machinepools', { metadata: { name: 'eu-2' } });

    await driver.createMachine(request('m', ironCoreClass(SPEC, template({ zone: 'eu-2' }))), call());

    const [machine] = await pool.machines();
    expect([machine?.spec.machinePoolRef, machine?.spec.machinePoolSelector]).toEqual([{ name: 'eu-2' }, undefined]);
  });

  // promise: ironcore/driver/pool-takes-exhausted-capacity
  test('that no pool takes is told as exhausted capacity, and is the same one when a pool does', async () => {
    pool.behaviour.takes = false;

    await expect(driver.createMachine(request('m'), call(5_000))).rejects.toMatchObject({
      code: 'ResourceExhausted',
      detail: 'Machine ironcore/m of IronCore is not assigned to a pool: state none yet',
    });
    const [waiting] = await pool.machines();
    await expect(driver.getMachineStatus(request('m'), call())).rejects.toMatchObject({
      code: 'Uninitialized',
      result: {},
    });
    pool.behaviour.takes = true;
    await driver.createMachine(request('m'), call());

    const [machine] = await pool.machines();
    expect(machine?.metadata.uid).toBe(waiting?.metadata.uid);
  });

  test('is explained by the command line', async () => {
    await driver.createMachine(request('m'), call());
    const access = ['-n', NAMESPACE, '--kubeconfig', site.plane.connection.kubeconfig];

    const described = await Program.run('machinist', ['describe', 'ironcore-machine', 'm', ...access]);

    expect(described).toMatchObject({ code: 0, stderr: '' });
    expect(described.stdout).toMatch(/^Name: +m\nNamespace: +ironcore\nClass: +large\nPool: +pool\n/);
    expect(described.stdout).toMatch(/\nMessage: +MachinePool pool does not exist\. /);
  });

  // promise: ironcore/driver/machine-run-told-state
  test('that does not run yet is told with its state, until it does', async () => {
    pool.behaviour.state = 'Pending';
    await driver.createMachine(request('m'), call());

    await expect(driver.getMachineStatus(request('m'), call())).rejects.toMatchObject({
      code: 'Uninitialized',
      result: { providerID: 'ironcore://ironcore/m', nodeName: 'm' },
    });
    await expect(driver.initializeMachine(request('m'), call(4_000))).rejects.toMatchObject({
      code: 'Uninitialized',
      detail: 'Machine ironcore/m of IronCore is not running: state Pending',
    });
    pool.behaviour.state = 'Running';
    await expect(driver.initializeMachine(request('m'), call())).resolves.toMatchObject({ nodeName: 'm' });
    await expect(driver.getMachineStatus(request('m'), call())).resolves.toMatchObject({ nodeName: 'm' });
  });

  test('whose Secret was not made, because the driver died, gets it with the next creation', async () => {
    pool.behaviour.state = 'Pending';
    await driver.createMachine(request('m'), call());
    await api.send('DELETE', `${SECRETS}/m`);

    // Without a VM: the manager creates once more.
    await expect(driver.getMachineStatus(request('m'), call())).rejects.toMatchObject({
      code: 'Uninitialized',
      result: {},
    });
    await driver.createMachine(request('m'), call());

    expect([await secretNames(), (await pool.machines()).length]).toEqual([['m'], 1]);
  });

  test('whose user data has changed meanwhile is started with the new one', async () => {
    pool.behaviour.state = 'Pending';
    await driver.createMachine(request('m'), call());

    await driver.createMachine(request('m', ironCoreClass(), { userData: 'new' }), call());

    const secret = await api.send<Secret>('GET', `${SECRETS}/m`);
    expect(Buffer.from(secret.data?.['ignition.yaml'] ?? '', 'base64').toString()).toContain('data:,new%0A');
  });

  test('that a finalizer holds is asked to go again and again, and is not given out meanwhile', async () => {
    await driver.createMachine(request('m'), call());
    const finalizers = (of: readonly string[]) => ({ metadata: { finalizers: of } });
    await api.send('PATCH', `${MACHINES}/m`, finalizers(['example.com/held']));

    await expect(driver.deleteMachine(request('m'), call(4_000))).rejects.toMatchObject({ code: 'Aborted' });
    await expect(driver.createMachine(request('m'), call())).rejects.toMatchObject({ code: 'Aborted' });
    const removed = driver.deleteMachine(request('m'), call(30_000)).then(
      () => 'removed',
      ({ code }: DriverError) => code,
    );
    await api.send('PATCH', `${MACHINES}/m`, finalizers([]));

    // It may be let go of before the driver looks.
    expect(['removed', 'NotFound']).toContain(await removed);
    await expect(driver.deleteMachine(request('m'), call())).rejects.toMatchObject({ code: 'NotFound' });
  });

  test('of somebody else that has the name is neither taken nor deleted, nor is a Secret', async () => {
    await post('machines', { metadata: { name: 'm' }, spec: earlierSpec('m') });
    await api.send('POST', SECRETS, { metadata: { name: 'n' }, stringData: { password: 'x' } });

    await expect(driver.createMachine(request('m'), call())).rejects.toMatchObject({ code: 'AlreadyExists' });
    await expect(driver.deleteMachine(request('m'), call())).rejects.toMatchObject({ code: 'NotFound' });
    await expect(driver.createMachine(request('n'), call())).rejects.toMatchObject({
      code: 'AlreadyExists',
      detail: 'Secret ironcore/n already exists and does not belong to this machine',
    });
    await driver.deleteMachine(request('n'), call());
    await expect(
      driver.deleteMachine(stubOf('m', 'ironcore://other/m', ironCoreClass(), SECRET), call()),
    ).rejects.toMatchObject({ code: 'PermissionDenied' });
    expect([(await pool.machines()).map(({ metadata }) => metadata.name), await secretNames()]).toEqual([['m'], ['n']]);
  });

  test('of an earlier provider goes with its Secret', async () => {
    await api.send('POST', SECRETS, { metadata: { name: 'm-ignition' }, stringData: { 'ignition.yaml': '{}' } });
    await post('machines', { metadata: { name: 'm', labels: LABELS }, spec: earlierSpec('m') });

    await expect(driver.createMachine(request('m'), call())).resolves.toMatchObject({ nodeName: 'm' });
    await driver.deleteMachine(request('m'), call());

    expect([await pool.machines(), await secretNames()]).toEqual([[], []]);
  });

  // promise: ironcore/driver/vms-labels-go-listed
  test('of another class, cluster or namespace is not listed, nor is anything when there are no labels', async () => {
    await driver.createMachine(request('m'), call());
    const others = { ...ironCoreClass(), metadata: { ...ironCoreClass().metadata, name: 'other' } };
    const unlabelled = ironCoreClass({ ...SPEC, labels: undefined });
    await post('machines', { metadata: { name: 'x' }, spec: earlierSpec('x') });
    await post('machines', {
      metadata: {
        name: 'y',
        labels: { [IRONCORE_NAMESPACE_LABEL]: 'elsewhere' },
        annotations: { [IRONCORE_CLASS_ANNOTATION]: 'ironcore-class' },
      },
      spec: earlierSpec('y'),
    });

    const names = async (...args: Parameters<typeof driver.listMachines>) =>
      (await driver.listMachines(...args)).map(({ machineName }) => machineName);
    expect(await names(request('m', others), call())).toEqual([]);
    expect(await names(request('m'), callOf({ cluster: 'c-2' }))).toEqual([]);
    expect(await names(request('m', unlabelled), call())).toEqual(['m']);
  });

  test.each([
    ['no kubeconfig', { namespace: NAMESPACE }, 'secret: kubeconfig is missing or empty'],
    [
      'no namespace',
      { kubeconfig: kubeconfig.replaceAll(/^ *namespace: .*\n/gm, '') },
      'secret: namespace must be set',
    ],
    ['a kubeconfig that runs a program', { kubeconfig: withUser({ exec: { command: 'sh' } }) }, 'exec is not allowed'],
    ['one that reads a file', { kubeconfig: withUser({ tokenFile: '/etc/passwd' }) }, 'tokenFile is not allowed'],
    [
      'one that reads a CA',
      { kubeconfig: withUser({}, { 'certificate-authority': '/ca' }) },
      'is not allowed, because it names a file',
    ],
    [
      'one that does not ask who the server is',
      { kubeconfig: withUser({ token: 't' }, { 'insecure-skip-tls-verify': true }) },
      'set the CA of the server instead',
    ],
    [
      'one that says its token to everybody',
      { kubeconfig: withUser({ token: 't' }, { server: 'http://127.0.0.1:1' }) },
      'a server without TLS is not allowed; use an https:// address',
    ],
    ['one that is none', { kubeconfig: 'password: [' }, 'secret: kubeconfig: reading the kubeconfig: line 1'],
  ])('is not made with %s', async (_what, secret, message) => {
    await expect(driver.createMachine(request('m', ironCoreClass(), { secret }), call())).rejects.toMatchObject({
      code: 'InvalidArgument',
      detail: expect.stringContaining(message),
    });
  });
});

function withUser(user: object, cluster: object = {}): string {
  return JSON.stringify({
    clusters: [{ name: 'c', cluster: { server: 'https://127.0.0.1:1', ...cluster } }],
    users: [{ name: 'u', user }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u', namespace: NAMESPACE } }],
    'current-context': 'x',
  });
}

const MANAGED = '/apis/machine.sapcloud.io/v1alpha1/namespaces/default';

/** A manager with a driver of its own, until `of` ends. */
async function startManager(of: AsyncDisposableStack, flags: Readonly<Record<string, string>> = {}): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'ironcore-manager-'));
  of.defer(async () => await rm(directory, { recursive: true, force: true }));
  const socket = join(directory, 'driver.sock');
  of.use(await start(join(directory, 'state'), socket));
  const driver = `ironcore=unix://${socket}`;
  const options = { kubeconfig: site.kubeconfig, namespace: 'default', flags: { driver, ...flags } };
  of.use(await InProcessManager.start(options));
}

function classNamed(name: string) {
  return {
    apiVersion: API_VERSION,
    kind: 'MachineClass',
    metadata: { name, namespace: 'default' },
    provider: 'ironcore',
    providerSpec: SPEC,
    nodeTemplate: template(),
    secretRef: { name: 'pool', namespace: 'default' },
  };
}

const SECRET_OF_CLASSES = {
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 'pool', namespace: 'default' },
  stringData: { ...SECRET, userData: '#!/bin/sh' },
};
const labels = { pool: 'one' };

function templateOf(className: string) {
  return { metadata: { labels }, spec: { class: { kind: 'MachineClass', name: className } } };
}

function deployment(replicas: number, className: string) {
  return {
    apiVersion: API_VERSION,
    kind: 'MachineDeployment',
    metadata: { name: 'pool', namespace: 'default' },
    spec: {
      replicas,
      selector: { matchLabels: labels },
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 5, maxUnavailable: 5 } },
      template: templateOf(className),
    },
  };
}

/** Resolves when there are so many Machines of ours, all of the class, and all Running. */
async function allRunning(className: string, replicas: number, timeoutMs = 300_000): Promise<readonly Machine[]> {
  return await eventually(
    async () => {
      const { items } = await api.send<{ items: Machine[] }>('GET', `${MANAGED}/machines`);
      expect(items.map(({ spec, status }) => [spec.class?.name, status?.currentStatus?.phase])).toEqual(
        Array.from({ length: replicas }, () => [className, 'Running']),
      );
      return items;
    },
    { timeoutMs },
  );
}

/** Takes all of it down. */
async function takenDown(): Promise<void> {
  await api.send('PATCH', `${MANAGED}/machinedeployments/pool`, { spec: { replicas: 0 } });
  await eventually(
    async () => {
      const { items } = await api.send<{ items: Machine[] }>('GET', `${MANAGED}/machines`);
      const secrets = (await api.send<{ items: Secret[] }>('GET', SECRETS)).items;
      expect([items, await pool.machines(), secrets]).toEqual([[], [], []]);
    },
    { timeoutMs: 300_000 },
  );
}

const namesOf = (objects: readonly { readonly metadata: { readonly name: string } }[]): readonly string[] =>
  objects.map(({ metadata }) => metadata.name).toSorted();

// promise: ironcore/driver/20-machines-up-rolled
test('20 machines of a MachineDeployment come, are rolled and go, and leave nothing', async () => {
  await clear();
  Object.assign(pool.behaviour, { takes: true, state: 'Running', joins: true });
  await using of = new AsyncDisposableStack();
  await grant(api, 'control', 'default');
  await startManager(of);
  await applyManifests(api, [SECRET_OF_CLASSES, classNamed('first'), classNamed('second'), deployment(20, 'first')]);
  const first = await allRunning('first', 20);
  expect(namesOf(await pool.machines())).toEqual(namesOf(first));

  await api.send('PATCH', `${MANAGED}/machinedeployments/pool`, { spec: { template: templateOf('second') } });
  const second = await allRunning('second', 20);
  expect(namesOf(await pool.machines())).toEqual(namesOf(second));

  await takenDown();
}, 1_200_000);

// promise: ironcore/pools-classes/those-machinedeployment-replaced-pool
test('machines that a taint drives out of their pool are replaced in another one', async () => {
  await clear();
  Object.assign(pool.behaviour, { takes: false, state: 'Running', joins: true });
  await using of = new AsyncDisposableStack();
  for (const role of ['control', 'ironcore-scheduler', 'ironcore-lifecycle'] as const)
    await grant(api, role, 'default');
  const pools = '/apis/compute.ironcore.dev/v1alpha1/machinepools';
  const topology = { 'topology.ironcore.dev/region': 'eu', 'topology.ironcore.dev/zone': 'eu-1' };
  const conditions = [{ type: 'Ready', status: 'True', reason: 'Test', message: '' }];
  const ready = async (name: string, places: number) => {
    const status = { conditions, capacity: { 'class/machine.large': places } };
    await api.send('PATCH', `${pools}/${name}/status`, { status });
  };
  for (const [name, places] of [['left', 9] as const, ['right', 2] as const]) {
    await post('machinepools', { metadata: { name, labels: topology } });
    await ready(name, places);
  }
  const poolsUsed = async () => (await pool.machines()).map(({ spec }) => spec.machinePoolRef?.name);
  // Machines of Nodes whose deletion a young process has not seen wait for these.
  const waits = { 'machine-health-timeout': '1m', 'machine-safety-grace': '1s' };
  await startManager(of, { controllers: '*,ironcore', ...waits });
  await applyManifests(api, [SECRET_OF_CLASSES, classNamed('first'), deployment(2, 'first')]);
  const before = await allRunning('first', 2);
  expect(await poolsUsed()).toEqual(['left', 'left']);

  await api.send('PATCH', `${pools}/left`, { spec: { taints: [{ key: 'broken', effect: 'NoExecute' }] } });
  // What looks after Nodes of the provider takes away those whose machine is gone.
  for (const { metadata } of before) {
    const gone = async () => !namesOf(await pool.machines()).includes(metadata.name);
    await eventually(gone, { describe: `${metadata.name} to be driven out` });
    await api.send('DELETE', `/api/v1/nodes/${metadata.name}`);
  }

  await eventually(
    async () => {
      await ready('right', 2);
      const after = await allRunning('first', 2, 10_000);
      expect(namesOf(after).filter((name) => namesOf(before).includes(name))).toEqual([]);
      expect(await poolsUsed()).toEqual(['right', 'right']);
    },
    { timeoutMs: 300_000 },
  );
  await takenDown();
}, 1_200_000);
