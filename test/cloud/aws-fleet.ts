import { deepEqual } from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

import type { Api } from '../../hack/control-plane/api.ts';
import { applyManifests, type Manifest } from '../../hack/control-plane/apply.ts';
import { freePort } from '../../hack/control-plane/ports.ts';
import { providerProgram } from '../../hack/providers/programs.ts';
import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import { connect, namespace, type TestNamespace } from '../env/environment.ts';
import { eventually } from '../expect/eventually.ts';
import { Ec2, NODES, REGION } from './ec2.ts';
import { ManagerProcess } from './manager-process.ts';

const PATIENCE = { timeoutMs: 300_000, intervalMs: 500 };
const GROUP = '/apis/machine.sapcloud.io/v1alpha1';
const CONTROLLERS = 'machine-deployment,machine-set,machine,machine-class,secret,safety.orphan-vms';
const ADMIN = { user: 'admin', groups: ['system:masters'] };

/** What the provider accepts as credentials. */
export const KEYS = { providerAccessKeyId: 'AKIAEXAMPLE', providerSecretAccessKey: 'very-secret-access-key' };

/** A program that writes its log to a file. */
class LoggedProgram implements AsyncDisposable {
  readonly #file: string;
  #child: ChildProcess | undefined;

  constructor(file: string) {
    this.#file = file;
  }

