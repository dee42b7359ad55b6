import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

import { expect, test } from '@jest/globals';

import { applyManifests, type Manifest, parseManifests, readManifests } from '../../hack/control-plane/apply.ts';
import { resolveProgram } from '../../hack/control-plane/binaries.ts';
import { PRE_TERMINATE_HOOK_PREFIX } from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import { InProcessManager } from '../cloud/manager.ts';
import { QUICK, SimulatedCloud } from '../cloud/sim-cloud.ts';
import { Site } from '../cloud/site.ts';
import { ContractSimulator, SIM_MACHINE, templateOf } from '../contract-simulator.ts';
import { DriverProcess } from '../drivers/driver-process.ts';
import { kustomize } from '../env/kustomize.ts';
import { WITHOUT_KUBELETS } from '../env/environment.ts';
import { eventually } from '../expect/eventually.ts';
import { SimProvider } from '../sim-provider.ts';
import { KubeSession } from './kube-session.ts';

/*
 * What becomes of the VMs when somebody deletes the namespace of the Machines: kube-controller-manager then deletes all that it holds, our
 * permissions and Leases included, and the API server takes nothing new in it.
 */
const ROOT = resolve(import.meta.dirname, '../..');
const BINDING = '/apis/rbac.authorization.k8s.io/v1/namespaces/machines/rolebindings/machinist-machines';
const PATIENCE = { timeoutMs: 120_000, intervalMs: 200 };

function shipped(file: string): Manifest[] {
  return parseManifests(readFileSync(join(ROOT, file), 'utf8'));
}

/** A control plane whose kube-controller-manager ends namespaces, with what is applied to it as an administrator does. */
class Installation implements AsyncDisposable {
  readonly site: Site;
  readonly cloud: SimulatedCloud;
  readonly #stack: AsyncDisposableStack;

  private constructor(site: Site, cloud: SimulatedCloud, stack: AsyncDisposableStack) {
    this.site = site;
    this.cloud = cloud;
    this.#stack = stack;
  }

  /** With `isReal`, always on kube-apiserver. */
  static async open({ isReal = false } = {}): Promise<Installation> {
    await using stack = new AsyncDisposableStack();
    const options = { controllerManager: true, ...WITHOUT_KUBELETS };
    const site = stack.use(await (isReal ? Site.open(options) : Site.drawn({ endsNamespaces: true, ...options })));
    const cloud = stack.use(await SimulatedCloud.start({ site, latencyMs: QUICK }));
    return new Installation(site, cloud, stack.move());
  }

  apply(manifests: readonly Manifest[]): Promise<unknown> {
    return applyManifests(this.site.api, manifests);
  }

  /** The manager with the flags of its pod and the token of its service account, elected. */
  async start(pod: {
    readonly namespace: string;
    readonly machines: string;
    readonly flags?: Readonly<Record<string, string>>;
  }): Promise<InProcessManager> {
    const account = `/api/v1/namespaces/${pod.namespace}/serviceaccounts/machinist/token`;
    const { status } = await this.site.api.send<{ status: { token: string } }>('POST', account, { spec: {} });
    return InProcessManager.start({
      kubeconfig: this.site.plane.connection.kubeconfigWithToken(`pod-in-${pod.namespace}`, status.token),
      namespace: pod.machines,
      driver: this.cloud.address,
      flags: { 'leader-elect': 'true', 'leader-elect-resource-namespace': pod.namespace, ...pod.flags },
    });
  }

  /** Two machines of the simulated cloud that run in `namespace`. */
  async runMachines(namespace: string): Promise<void> {
    await this.apply(shipped('deploy/examples/sim.yaml').map((manifest) => inNamespace(namespace, manifest)));
    const path = `/apis/machine.sapcloud.io/v1alpha1/namespaces/${namespace}/machines`;
    await eventually(async () => {
      const { items } = await this.site.api.send<{ items: Machine[] }>('GET', path);
      return items.filter(({ status }) => status?.currentStatus?.phase === 'Running').length === 2;
    }, PATIENCE);
  }

  /** Holds the deletion of the VMs of all Machines there up, or no longer. */
  async holdDeletions(namespace: string, isHeld: boolean): Promise<void> {
    const path = `/apis/machine.sapcloud.io/v1alpha1/namespaces/${namespace}/machines`;
    const { items } = await this.site.api.send<{ items: Machine[] }>('GET', path);
    for (const { metadata } of items) {
      await this.site.api.request(`${path}/${metadata.name}`, {
        method: 'PATCH',
        contentType: 'application/merge-patch+json',
        body: { metadata: { annotations: { [`${PRE_TERMINATE_HOOK_PREFIX}/test`]: isHeld ? 'held' : null } } },
      });
    }
  }

