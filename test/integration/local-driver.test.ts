import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';

import { kubeconfig } from '../../hack/control-plane/kubeconfig.ts';
import type { Node } from '../../pkg/apis/wire.ts';
import type { GrpcDriver } from '../../pkg/driver/grpc/client.ts';
import { endAll } from '../../packages/providers/local/end-all.ts';
import { kubeletLeftoversIn } from '../../packages/providers/local/kubelet-leftovers.ts';
import type { LocalVM } from '../../packages/providers/local/vm.ts';
import { isAlive } from '../../pkg/drivers/process-identity.ts';
import type { ProcessIdentity } from '../../pkg/drivers/process-identity.ts';
import { DriverProcess } from '../drivers/driver-process.ts';
import { callOf, classOf, connect, requestOf } from '../drivers/requests.ts';
import { connect as connectCluster } from '../env/environment.ts';
import { bootstrapToken } from '../env/kubelet.ts';
import { eventually } from '../expect/eventually.ts';

const machineClass = classOf('local', { nodeLabels: { pool: 'blue' }, taints: ['dedicated=tests:NoSchedule'] });

describe('local machines', () => {
  const cluster = connectCluster();
  let directory: string;
  let running: DriverProcess;
  let driver: GrpcDriver;
  let name: string;

  const state = (): string => join(directory, 'state');
  const start = async (): Promise<void> => {
    running = await DriverProcess.start('local-driver', [
      `--address=unix://${directory}/driver.sock`,
      `--state-directory=${state()}`,
      `--kubelet-binary=${cluster.programs.kubemark?.path}`,
    ]);
  };
  const userDataWith = (token: string): string => kubeconfig({ url: cluster.url, ca: cluster.ca, identity: { token } });
  const request = (userData: string) => requestOf(name, machineClass, { userData });
  /** Folders of machines, and their kubelets as the driver wrote them down. */
  const machines = (): readonly { folder: string; vm: LocalVM & { process: ProcessIdentity } }[] =>
    readdirSync(join(state(), 'vms')).map((id) => {
      const folder = join(state(), 'vms', id);
      return {
        folder,
        vm: JSON.parse(readFileSync(join(folder, 'vm.json'), 'utf8')) as LocalVM & { process: ProcessIdentity },
      };
    });
  const seenNode = async (): Promise<Node> => {
    const api = cluster.api();
    const answer = await api.request(`/api/v1/nodes/${name}`);
    await api.close();
    if (answer.status !== 200) throw new Error(`GET node: ${answer.status}`);
    return answer.body as Node;
  };
  const readiness = async (): Promise<string | undefined> =>
    (await seenNode()).status?.conditions?.find(({ type }) => type === 'Ready')?.status;
  /** Nobody but the kubelet itself has told the Node whose it is: no manager is at work. */
  const shownMachine = async (): Promise<string | undefined> =>
    (await seenNode()).metadata.labels?.['node.gardener.cloud/machine-name'];

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'local-'));
    name = `local-${Math.random().toString(36).slice(2, 8)}`;
    await start();
    driver = connect(join(directory, 'driver.sock'));
  });

  afterEach(async () => {
    await driver.close();
    await running.end('SIGKILL');
    await endAll(state());
    const api = cluster.api();
    await api.request(`/api/v1/nodes/${name}`, { method: 'DELETE' });
    await api.close();
    await rm(directory, { recursive: true, force: true });
  });

  test('join with the token of their user data, survive the driver, die and go', async () => {
    const userData = userDataWith(await bootstrapToken(cluster));
    const { providerID } = await driver.createMachine(request(userData), callOf());
    await eventually(async () => (await readiness()) === 'True', { timeoutMs: 120_000 });
    expect(await shownMachine()).toBe(name);
    const [machine] = machines();
    const kubelet = machine?.vm.process ?? { pid: 0, startTime: '', bootID: '' };

    // The driver is killed and comes back: same machine, same process.
    await running.end('SIGKILL');
    expect(isAlive(kubelet)).toBe(true);
    await start();
    expect(await driver.getMachineStatus(request(userData), callOf())).toMatchObject({ providerID, nodeName: name });
    expect((await driver.createMachine(request(userData), callOf())).providerID).toBe(providerID);
    expect(machines()).toHaveLength(1);

    // The machine fails: its Node says so, the VM is still there, switched off.
    process.kill(kubelet.pid, 'SIGKILL');
    await eventually(async () => (await readiness()) === 'Unknown', { timeoutMs: 120_000 });
    expect(await driver.getMachineStatus(request(userData), callOf())).toMatchObject({ providerID });
    await running.end('SIGTERM');
    await start();
    expect(await driver.listMachines(request(userData), callOf())).toHaveLength(1);

    await driver.deleteMachine(request(userData), callOf());
    expect(machines()).toEqual([]);
    expect(existsSync(machine?.folder ?? '')).toBe(false);
  });

  test('are found again when the driver died before it wrote down which process it had started', async () => {
    const userData = userDataWith(await bootstrapToken(cluster));
    const { providerID } = await driver.createMachine(request(userData), callOf());
    const [machine] = machines();
    await running.end('SIGKILL');
    const { process: kubelet, ...unfinished } = machine?.vm ?? {};
    writeFileSync(join(machine?.folder ?? '', 'vm.json'), JSON.stringify(unfinished));

    await start();

    expect(await driver.getMachineStatus(request(userData), callOf())).toMatchObject({ providerID });
    expect(machines().map(({ vm }) => vm.process)).toEqual([kubelet]);
  });

  test('end with all their files when they are deleted', async () => {
    const userData = userDataWith(await bootstrapToken(cluster));
    await driver.createMachine(request(userData), callOf());
    await eventually(async () => (await readiness()) === 'True', { timeoutMs: 120_000 });
    const [machine] = machines();
    const kubelet = machine?.vm.process ?? { pid: 0, startTime: '', bootID: '' };
    const elsewhere = kubeletLeftoversIn(readFileSync(join(machine?.folder ?? '', 'kubelet.log'), 'utf8'));
    expect(elsewhere).toEqual([expect.stringContaining('hollow-kubelet'), expect.stringContaining('.sock')]);

    await driver.deleteMachine(request(userData), callOf());

    expect(isAlive(kubelet)).toBe(false);
    expect(readdirSync(join(state(), 'vms'))).toEqual([]);
    expect(elsewhere.filter((path) => existsSync(path))).toEqual([]);
    await expect(driver.getMachineStatus(request(userData), callOf())).rejects.toMatchObject({ code: 'NotFound' });
  });

  test('cannot join with a token that is not known, and are there all the same', async () => {
    const userData = userDataWith('zzzzzz.0123456789abcdef');
    await driver.createMachine(request(userData), callOf());
    const [machine] = machines();
    const log = (): string => readFileSync(join(machine?.folder ?? '', 'kubelet.log'), 'utf8');

    await eventually(() => log().includes('asked for the client to provide credentials'), {
      timeoutMs: 120_000,
      describe: log,
    });

    await expect(readiness()).rejects.toThrow('404');
    await expect(driver.getMachineStatus(request(userData), callOf())).resolves.toMatchObject({ nodeName: name });
  });

  test('are refused when the token was not filled in', async () => {
    await expect(driver.createMachine(request(userDataWith('<<BOOTSTRAP_TOKEN>>')), callOf())).rejects.toMatchObject({
      code: 'InvalidArgument',
      terminal: true,
      detail: expect.stringContaining('<<BOOTSTRAP_TOKEN>>'),
    });
    expect(machines()).toEqual([]);
  });

  test('end together, and no others do', async () => {
    const userData = userDataWith(await bootstrapToken(cluster));
    await driver.createMachine(request(userData), callOf());
    await driver.createMachine(requestOf(`${name}-b`, machineClass, { userData }), callOf());
    const kubelets = machines().map(({ vm }) => vm.process);

    await expect(endAll(state())).rejects.toThrow(/is in use by/);
    await running.end('SIGKILL');
    const ended = await endAll(state());

    expect(ended.toSorted()).toEqual([name, `${name}-b`]);
    expect(kubelets.some(isAlive)).toBe(false);
    expect(machines()).toEqual([]);
    await start();
    expect(await driver.listMachines(request(userData), callOf())).toEqual([]);
  });
});
