import { deepEqual } from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

import type { Api } from '../../hack/control-plane/api.ts';
import { applyManifests } from '../../hack/control-plane/apply.ts';
import { freePort } from '../../hack/control-plane/ports.ts';
import { providerProgram } from '../../hack/providers/programs.ts';
import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import type { Lease } from '../../pkg/apis/wire.ts';
import { connect, namespace } from '../env/environment.ts';
import { eventually } from '../expect/eventually.ts';
import { LoggedProgram } from './logged-program.ts';
import { ManagerProcess } from './manager-process.ts';
import type { Site } from './site.ts';

const PATIENCE = { timeoutMs: 300_000, intervalMs: 500 };
const GROUP = '/apis/machine.sapcloud.io/v1alpha1';
const CONTROLLERS = 'machine-deployment,machine-set,machine,machine-class,secret,safety.orphan-vms';
const ADMIN = { user: 'admin', groups: ['system:masters'] };
/** Of the machine controllers on both sides. */
const LEASE = 'machine-controller';

/** A VM that has not been deleted. */
export interface SeenVM {
  /** The last part of its provider ID. */
  readonly id: string;
  readonly name: string;
  /** Its size, in the cloud's words. */
  readonly type: string;
}

/** A cloud for which there is a provider of machine-controller-manager, as its user sees it. */
export interface ProviderCloud {
  /** Name of the provider's driver. */
  readonly name: string;
  /** Value of `provider` in its MachineClasses. */
  readonly provider: string;
  /** What its programs need to find it. */
  readonly env: Readonly<Record<string, string>>;
  /** The first sizes of machines: what VMs of classes `small` and `large` have as their type. */
  readonly types: Readonly<Record<'small' | 'large', string>>;
  /** `providerSpec` of a class. */
  spec(size: 'small' | 'large', cluster: string): Promise<Readonly<Record<string, unknown>>>;
  vms(): Promise<readonly SeenVM[]>;
}

/** What runs over a fleet: a manager with a driver, or the original pair. */
export interface Running {
  /** Resolves when all of its programs have ended. */
  end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void>;
}

/** Which programs run over a fleet. */
export type Side = 'Machinist' | 'the original';

/**
 * A MachineDeployment whose machines are VMs of a cloud, with the programs that make them: the driver of a provider and a manager, or the
 * provider's own machine-controller and machine-controller-manager.
 */
export class ProviderFleet<C extends ProviderCloud> implements AsyncDisposable {
  readonly cloud: C;
  readonly driver: LoggedProgram;
  readonly namespace: string;
  readonly #api: Api;
  readonly #kubeconfig: string;
  readonly #target: string;
  readonly #folder: string;
  readonly #stack: AsyncDisposableStack;