  start(name: string, flags: readonly string[], env: Readonly<Record<string, string>>): void {
    const log = openSync(this.#file, 'a');
    const program = providerProgram(name, process.env) ?? name;
    this.#child = spawn(program, flags, { stdio: ['ignore', log, log], env: { ...process.env, ...env } });
  }

  get log(): string {
    return readFileSync(this.#file, 'utf8');
  }

  async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    if (this.#child === undefined) return;
    const ended = once(this.#child, 'exit');
    if (this.#child.exitCode !== null || !this.#child.kill(signal)) return;
    await ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end('SIGKILL');
  }
}

/** A MachineDeployment whose machines are EC2 instances, with the programs that make them. Clusters and Nodes there are none. */
export class AwsFleet implements AsyncDisposable {
  readonly ec2: Ec2;
  readonly driver: LoggedProgram;
  readonly tags: Readonly<Record<string, string>>;
  readonly #ns: TestNamespace;
  readonly #api: Api;
  readonly #kubeconfig: string;
  readonly #folder: string;
  readonly #stack: AsyncDisposableStack;

  private constructor(ec2: Ec2, ns: TestNamespace, kubeconfig: string, stack: AsyncDisposableStack) {
    this.ec2 = ec2;
    this.#ns = ns;
    this.#kubeconfig = kubeconfig;
    this.#stack = stack;
    this.#api = connect().api();
    this.#folder = mkdtempSync(path.join(tmpdir(), 'aws-fleet-'));
    this.tags = { [`kubernetes.io/cluster/${ns.name}`]: '1', 'kubernetes.io/role/node': '1' };
    stack.defer(() => rmSync(this.#folder, { recursive: true }));
    stack.defer(() => this.#api.close());
    this.driver = stack.use(new LoggedProgram(path.join(this.#folder, 'driver.log')));
  }

  static async open(): Promise<AwsFleet> {
    const stack = new AsyncDisposableStack();
    const ns = stack.use(await namespace());
    const ec2 = stack.use(await Ec2.start());
    return new AwsFleet(ec2, ns, await connect().kubeconfigFor(ADMIN), stack);
  }

  /** Applies classes `small` and `large`, and a MachineDeployment of three small machines. */
  async apply(credentials: Readonly<Record<string, string>>): Promise<void> {
    const name = this.#ns.name;
    const classes = await Promise.all([this.#class('small', 't3.small'), this.#class('large', 't3.large')]);
    const deployment = {
      apiVersion: 'machine.sapcloud.io/v1alpha1',
      kind: 'MachineDeployment',
      metadata: { name: 'pool', namespace: name },
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
    await this.putSecret(credentials);
    await applyManifests(this.#api, [...classes, deployment]);
  }

  async putSecret(data: Readonly<Record<string, string>>): Promise<void> {
    const secret = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'aws', namespace: this.#ns.name },
      stringData: { userData: '#!/bin/sh\n', ...data },
    };
    await applyManifests(this.#api, [secret]);
  }

  async #class(name: string, machineType: string): Promise<Manifest> {
    const [ami, subnet, group] = await Promise.all([
      this.ec2.first('DescribeImages', 'imageId'),
      this.ec2.first('DescribeSubnets', 'subnetId'),
      this.ec2.first('DescribeSecurityGroups', 'groupId'),
    ]);
    return {
      apiVersion: 'machine.sapcloud.io/v1alpha1',
      kind: 'MachineClass',
      metadata: { name, namespace: this.#ns.name },
      provider: 'AWS',
      providerSpec: {
        ami,
        region: REGION,
        machineType,
        iam: { name: NODES },
        keyName: NODES,
        blockDevices: [{ ebs: { volumeSize: 20, volumeType: 'gp2' } }],
        networkInterfaces: [{ subnetID: subnet, securityGroupIDs: [group] }],
        tags: this.tags,
      },
      secretRef: { name: 'aws', namespace: this.#ns.name },
    };
  }

  async startDriver(): Promise<void> {
    const flags = [`--address=unix://${this.#socket}`, `--state-directory=${this.#folder}/state`];
    this.driver.start('aws', flags, { AWS_ENDPOINT_URL_EC2: this.ec2.url });
    await eventually(() => existsSync(this.#socket), PATIENCE);
  }

  get #socket(): string {
    return path.join(this.#folder, 'driver.sock');
  }

  async startManager(): Promise<ManagerProcess> {
    const manager = await ManagerProcess.start({
      kubeconfig: this.#kubeconfig,
      namespace: this.#ns.name,
      flags: {
        driver: `AWS=unix://${this.#socket}`,
        controllers: CONTROLLERS,
        'leader-elect': 'true',
        'target-kubeconfig': 'none',
        'machine-safety-orphan-vms-period': '2s',
        'machine-safety-orphan-vms-grace': '2s',
      },
    });
    return this.#stack.use(manager);
  }

  /** The provider's own machine-controller and machine-controller-manager. Resolves with what ends both. */
  async startOriginal(): Promise<() => Promise<void>> {
    const programs = await Promise.all(
      ['aws.machine-controller', 'machine-controller-manager'].map(async (name) => {
        const program = this.#stack.use(new LoggedProgram(path.join(this.#folder, `${name}.log`)));
        const flags = [
          `--control-kubeconfig=${this.#kubeconfig}`,
          '--target-kubeconfig=none',
          `--namespace=${this.#ns.name}`,
          `--port=${await freePort()}`,
        ];
        program.start(name, flags, { AWS_ENDPOINT_URL_EC2: this.ec2.url });
        return program;
      }),
    );
    return async () => {
      await Promise.all(programs.map((program) => program.end('SIGTERM')));
    };
  }

  async machines(): Promise<readonly Machine[]> {
    return (await this.#api.send<{ items: readonly Machine[] }>('GET', this.#path('machines'))).items;
  }

  /** Until there are so many Machines, each with an instance of its own and of this type, and no instance besides. */
  async settled(count: number, type: string): Promise<void> {
    await eventually(async () => {
      const items = await this.machines();
      const phases = items.map(({ status }) => status?.currentStatus?.phase);
      deepEqual(phases, Array(count).fill('Available'));
      const ids = items.map(({ spec }) => spec.providerID?.split('/').at(-1) ?? '').toSorted();
      const instances = await this.ec2.instances();
      deepEqual(instances.map(({ id }) => id).toSorted(), ids);
      deepEqual(new Set(instances.map((one) => one.type)), new Set(count === 0 ? [] : [type]));
    }, PATIENCE);
  }

  async scale(replicas: number): Promise<void> {
    await this.#api.send('PATCH', this.#path('machinedeployments', 'pool'), { spec: { replicas } });
  }

  /** Rolls to a class; resolves once the first instance of its type is there. */
  async roll(name: string, type: string): Promise<void> {
    const template = { spec: { class: { name } } };
    await this.#api.send('PATCH', this.#path('machinedeployments', 'pool'), { spec: { template } });
    await eventually(async () => (await this.ec2.instances()).some((one) => one.type === type), PATIENCE);
  }

  /** Deletes everything; resolves when nothing is left of it. */
  async remove(): Promise<void> {
    for (const [kind, name] of [
      ['machinedeployments', 'pool'],
      ['machineclasses', 'small'],
      ['machineclasses', 'large'],
    ] as const)
      await this.#api.send('DELETE', this.#path(kind, name));
    await eventually(async () => {
      const { status } = await this.#api.request(this.#path('machineclasses', 'large'));
      deepEqual([status, await this.ec2.instances()], [404, []]);
    }, PATIENCE);
  }

  #path(resource: string, name = ''): string {
    return `${GROUP}/namespaces/${this.#ns.name}/${resource}/${name}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack[Symbol.asyncDispose]();
  }
}