  async deleteNamespace(name: string): Promise<void> {
    await this.site.api.send('DELETE', `/api/v1/namespaces/${name}`);
  }

  /** By Helm, as docs/operations/rbac.md says: it takes over what the lost installation has left beside its namespace. */
  async installRescue(): Promise<void> {
    const { path: helm } = await resolveProgram('helm');
    await promisify(execFile)(helm, [
      `--kubeconfig=${this.site.plane.connection.kubeconfig}`,
      'install',
      'machinist',
      join(ROOT, 'deploy/helm/machinist'),
      '--namespace=machinist-rescue',
      '--skip-crds',
      '--take-ownership',
      '--force-conflicts',
      '--set=layout=two-namespaces,machinesNamespace=machinist',
    ]);
  }

  async status(path: string): Promise<number> {
    return (await this.site.api.request(path)).status;
  }

  /** Resolves when the namespace is gone. */
  async untilGone(name: string): Promise<void> {
    await eventually(async () => (await this.status(`/api/v1/namespaces/${name}`)) === 404, {
      ...PATIENCE,
      describe: `namespace ${name} to go`,
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}

function inNamespace(namespace: string, manifest: Manifest): Manifest {
  return JSON.parse(
    JSON.stringify(manifest).replaceAll('"namespace":"machinist"', `"namespace":"${namespace}"`),
  ) as Manifest;
}

test('layout two-namespaces: when the namespace of the Machines is deleted every VM is, and then the namespace goes', async () => {
  await using at = await Installation.open();
  await at.apply(shipped('deploy/namespace.yaml'));
  await at.apply(await kustomize(['deploy/layouts/two-namespaces'], []));
  await at.apply(shipped('deploy/machines-namespace.yaml'));
  await using manager = await at.start({ namespace: 'machinist', machines: 'machines' });
  await at.runMachines('machines');
  await at.holdDeletions('machines', true);

  await at.deleteNamespace('machines');
  // All that nobody holds is gone: the rest of the work is done in a namespace without service accounts, and with a binding that is going.
  const account = '/api/v1/namespaces/machines/serviceaccounts/default';
  await eventually(async () => {
    expect(await at.status(account)).toBe(404);
    const { metadata } = await at.site.api.send<Manifest>('GET', BINDING);
    expect(metadata).toHaveProperty('deletionTimestamp');
  });
  await at.holdDeletions('machines', false);
  await at.untilGone('machines');

  expect(await at.cloud.vms()).toEqual([]);
  expect(at.cloud.created).toHaveLength(2);
  expect(manager.operator.config.leader.namespace).toBe('machinist');
}, 300_000);

test('layout two-namespaces with the driver for Cluster API: every Machine of Cluster API is deleted, too', async () => {
  await using at = await Installation.open();
  const { api, plane } = at.site;
  await at.apply(shipped('deploy/namespace.yaml'));
  await at.apply(await kustomize(['deploy/layouts/two-namespaces'], ['deploy/drivers/cluster-api']));
  await at.apply(shipped('deploy/machines-namespace.yaml'));
  await at.apply(shipped('deploy/machines-namespace-cluster-api.yaml'));
  // Cluster API and a provider, with permissions of their own in all namespaces.
  await at.apply(readManifests(join(ROOT, 'crds/cluster-api')));
  const sim = new ContractSimulator(api, 'machines');
  for (const kind of [SIM_MACHINE, templateOf(SIM_MACHINE)]) await sim.install(kind, 'v1beta2');
  await sim.create(templateOf(SIM_MACHINE), 'small', { spec: { template: { spec: { size: 1 } } } });
  await api.send('POST', '/apis/cluster.x-k8s.io/v1beta2/namespaces/machines/clusters', {
    apiVersion: 'cluster.x-k8s.io/v1beta2',
    kind: 'Cluster',
    metadata: { name: 'c' },
    spec: {},
  });
  await using user = new KubeSession(plane.connection);
  const provider = await SimProvider.start(user, 'machines', SIM_MACHINE, 'v1beta2');
  provider.hasNodes = true;
  await using _core = await InProcessManager.start({
    kubeconfig: plane.connection.kubeconfig,
    namespace: 'machines',
    flags: { controllers: 'cluster-api' },
  });
  const place = mkdtempSync(join(tmpdir(), 'machinist-ns-'));
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rmSync(place, { recursive: true }));
  const account = '/api/v1/namespaces/machinist/serviceaccounts/machinist/token';
  const { status } = await api.send<{ status: { token: string } }>('POST', account, { spec: {} });
  await using _driver = await DriverProcess.start('cluster-api-driver', [
    `--address=unix://${place}/driver.sock`,
    `--state-directory=${place}/state`,
    `--kubeconfig=${plane.connection.kubeconfigWithToken('driver', status.token)}`,
  ]);
  await using _manager = await at.start({
    namespace: 'machinist',
    machines: 'machines',
    flags: { driver: `cluster-api=unix://${place}/driver.sock` },
  });
  const machines = '/apis/machine.sapcloud.io/v1alpha1/namespaces/machines';
  await at.apply([
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'user-data', namespace: 'machines' },
      stringData: { userData: '#cloud-config' },
    },
    {
      apiVersion: 'machine.sapcloud.io/v1alpha1',
      kind: 'MachineClass',
      metadata: { name: 'small', namespace: 'machines' },
      provider: 'cluster-api',
      providerSpec: { clusterName: 'c', infrastructureRef: { ...templateOf(SIM_MACHINE), name: 'small' } },
      secretRef: { name: 'user-data', namespace: 'machines' },
    },
    {
      apiVersion: 'machine.sapcloud.io/v1alpha1',
      kind: 'Machine',
      metadata: { name: 'm-1', namespace: 'machines' },
      spec: { class: { kind: 'MachineClass', name: 'small' } },
    },
  ]);
  await eventually(async () => {
    const machine = await api.send<Machine>('GET', `${machines}/machines/m-1`);
    expect(machine.status?.currentStatus?.phase).toBe('Running');
  }, PATIENCE);
  await at.holdDeletions('machines', true);

  await at.deleteNamespace('machines');
  await eventually(async () => {
    const { metadata } = await api.send<Manifest>('GET', BINDING);
    expect(metadata).toHaveProperty('deletionTimestamp');
    expect(await at.status('/api/v1/namespaces/machines/serviceaccounts/default')).toBe(404);
  }, PATIENCE);
  await at.holdDeletions('machines', false);
  await at.untilGone('machines');

  expect(provider.instancesOf('m-1')).toBe(1);
  expect(await at.status('/api/v1/nodes/m-1')).toBe(404);
}, 300_000);

