import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { expect, test } from '@jest/globals';

import { applyManifests, type Manifest } from '../../hack/control-plane/apply.ts';
import { providerProgram } from '../../hack/providers/programs.ts';
import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import { Ec2, NODES, REGION } from '../cloud/ec2.ts';
import { ManagerProcess } from '../cloud/manager-process.ts';
import { connect, namespace } from '../env/environment.ts';
import { eventually } from '../expect/eventually.ts';

/* The real provider for AWS of machine-controller-manager, served by packages/mcm-provider. EC2 is played by moto. */
const PATIENCE = { timeoutMs: 300_000, intervalMs: 500 };
const GROUP = '/apis/machine.sapcloud.io/v1alpha1';
const CONTROLLERS = 'machine-deployment,machine-set,machine,machine-class,secret,safety.orphan-vms';

/** The driver, as its user starts it. */
class AwsDriver implements AsyncDisposable {
  readonly address: string;
  readonly #folder: string;
  readonly #endpoint: string;
  #child: ChildProcess | undefined;

  constructor(endpoint: string) {
    this.#folder = mkdtempSync(path.join(tmpdir(), 'aws-driver-'));
    this.#endpoint = endpoint;
    this.address = `unix://${this.#folder}/driver.sock`;
  }

  async start(): Promise<void> {
    const log = openSync(path.join(this.#folder, 'log'), 'a');
    const flags = [`--address=${this.address}`, `--state-directory=${this.#folder}/state`];
    this.#child = spawn(providerProgram('aws', process.env) ?? 'aws-driver', flags, {
      stdio: ['ignore', log, log],
      env: { ...process.env, AWS_ENDPOINT_URL_EC2: this.#endpoint },
    });
    await eventually(() => existsSync(`${this.#folder}/driver.sock`), PATIENCE);
  }

  async kill(): Promise<void> {
    if (this.#child === undefined) return;
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await ended;
  }

  get log(): string {
    return readFileSync(path.join(this.#folder, 'log'), 'utf8');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true });
  }
}

test('machines of the real provider for AWS come, roll, are replaced and go, whatever is killed, and nothing is left of them', async () => {
  await using stack = new AsyncDisposableStack();
  const ns = stack.use(await namespace());
  const connection = connect();
  const api = connection.api();
  stack.defer(() => api.close());
  const ec2 = stack.use(await Ec2.start());
  const driver = stack.use(new AwsDriver(ec2.url));
  await driver.start();

  const of = (resource: string, name = ''): string => `${GROUP}/namespaces/${ns.name}/${resource}/${name}`;
  const tags = { [`kubernetes.io/cluster/${ns.name}`]: '1', 'kubernetes.io/role/node': '1' };
  const [ami, subnet, group] = await Promise.all([
    ec2.first('DescribeImages', 'imageId'),
    ec2.first('DescribeSubnets', 'subnetId'),
    ec2.first('DescribeSecurityGroups', 'groupId'),
  ]);
  const machineClass = (name: string, machineType: string): Manifest => ({
    apiVersion: 'machine.sapcloud.io/v1alpha1',
    kind: 'MachineClass',
    metadata: { name, namespace: ns.name },
    provider: 'AWS',
    providerSpec: {
      ami,
      region: REGION,
      machineType,
      iam: { name: NODES },
      keyName: NODES,
      blockDevices: [{ ebs: { volumeSize: 20, volumeType: 'gp2' } }],
      networkInterfaces: [{ subnetID: subnet, securityGroupIDs: [group] }],
      tags,
    },
    secretRef: { name: 'aws', namespace: ns.name },
  });
  const secret = (data: Readonly<Record<string, string>>): Manifest => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'aws', namespace: ns.name },
    stringData: { userData: '#!/bin/sh\n', ...data },
  });
  const keys = { providerAccessKeyId: 'AKIAEXAMPLE', providerSecretAccessKey: 'very-secret-access-key' };
  const deployment = {
    apiVersion: 'machine.sapcloud.io/v1alpha1',
    kind: 'MachineDeployment',
    metadata: { name: 'pool', namespace: ns.name },
    spec: {
      replicas: 3,
      selector: { matchLabels: { pool: 'pool' } },
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
      template: {
        metadata: { labels: { pool: 'pool' } },
        spec: { class: { kind: 'MachineClass', name: 'small' } },
      },
    },
  };
  const startManager = async (): Promise<ManagerProcess> =>
    await ManagerProcess.start({
      kubeconfig: await connection.kubeconfigFor({ user: 'admin', groups: ['system:masters'] }),
      namespace: ns.name,
      flags: {
        driver: `AWS=${driver.address}`,
        controllers: CONTROLLERS,
        'target-kubeconfig': 'none',
        'machine-safety-orphan-vms-period': '2s',
        'machine-safety-orphan-vms-grace': '2s',
      },
    });
  const machines = async (): Promise<readonly Machine[]> =>
    (await api.send<{ items: readonly Machine[] }>('GET', of('machines'))).items;
  /** Until there are so many Machines, each with an instance of its own and of this type, and no instance besides. */
  const settled = async (count: number, type: string): Promise<void> =>
    await eventually(async () => {
      const items = await machines();
      expect(items.map(({ status }) => status?.currentStatus?.phase)).toEqual(Array(count).fill('Available'));
      const ids = items.map(({ spec }) => spec.providerID?.split('/').at(-1) ?? '').toSorted();
      const instances = await ec2.instances();
      expect(instances.map(({ id }) => id).toSorted()).toEqual(ids);
      expect(new Set(instances.map((one) => one.type))).toEqual(new Set(count === 0 ? [] : [type]));
    }, PATIENCE);
  const scale = async (replicas: number): Promise<unknown> =>
    await api.send('PATCH', of('machinedeployments', 'pool'), { spec: { replicas } });

  // Wrong credentials: said in the provider's words, and nothing is made.
  await applyManifests(api, [
    secret({}),
    machineClass('small', 't3.small'),
    machineClass('large', 't3.large'),
    deployment,
  ]);
  let manager = stack.use(await startManager());
  await eventually(async () => {
    const descriptions = (await machines()).map(({ status }) => status?.lastOperation?.description ?? '');
    expect(descriptions).toEqual(Array(3).fill(expect.stringContaining('providerAccessKeyId')));
  }, PATIENCE);
  expect(await ec2.instances()).toEqual([]);

  await applyManifests(api, [secret(keys)]);
  await settled(3, 't3.small');

  // A roll, in the middle of which the driver and the manager are killed.
  await api.send('PATCH', of('machinedeployments', 'pool'), {
    spec: { template: { spec: { class: { name: 'large' } } } },
  });
  await eventually(async () => (await ec2.instances()).some(({ type }) => type === 't3.large'), PATIENCE);
  await Promise.all([driver.kill(), manager.end('SIGKILL')]);
  await driver.start();
  manager = stack.use(await startManager());
  await settled(3, 't3.large');

  // An instance is terminated by somebody else.
  const [victim] = await ec2.instances();
  await ec2.call('TerminateInstances', { 'InstanceId.1': victim?.id ?? '' });
  await eventually(async () => (await machines()).every(({ metadata }) => metadata.name !== victim?.name), PATIENCE);
  await settled(3, 't3.large');

  // Somebody makes an instance with the tags of the cluster; one of another cluster is none of our business.
  const stray = {
    ImageId: ami,
    MinCount: '1',
    MaxCount: '1',
    'NetworkInterface.1.DeviceIndex': '0',
    'NetworkInterface.1.SubnetId': subnet,
    'NetworkInterface.1.DeleteOnTermination': 'true',
    'TagSpecification.1.ResourceType': 'instance',
  };
  const tagged = (pairs: readonly (readonly [string, string])[]): Record<string, string> =>
    Object.fromEntries(
      pairs.flatMap(([key, value], index) => [
        [`TagSpecification.1.Tag.${index + 1}.Key`, key],
        [`TagSpecification.1.Tag.${index + 1}.Value`, value],
      ]),
    );
  await ec2.call('RunInstances', { ...stray, ...tagged([['Name', 'stray'], ...Object.entries(tags)]) });
  await ec2.call('RunInstances', {
    ...stray,
    ...tagged([
      ['Name', 'foreign'],
      ['kubernetes.io/cluster/other', '1'],
    ]),
  });
  await scale(6);
  await eventually(async () => {
    const names = (await ec2.instances()).map(({ name }) => name);
    expect(names).toHaveLength(7);
    expect(names).not.toContain('stray');
    expect(names).toContain('foreign');
  }, PATIENCE);
  const foreign = (await ec2.instances()).find(({ name }) => name === 'foreign');
  await ec2.call('TerminateInstances', { 'InstanceId.1': foreign?.id ?? '' });
  await settled(6, 't3.large');

  await scale(0);
  await settled(0, '');
  for (const [kind, name] of [
    ['machinedeployments', 'pool'],
    ['machineclasses', 'small'],
    ['machineclasses', 'large'],
  ] as const)
    await api.send('DELETE', of(kind, name));
  await eventually(async () => (await api.request(of('machineclasses', 'large'))).status === 404, PATIENCE);
  expect(await ec2.leftovers()).toEqual([]);
  expect(driver.log).not.toContain(keys.providerSecretAccessKey);
  expect(manager.output).not.toContain(keys.providerSecretAccessKey);
}, 3_600_000);
