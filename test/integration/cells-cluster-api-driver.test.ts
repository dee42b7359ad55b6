import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { expect, test } from '@jest/globals';

import { applyManifests, readManifests } from '../../hack/control-plane/apply.ts';
import { API_VERSION } from '../../pkg/apis/machine/v1alpha1/group.ts';
import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import type { KubeObject } from '../../pkg/apis/meta.ts';
import { CELL_LEASES, cellsControl, CellsManager } from '../cloud/cells-manager.ts';
import { ClusterAPITenant } from '../cloud/cluster-api-tenant.ts';
import { ContractSimulator, SIM_MACHINE, type SimObject, templateOf } from '../contract-simulator.ts';
import { DriverProcess } from '../drivers/driver-process.ts';
import { eventually } from '../expect/eventually.ts';
import { SimProvider } from '../sim-provider.ts';
import { KubeSession } from './kube-session.ts';
import { grant } from './shipped-roles.ts';

const PATIENCE = { timeoutMs: 90_000, intervalMs: 100 };
const DRIVER = 'machinist-cluster-api-driver';
const INFRASTRUCTURE = '/apis/infrastructure.cluster.x-k8s.io/v1alpha7';

test('one driver makes the machines of MachineDeployments in two cells, each in its namespace, by Clusters and templates of the same names', async () => {
  await using stack = new AsyncDisposableStack();
  const control = stack.use(await cellsControl());
  const { api, plane } = control;
  const { connection } = plane;
  const directory = mkdtempSync(path.join(tmpdir(), 'cells-cluster-api-driver-'));
  stack.defer(() => rmSync(directory, { recursive: true }));
  await applyManifests(api, readManifests(path.join(import.meta.dirname, '../../crds/cluster-api')));
  for (const role of ['cluster-api', 'cluster-api-all-namespaces', 'control-identity'] as const)
    await grant(api, role, CELL_LEASES);
  const kinds = new ContractSimulator(api, CELL_LEASES);
  for (const kind of [SIM_MACHINE, templateOf(SIM_MACHINE)]) await kinds.install(kind, 'v1beta2');
  const user = stack.use(new KubeSession(connection));
  const socket = path.join(directory, 'driver.sock');
  const driver = await DriverProcess.start('cluster-api-driver', [
    `--address=unix://${socket}`,
    `--state-directory=${path.join(directory, 'state')}`,
    `--kubeconfig=${await connection.kubeconfigFor({ user: DRIVER })}`,
  ]);
  stack.defer(() => driver.end('SIGKILL'));

  /** With a pool of one machine, whose Nodes are in the workload cluster, which is the target cluster of the cell, too. */
  const found = async (): Promise<ClusterAPITenant> => {
    const tenant = stack.use(await ClusterAPITenant.create(control));
    const { namespace } = tenant;
    await grant(api, 'cluster-api-driver', namespace);
    await SimProvider.start(user, namespace, SIM_MACHINE, 'v1beta2');
    await new ContractSimulator(api, namespace).create(templateOf(SIM_MACHINE), 'small', {
      spec: { template: { spec: { size: 1 } } },
    });
    await tenant.setSecret('target', { kubeconfig: tenant.kubeconfig });
    await tenant.setSecret('user-data', { userData: '#cloud-config' });
    await applyManifests(api, [
      {
        apiVersion: API_VERSION,
        kind: 'MachineClass',
        metadata: { name: 'small', namespace },
        provider: 'cluster-api',
        providerSpec: { clusterName: 'c', infrastructureRef: { ...templateOf(SIM_MACHINE), name: 'small' } },
        secretRef: { name: 'user-data', namespace },
      },
      {
        apiVersion: API_VERSION,
        kind: 'MachineDeployment',
        metadata: { name: 'pool', namespace },
        spec: {
          replicas: 1,
          selector: { matchLabels: { pool: 'pool' } },
          strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
          template: {
            metadata: { labels: { pool: 'pool' } },
            spec: { class: { kind: 'MachineClass', name: 'small' } },
          },
        },
      },
    ]);
    return tenant;
  };
  const listed = async <T extends KubeObject>(groupVersion: string, namespace: string, plural: string) =>
    (await api.send<{ items: T[] }>('GET', `${groupVersion}/namespaces/${namespace}/${plural}`)).items;
  const machinesOf = ({ namespace }: ClusterAPITenant) =>
    listed<Machine>('/apis/machine.sapcloud.io/v1alpha1', namespace, 'machines');
  const instancesOf = ({ namespace }: ClusterAPITenant) => listed<SimObject>(INFRASTRUCTURE, namespace, 'simmachines');
  /** VMs become Nodes. */
  const join = async (tenant: ClusterAPITenant): Promise<void> => {
    for (const { metadata, spec } of await instancesOf(tenant)) {
      const { providerID } = spec ?? {};
      if (typeof providerID === 'string') await tenant.createNode(metadata.name, providerID);
    }
  };
  const untilRunning = async (tenant: ClusterAPITenant): Promise<void> =>
    await eventually(async () => {
      await join(tenant);
      const phases = (await machinesOf(tenant)).map(({ status }) => status?.currentStatus?.phase);
      expect(phases).toEqual(['Running']);
    }, PATIENCE);

  const [one, other] = [await found(), await found()];
  stack.use(
    await CellsManager.start({
      kubeconfig: control.kubeconfig,
      namespace: CELL_LEASES,
      drivers: `cluster-api=unix://${socket}`,
      flags: { controllers: '*,cluster-api', 'machine-safety-orphan-vms-period': '2s' },
    }),
  );
  for (const tenant of [one, other]) await tenant.select(true);
  for (const tenant of [one, other]) await untilRunning(tenant);
  const kept = await instancesOf(other);

  const pool = `/apis/machine.sapcloud.io/v1alpha1/namespaces/${one.namespace}/machinedeployments/pool`;
  await api.send('PATCH', pool, { spec: { replicas: 0 } });
  await eventually(async () => {
    expect([await machinesOf(one), await instancesOf(one)]).toEqual([[], []]);
  }, PATIENCE);

  expect(await instancesOf(other)).toEqual([
    expect.objectContaining({ metadata: expect.objectContaining({ uid: kept[0]?.metadata.uid }) }),
  ]);
  await untilRunning(other);
}, 300_000);
