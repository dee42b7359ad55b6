import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';

import type { Node, Pod } from '../../pkg/apis/wire.ts';
import type { GrpcDriver } from '../../pkg/driver/grpc/client.ts';
import { ControlClient } from '../cloud/control-client.ts';
import { connect as connectCluster, namespace } from '../env/environment.ts';
import { DriverProcess } from '../drivers/driver-process.ts';
import { callOf, classOf, connect, requestOf } from '../drivers/requests.ts';
import { eventually } from '../expect/eventually.ts';

const machineClass = classOf('sim', { zone: 'zone-7', nodeLabels: { pool: 'blue' } });

describe('the simulated cloud', () => {
  let directory: string;
  let running: DriverProcess;
  let driver: GrpcDriver;
  let control: ControlClient;

  const start = async (...more: string[]): Promise<void> => {
    running = await DriverProcess.start('sim-driver', [
      `--address=unix://${directory}/driver.sock`,
      `--control=unix://${directory}/control.sock`,
      `--state-directory=${directory}/state`,
      '--create-latency=10ms',
      '--delete-latency=10ms',
      ...more,
    ]);
    driver = connect(join(directory, 'driver.sock'));
    control = new ControlClient(join(directory, 'control.sock'));
  };
  const stop = async (signal: 'SIGTERM' | 'SIGKILL'): Promise<void> => {
    await driver.close();
    await control[Symbol.asyncDispose]();
    await running.end(signal);
  };

  /** Provider id of the VM that was made, undefined when there was no answer. */
  const create = (name: string): Promise<string | undefined> =>
    driver.createMachine(requestOf(name, machineClass), callOf()).then(
      (vm) => vm.providerID,
      () => undefined,
    );

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'sim-'));
  });

  afterEach(async () => {
    await stop('SIGKILL');
    await rm(directory, { recursive: true, force: true });
  });

  test('does what its control API says', async () => {
    await start();
    await control.setFaults([{ method: 'CreateMachine', effect: 'fail', code: 'ResourceExhausted', times: 1 }]);

    await expect(driver.createMachine(requestOf('m-1', machineClass), callOf())).rejects.toMatchObject({
      code: 'ResourceExhausted',
    });
    const { providerID } = await driver.createMachine(requestOf('m-1', machineClass), callOf());
    await control.plant({ machineName: 'm-2', namespace: 'shoot', className: 'sim-class' });
    expect((await control.vms()).map((vm) => vm.machineName)).toEqual(['m-1', 'm-2']);
    expect(await driver.listMachines(requestOf('m-1', machineClass), callOf())).toHaveLength(2);

    await control.vanish(providerID);
    await expect(driver.getMachineStatus(requestOf('m-1', machineClass), callOf())).rejects.toMatchObject({
      code: 'NotFound',
    });
    expect(await control.calls()).toEqual({ CreateMachine: 2, ListMachines: 1, GetMachineStatus: 1 });

    await control.set({ quota: 0, latencyMs: { list: 1 } });
    expect(await control.settings()).toMatchObject({ quota: 0, latencyMs: { list: 1, create: 10 } });
    await control.reset();
    expect(await control.vms()).toEqual([]);
    expect(await control.settings()).toMatchObject({ quota: null });
    await expect(control.setFaults([{ method: '*', effect: 'fail', code: 'Teapot' as 'OK' }])).rejects.toThrow('code');
    await expect(control.vanish('sim:///none')).rejects.toThrow('does not exist');
  });

  test('loses and doubles nothing when it is killed while it makes VMs', async () => {
    await start();
    const names = Array.from({ length: 40 }, (_, i) => `m-${i}`);
    const interrupted = Promise.all(names.map(create));
    await eventually(async () => (await control.vms()).length > 0);
    await running.end('SIGKILL');
    const before = await interrupted;
    await stop('SIGKILL');

    await start();
    const after = await Promise.all(names.map(create));

    // Anyone who got an answer finds the same VM; nobody got two.
    expect(before.map((id, i) => id ?? after[i])).toEqual(after);
    expect(new Set(after).size).toBe(40);
    expect((await control.vms()).length).toBe(40);
  });

  test('makes Nodes of VMs, and lets them fail and go', async () => {
    const cluster = connectCluster();
    const api = cluster.api();
    const name = `sim-${Math.random().toString(36).slice(2, 8)}`;
    const node = async (): Promise<Node> => {
      const answer = await api.request(`/api/v1/nodes/${name}`);
      if (answer.status !== 200) throw new Error(`${answer.status}`);
      return answer.body as Node;
    };
    const ready = async (): Promise<string | undefined> =>
      (await node()).status?.conditions?.find(({ type }) => type === 'Ready')?.status;
    await start(`--kubeconfig=${cluster.kubeconfig}`, '--join-delay=50ms', '--node-leases', '--pod-stop-time=100ms');

    const { providerID } = await driver.createMachine(requestOf(name, machineClass), callOf());
    const joined = await eventually(node);
    expect(joined.spec?.providerID).toBe(providerID);
    expect(joined.metadata.labels).toMatchObject({ pool: 'blue', 'topology.kubernetes.io/zone': 'zone-7' });
    expect(await ready()).toBe('True');

    await using ns = await namespace(cluster);
    const pods = `/api/v1/namespaces/${ns.name}/pods`;
    const pod = { metadata: { name: 'p' }, spec: { nodeName: name, containers: [{ name: 'c', image: 'i' }] } };
    expect((await api.request(pods, { method: 'POST', body: pod })).status).toBe(201);
    await eventually(async () => ((await api.request(`${pods}/p`)).body as Pod).status?.phase === 'Running');
    await api.request(`${pods}/p`, { method: 'DELETE' });
    await eventually(async () => (await api.request(`${pods}/p`)).status === 404);

    await control.setReadiness(name, 'not-ready');
    expect(await ready()).toBe('False');
    await control.setReadiness(name, 'ready');
    expect(await ready()).toBe('True');
    await control.power(providerID, 'off');
    await eventually(async () => (await ready()) === 'Unknown');
    await control.power(providerID, 'on');
    await eventually(async () => (await ready()) === 'True');
    await control.removeNode(name);
    expect((await api.request(`/api/v1/nodes/${name}`)).status).toBe(404);
    await api.close();
  });

  test('says again that Nodes of whatever id are ready which were called Unknown in an outage, and writes to no other', async () => {
    const cluster = connectCluster();
    const api = cluster.api();
    const contentType = 'application/strategic-merge-patch+json';
    await start(`--kubeconfig=${cluster.kubeconfig}`, '--join-delay=50ms', '--node-leases', '--other-node-ids');
    const names = ['lost', 'told', 'well'].map((word) => `sim-${word}-${Math.random().toString(36).slice(2, 8)}`);
    const [lost = '', told = '', well = ''] = names;
    const leaseOf = (name: string): string => `/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/${name}`;
    const nodeOf = async (name: string): Promise<Node> => (await api.request(`/api/v1/nodes/${name}`)).body as Node;
    const readyOf = async (name: string): Promise<string | undefined> =>
      (await nodeOf(name)).status?.conditions?.find(({ type }) => type === 'Ready')?.status;
    const ids: string[] = [];
    for (const name of names) {
      ids.push((await driver.createMachine(requestOf(name, machineClass), callOf())).providerID);
    }
    await eventually(
      async () => {
        for (const name of names) expect((await api.request(leaseOf(name))).status).toBe(200);
      },
      { timeoutMs: 120_000, describe: 'their Leases' },
    );
    const shown = await Promise.all(names.map(async (name) => (await nodeOf(name)).spec?.providerID));
    expect(shown).toEqual(ids.map((id) => id.replace('sim:///', 'sim://v2/')));
    const before = (await nodeOf(well)).metadata.resourceVersion;

    // What the node lifecycle controller does when no Lease was renewed for long.
    await control.setReadiness(told, 'unknown');
    const conditions = [{ type: 'Ready', status: 'Unknown', reason: 'NodeStatusUnknown', message: 'x' }];
    await api.request(`/api/v1/nodes/${lost}/status`, {
      method: 'PATCH',
      contentType,
      body: { status: { conditions } },
    });
    expect(await readyOf(lost)).toBe('Unknown');
    await eventually(
      async () => {
        const body = { spec: { renewTime: '2000-01-01T00:00:00.000000Z' } };
        for (const name of names) await api.request(leaseOf(name), { method: 'PATCH', contentType, body });
        expect(await readyOf(lost)).toBe('True');
      },
      { timeoutMs: 120_000, intervalMs: 1_000, describe: 'the lost Node to be ready' },
    );

    expect(await readyOf(told)).toBe('Unknown');
    expect((await nodeOf(well)).metadata.resourceVersion).toBe(before);
    for (const name of names) await control.removeNode(name);
    await api.close();
  });

  test('makes no Node of a VM that was deleted before it could join', async () => {
    const cluster = connectCluster();
    const api = cluster.api();
    await start(`--kubeconfig=${cluster.kubeconfig}`, '--join-delay=5s');
    const [gone, stays] = ['gone', 'stays'].map((word) => `sim-${word}-${Math.random().toString(36).slice(2, 8)}`);
    const goneRequest = requestOf(gone ?? '', machineClass);
    await driver.createMachine(goneRequest, callOf());

    await driver.deleteMachine(goneRequest, callOf());
    await driver.createMachine(requestOf(stays ?? '', machineClass), callOf());

    // The later VM has joined, so the earlier one would have, too.
    await eventually(async () => (await api.request(`/api/v1/nodes/${stays}`)).status === 200);
    expect((await api.request(`/api/v1/nodes/${gone}`)).status).toBe(404);
    await control.removeNode(stays ?? '');
    await api.close();
  });
});