  private constructor(
    cloud: C,
    where: { readonly namespace: string; readonly api: Api; readonly kubeconfig: string; readonly hasNodes: boolean },
    stack: AsyncDisposableStack,
  ) {
    this.cloud = cloud;
    this.namespace = where.namespace;
    this.#api = where.api;
    this.#kubeconfig = where.kubeconfig;
    this.#target = where.hasNodes ? where.kubeconfig : 'none';
    this.#stack = stack;
    this.#folder = mkdtempSync(path.join(tmpdir(), 'provider-fleet-'));
    stack.defer(() => rmSync(this.#folder, { recursive: true }));
    this.driver = stack.use(new LoggedProgram(path.join(this.#folder, 'driver.log')));
  }

  /** Without Nodes, or with those of a control plane of its own. */
  static async open<C extends ProviderCloud>(cloud: C, site?: Site): Promise<ProviderFleet<C>> {
    const stack = new AsyncDisposableStack();
    const connection = site?.plane.connection ?? connect();
    const api = connection.api();
    const where = {
      namespace: site === undefined ? stack.use(await namespace()).name : 'default',
      api,
      kubeconfig: await connection.kubeconfigFor(ADMIN),
      hasNodes: site !== undefined,
    };
    stack.defer(async () => await api.close());
    return new ProviderFleet(cloud, where, stack);
  }

  /** Applies classes `small` and `large`, and a MachineDeployment of three small machines. */
  async apply(credentials: Readonly<Record<string, string>>): Promise<void> {
    const classes = (['small', 'large'] as const).map(async (size) => ({
      apiVersion: 'machine.sapcloud.io/v1alpha1',
      kind: 'MachineClass',
      metadata: { name: size, namespace: this.namespace },
      provider: this.cloud.provider,
      providerSpec: await this.cloud.spec(size, this.namespace),
      secretRef: { name: 'credentials', namespace: this.namespace },
    }));
    const deployment = {
      apiVersion: 'machine.sapcloud.io/v1alpha1',
      kind: 'MachineDeployment',
      metadata: { name: 'pool', namespace: this.namespace },
      spec: {
        replicas: 3,
        selector: { matchLabels: { pool: 'pool' } },
        strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
        template: {
          metadata: { labels: { pool: 'pool' } },
          spec: { class: { kind: 'MachineClass', name: 'small' }, healthTimeout: '10s' },
        },
      },
    };
    await this.putSecret(credentials);
    await applyManifests(this.#api, [...(await Promise.all(classes)), deployment]);
  }

  async putSecret(data: Readonly<Record<string, string>>): Promise<void> {
    const secret = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'credentials', namespace: this.namespace },
      stringData: { userData: '#!/bin/sh\n', ...data },
    };
    await applyManifests(this.#api, [secret]);
  }

  async startDriver(): Promise<void> {
    const flags = [`--address=unix://${this.#socket}`, `--state-directory=${this.#folder}/state`];
    const program = providerProgram(this.cloud.name, process.env) ?? this.cloud.name;
    rmSync(this.#socket, { force: true }); // of one that was killed
    this.driver.start(program, flags, this.cloud.env);
    await eventually(() => existsSync(this.#socket), PATIENCE);
  }

  get #socket(): string {
    return path.join(this.#folder, 'driver.sock');
  }

  async startManager(): Promise<ManagerProcess> {
    const manager = await ManagerProcess.start({
      kubeconfig: this.#kubeconfig,
      namespace: this.namespace,
      flags: {
        driver: `${this.cloud.provider}=unix://${this.#socket}`,
        controllers: CONTROLLERS,
        'leader-elect': 'true',
        'target-kubeconfig': this.#target,
        'machine-safety-orphan-vms-period': '2s',
        'machine-safety-orphan-vms-grace': '2s',
      },
    });
    return this.#stack.use(manager);
  }

  /** Starts the programs of a side. */
  async start(side: Side): Promise<Running> {
    if (side === 'the original') return await this.#startOriginal();
    await this.startDriver();
    const manager = await this.startManager();
    return {
      end: async (signal) => {
        await manager.end(signal);
        await this.driver.end(signal);
      },
    };
  }

  /** The provider's own machine-controller and machine-controller-manager. */
  async #startOriginal(): Promise<Running> {
    const names = [`${this.cloud.name}.machine-controller`, 'machine-controller-manager'];
    const programs = await Promise.all(
      names.map(async (name) => {
        const program = this.#stack.use(new LoggedProgram(path.join(this.#folder, `${name}.log`)));
        const flags = [
          `--control-kubeconfig=${this.#kubeconfig}`,
          `--target-kubeconfig=${this.#target}`,
          `--namespace=${this.namespace}`,
          `--port=${await freePort()}`,
        ];
        program.start(providerProgram(name, process.env) ?? name, flags, this.cloud.env);
        return program;
      }),
    );
    return {
      end: async (signal) => {
        await Promise.all(programs.map((program) => program.end(signal)));
      },
    };
  }

  /** Who has the lease of the machine controllers; it is kept by one that was killed until it runs out. */
  async leader(): Promise<string | undefined> {
    const leases = `/apis/coordination.k8s.io/v1/namespaces/${this.namespace}/leases`;
    return (await this.#api.send<Lease>('GET', `${leases}/${LEASE}`)).spec?.holderIdentity;
  }

  async machines(): Promise<readonly Machine[]> {
    return (await this.#api.send<{ items: readonly Machine[] }>('GET', this.#path('machines'))).items;
  }

  /** Until there are so many Machines, each whole and with a VM of its own of this size, and no VM besides. */
  async settled(count: number, size: 'small' | 'large'): Promise<void> {
    const phase = this.#target === 'none' ? 'Available' : 'Running';
    await eventually(async () => {
      const items = await this.machines();
      deepEqual(
        items.map(({ status }) => status?.currentStatus?.phase),
        Array(count).fill(phase),
      );
      const ids = items.map(({ spec }) => spec.providerID?.split('/').at(-1) ?? '').toSorted();
      const vms = await this.cloud.vms();
      deepEqual(vms.map(({ id }) => id).toSorted(), ids);
      deepEqual(new Set(vms.map(({ type }) => type)), new Set(count === 0 ? [] : [this.cloud.types[size]]));
    }, PATIENCE);
  }

  /** IDs of all VMs, in order. */
  async ids(): Promise<readonly string[]> {
    return (await this.cloud.vms()).map(({ id }) => id).toSorted();
  }

  async scale(replicas: number): Promise<void> {
    await this.#api.send('PATCH', this.#path('machinedeployments', 'pool'), { spec: { replicas } });
  }

  /** Rolls to the large class; resolves once the first VM of it is there. */
  async roll(): Promise<void> {
    const template = { spec: { class: { name: 'large' } } };
    await this.#api.send('PATCH', this.#path('machinedeployments', 'pool'), { spec: { template } });
    await eventually(
      async () => (await this.cloud.vms()).some(({ type }) => type === this.cloud.types.large),
      PATIENCE,
    );
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
      deepEqual([status, await this.cloud.vms()], [404, []]);
    }, PATIENCE);
  }

  #path(resource: string, name = ''): string {
    return `${GROUP}/namespaces/${this.namespace}/${resource}/${name}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack[Symbol.asyncDispose]();
  }
}