test('the same without a manager ends when one is installed again', async () => {
  await using at = await Installation.open();
  const layout = await kustomize(['deploy/layouts/two-namespaces'], []);
  await at.apply(shipped('deploy/namespace.yaml'));
  await at.apply(layout);
  await at.apply(shipped('deploy/machines-namespace.yaml'));
  {
    await using _manager = await at.start({ namespace: 'machinist', machines: 'machines' });
    await at.runMachines('machines');
  }
  await at.deleteNamespace('machinist');
  await at.untilGone('machinist');
  await at.deleteNamespace('machines');
  await eventually(async () => {
    const { metadata } = await at.site.api.send<Manifest>('GET', BINDING);
    expect(metadata).toHaveProperty('deletionTimestamp');
  });
  expect(await at.cloud.vms()).toHaveLength(2);

  await at.apply(shipped('deploy/namespace.yaml'));
  await at.apply(layout);
  await using _next = await at.start({ namespace: 'machinist', machines: 'machines' });
  await at.untilGone('machines');

  expect(await at.cloud.vms()).toEqual([]);
}, 300_000);

test('a namespace that was deleted with the manager in it is ended from another one', async () => {
  // Helm's applies conflict with those before it.
  await using at = await Installation.open({ isReal: true });
  await at.apply(shipped('deploy/namespace.yaml'));
  await at.apply(await kustomize(['deploy/layouts/one-process'], []));
  {
    await using _manager = await at.start({ namespace: 'machinist', machines: 'machinist' });
    await at.runMachines('machinist');
  }
  // Its pods are the first that go.
  await at.deleteNamespace('machinist');
  const role = '/apis/rbac.authorization.k8s.io/v1/namespaces/machinist/rolebindings/machinist-control';
  await eventually(async () => expect(await at.status(role)).toBe(404));
  const left = await at.cloud.vms();

  await at.apply([{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'machinist-rescue' } }]);
  await at.installRescue();
  await at.apply(shipped('deploy/rbac/machines-rescue.yaml'));
  await using _rescue = await at.start({ namespace: 'machinist-rescue', machines: 'machinist' });
  await at.untilGone('machinist');

  expect(left).toHaveLength(2);
  expect(await at.cloud.vms()).toEqual([]);
}, 300_000);
