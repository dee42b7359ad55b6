import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterEach, beforeEach, expect, test } from '@jest/globals';

import type { Api } from '../../hack/control-plane/api.ts';
import type { Connection } from '../../hack/control-plane/connection.ts';
import { resolveProgram } from '../../hack/control-plane/binaries.ts';
import { NODE_FINALIZER } from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Node, Pod } from '../../pkg/apis/wire.ts';
import { isReady } from '../../pkg/controllers/machine-facts/node-health.ts';
import type { DriverCall } from '../../pkg/driver/driver.ts';
import type { GrpcDriver } from '../../pkg/driver/grpc/client.ts';
import { DriverProcess } from '../drivers/driver-process.ts';
import { callOf as anyCallOf, classOf, connect as connectDriver, requestOf } from '../drivers/requests.ts';
import { connect, namespace } from '../env/environment.ts';
import { startKwok } from '../env/kwok.ts';
import { eventually } from '../expect/eventually.ts';
import { grant } from './shipped-roles.ts';

/** Built before any test's time begins. */
await resolveProgram('kwok');

/** Nodes, their class and their cluster are called by it: other tests have VMs of kwok on the same API server. */
const prefix = `kwok-${Math.random().toString(36).slice(2, 8)}`;
const machineClass = classOf(prefix, { capacity: { cpu: '2' }, nodeLabels: { pool: 'blue' } });
const callOf = (): DriverCall => anyCallOf({ cluster: prefix });

let cluster: Connection;
let api: Api;
let directory: string;
let running: DriverProcess;
let driver: GrpcDriver;

beforeEach(async () => {
  cluster = connect();
  api = cluster.api();
  await using ns = await namespace(cluster);
  await grant(api, 'kwok-driver', ns.name);
  await grant(api, 'kwok', ns.name);
  directory = await mkdtemp(join(tmpdir(), 'kwok-driver-'));
  driver = connectDriver(join(directory, 'driver.sock'));
  await start();
});

afterEach(async () => {
  const left = await driver.listMachines(request(0), callOf());
  await Promise.all(left.map(({ machineName }) => remove(machineName)));
  await driver.close();
  await running.end('SIGKILL');
  await api.close();
  await rm(directory, { recursive: true, force: true });
});

/** As the user of the shipped role, which may do nothing else. */
async function start(): Promise<void> {
  running = await DriverProcess.start('kwok-driver', [
    `--address=unix://${directory}/driver.sock`,
    `--state-directory=${directory}/state`,
    `--kubeconfig=${await cluster.kubeconfigFor({ user: 'machinist-kwok-driver' })}`,
  ]);
}

const nameOf = (i: number): string => `${prefix}-${i}`;
const request = (i: number) => requestOf(nameOf(i), machineClass);
const pathOf = (i: number): string => `/api/v1/nodes/${nameOf(i)}`;
const remove = (name: string) => driver.deleteMachine(requestOf(name, machineClass), callOf());

/** Provider id of the VM that was made; undefined when there was no answer. */
async function create(i: number): Promise<string | undefined> {
  try {
    return (await driver.createMachine(request(i), callOf())).providerID;
  } catch {
    return undefined;
  }
}

async function node(i: number): Promise<Node> {
  const { status, body } = await api.request(pathOf(i));
  if (status !== 200) throw new Error(`Node ${nameOf(i)}: ${status}`);
  return body as Node; // by the path
}

test('20 machines of a driver that is killed in the middle are 20 Nodes, which kwok makes ready and lets pods run on', async () => {
  await using _kwok = await startKwok(cluster);
  await using ns = await namespace(cluster);
  const all = Array.from({ length: 20 }, (_, i) => i);

  const interrupted = Promise.all(all.map(create));
  await eventually(() => node(0));
  await running.end('SIGKILL');
  const before = await interrupted;
  await start();
  const after = await Promise.all(all.map(create));

  // Whoever got an answer finds the same VM.
  expect(before.map((id, i) => id ?? after[i])).toEqual(after);
  expect(new Set(after)).toHaveProperty('size', 20);
  expect(await driver.listMachines(request(0), callOf())).toHaveLength(20);
  await eventually(async () => (await Promise.all(all.map(node))).every(isReady), {
    describe: 'all Nodes to be ready',
  });
  const { spec, status, metadata } = await node(7);
  expect(spec?.providerID).toBe(after[7]);
  expect(status?.capacity).toEqual({ cpu: '2', memory: '16Gi', pods: '110' });
  expect(metadata.labels).toMatchObject({ pool: 'blue' });

  const pods = `/api/v1/namespaces/${ns.name}/pods`;
  const body = { metadata: { name: 'p' }, spec: { nodeName: nameOf(7), containers: [{ name: 'c', image: 'i' }] } };
  expect((await api.request(pods, { method: 'POST', body })).status).toBe(201);
  await eventually(async () => ((await api.request(`${pods}/p`)).body as Pod).status?.phase === 'Running');
  await api.request(`${pods}/p`, { method: 'DELETE' });
  await eventually(async () => (await api.request(`${pods}/p`)).status === 404);

  const fail = { metadata: { labels: { 'node-not-ready.stage.kwok.x-k8s.io': 'true' } } };
  await api.send('PATCH', pathOf(7), fail);
  await eventually(async () => !isReady(await node(7)), { describe: 'a Node to fail' });

  await Promise.all(all.map((i) => remove(nameOf(i))));
  expect(await driver.listMachines(request(0), callOf())).toEqual([]);
  await expect(node(7)).rejects.toThrow('404');
});

test('a Node that is deleted behind its back is a VM that has gone, and another one takes its place', async () => {
  const first = await create(1);

  await api.request(pathOf(1), { method: 'DELETE' });

  await expect(driver.getMachineStatus(request(1), callOf())).rejects.toMatchObject({ code: 'NotFound' });
  expect(await driver.listMachines(request(1), callOf())).toEqual([]);
  expect(await create(1)).not.toBe(first);
});

test('a Node that a finalizer holds is a VM until the driver deletes it, and only a Node after that', async () => {
  const providerID = await create(2);
  const body = { metadata: { finalizers: [NODE_FINALIZER] } };
  const patch = (finalizers: unknown) =>
    api.request(pathOf(2), { method: 'PATCH', contentType: 'application/merge-patch+json', body: finalizers });
  await patch(body);

  await api.request(pathOf(2), { method: 'DELETE' });
  await expect(driver.getMachineStatus(request(2), callOf())).resolves.toMatchObject({ providerID });

  await remove(nameOf(2));
  await expect(driver.getMachineStatus(request(2), callOf())).rejects.toMatchObject({ code: 'NotFound' });
  await expect(driver.createMachine(request(2), callOf())).rejects.toMatchObject({
    code: 'Aborted',
    detail: expect.stringContaining('still being deleted'),
  });
  await patch({ metadata: { finalizers: null } });
  expect(await create(2)).toBeDefined();
});

test('a Node of that name which is no VM is neither taken nor deleted', async () => {
  const body = { metadata: { name: nameOf(3) } };
  await api.request('/api/v1/nodes', { method: 'POST', body });

  await expect(driver.createMachine(request(3), callOf())).rejects.toMatchObject({ code: 'AlreadyExists' });
  await expect(remove(nameOf(3))).rejects.toMatchObject({ code: 'NotFound' });

  expect((await api.request(pathOf(3), { method: 'DELETE' })).status).toBe(200);
});
