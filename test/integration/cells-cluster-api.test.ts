import { readFileSync } from 'node:fs';
import path from 'node:path';
import { Writable } from 'node:stream';

import { afterAll, beforeAll, expect, test } from '@jest/globals';

import { applyManifests, readManifests } from '../../hack/control-plane/apply.ts';
import type { KubeObject } from '../../pkg/apis/meta.ts';
import type { Lease } from '../../pkg/apis/wire.ts';
import { createLogger, silentLogger } from '../../pkg/base/log/logger.ts';
import { CELL_LEASES, cellsControl, CellsManager, QUICK_LEASES } from '../cloud/cells-manager.ts';
import { ClusterAPITenant } from '../cloud/cluster-api-tenant.ts';
import type { Site } from '../cloud/site.ts';
import { ContractSimulator, SIM_MACHINE } from '../contract-simulator.ts';
import { Program } from '../e2e/program.ts';
import { eventually } from '../expect/eventually.ts';
import { FaultProxy } from '../proxy/fault-proxy.ts';
import { grant } from './shipped-roles.ts';

const TEST_MS = 300_000;
const PATIENCE = { timeoutMs: 120_000, intervalMs: 100 };

let control: Site;

beforeAll(async () => {
  control = await cellsControl();
  const { api } = control;
  await applyManifests(api, readManifests(path.join(import.meta.dirname, '../../crds/cluster-api')));
  await grant(api, 'cluster-api', CELL_LEASES);
  await grant(api, 'cluster-api-all-namespaces', CELL_LEASES);
  await new ContractSimulator(api, CELL_LEASES).install(SIM_MACHINE, 'v1beta2');
});

afterAll(async () => {
  await control[Symbol.asyncDispose]();
});

/** A manager of all selected namespaces, which have no other target cluster than those of their Clusters. */
async function start(flags: Readonly<Record<string, string>> = {}, log = silentLogger): Promise<CellsManager> {
  return await CellsManager.start({
    log,
    kubeconfig: control.kubeconfig,
    namespace: CELL_LEASES,
    drivers: '',
    flags: {
      controllers: '*,cluster-api',
      'target-kubeconfig': 'none',
      'cell-kubeconfig-secret': '',
      ...flags,
    },
  });
}

/** Whether the manager is connected to a workload cluster. */
async function isConnectedTo(manager: CellsManager, tenant: ClusterAPITenant): Promise<boolean> {
  const metrics = await manager.page('/metrics');
  return metrics.includes(`machinist_cluster_outage{cluster="${tenant.namespace}/c"`);
}

test(
  'Machines of Cluster API in each selected namespace are looked after, and those of one are nothing to the other',
  async () => {
    await using one = await ClusterAPITenant.create(control);
    await using other = await ClusterAPITenant.create(control);
    await using unselected = await ClusterAPITenant.create(control);
    for (const tenant of [one, other, unselected]) await tenant.createMachine('m');
    await using manager = await start();

    await one.select(true);
    await other.select(true);
    await one.untilRunning('m');
    await other.untilRunning('m');
    for (const { namespace, node } of [one, other].map((t) => ({ namespace: t.namespace, node: t.node('m') }))) {
      expect((await node)?.metadata.annotations).toMatchObject({ 'cluster.x-k8s.io/cluster-namespace': namespace });
    }
    expect(await manager.page('/metrics')).toContain(
      `machinist_cluster_outage{cluster="${one.namespace}/c",cell="${one.namespace}"} 0`,
    );

    await one.deleteMachine('m');
    await one.untilGone('m');
    expect(await other.machine('m')).toMatchObject({ status: { phase: 'Running' } });
    expect(await other.node('m')).toBeDefined();
    expect((await other.infrastructure('m'))?.metadata.deletionTimestamp).toBeUndefined();
    expect((await unselected.machine('m'))?.metadata.finalizers).toBeUndefined();
    await one.createMachine('m');
    await one.untilRunning('m');
  },
  TEST_MS,
);

test(
  'a namespace that loses its label keeps its Machines and their Nodes, and its connections are closed',
  async () => {
    await using tenant = await ClusterAPITenant.create(control);
    await using other = await ClusterAPITenant.create(control);
    await using manager = await start();
    await using way = await FaultProxy.start(tenant.workload.plane.connection.url);
    const through = await tenant.workload.kubeconfigThrough(way.url);
    await tenant.setSecret('c-kubeconfig', { value: readFileSync(through, 'utf8') });
    for (const one of [tenant, other]) {
      await one.createMachine('m');
      await one.select(true);
      await one.untilRunning('m');
    }

    await tenant.select(false);
    await eventually(() => expect(way.open).toBe(0), PATIENCE);
    await eventually(async () => !(await isConnectedTo(manager, tenant)), PATIENCE);
    await tenant.deleteMachine('m');
    await other.createMachine('n');
    await other.untilRunning('n');
    expect(await tenant.machine('m')).toMatchObject({ status: { phase: 'Running' } });
    expect(await tenant.node('m')).toBeDefined();
    expect((await tenant.infrastructure('m'))?.metadata.deletionTimestamp).toBeUndefined();

    await tenant.select(true);
    await tenant.untilGone('m');
    expect(await other.node('m')).toBeDefined();
    // The kind of the provider is watched until the last cell that names it has ended.
    const isWatched = async (): Promise<boolean> =>
      (await manager.page('/metrics')).includes('machinist_cache_age_seconds{kind="SimMachine"');
    expect(await isWatched()).toBe(true);
    for (const one of [tenant, other]) await one.select(false);
    await eventually(async () => !(await isWatched()), PATIENCE);
  },
  TEST_MS,
);

test(
  'a host name without a dot in the kubeconfig of a workload cluster is that of a Service in the namespace of its Cluster',
  async () => {
    await using tenant = await ClusterAPITenant.create(control);
    const lines: string[] = [];
    const destination = new Writable({ write: (line, _encoding, done) => (lines.push(String(line)), done()) });
    await using _manager = await start({}, createLogger('info', { destination }));
    const kubeconfig = tenant.kubeconfig.replace(/server: .*/, 'server: https://kube-apiserver');
    await tenant.setSecret('c-kubeconfig', { value: kubeconfig });
    await tenant.createMachine('m');
    await tenant.select(true);

    await eventually(
      () => expect(lines.join('')).toMatch(new RegExp(`kube-apiserver\\.${tenant.namespace}\\.svc`)),
      PATIENCE,
    );
  },
  TEST_MS,
);

test(
  'a workload cluster that does not answer concerns its own Cluster alone',
  async () => {
    await using tenant = await ClusterAPITenant.create(control);
    await using other = await ClusterAPITenant.create(control);
    await using manager = await start();
    const unreachable = tenant.kubeconfig.replace(/server: .*/, 'server: https://127.0.0.1:1');
    await tenant.setSecret('c-kubeconfig', { value: unreachable });
    for (const one of [tenant, other]) {
      await one.createMachine('m');
      await one.select(true);
    }

    await other.untilRunning('m');
    await eventually(async () => {
      const metrics = await manager.page('/metrics');
      for (const [{ namespace }, outage] of [
        [tenant, 1],
        [other, 0],
      ] as const) {
        const labels = `cluster="${namespace}/c",cell="${namespace}"`;
        expect(metrics).toContain(`machinist_cluster_outage{${labels}} ${outage}`);
      }
    }, PATIENCE);
    await other.deleteMachine('m');
    await other.untilGone('m');

    await tenant.setSecret('c-kubeconfig', { value: tenant.kubeconfig });
    await tenant.untilRunning('m');
  },
  TEST_MS,
);

test(
  'nothing of one namespace is reached by what Machines of another one name',
  async () => {
    await using victim = await ClusterAPITenant.create(control);
    await using attacker = await ClusterAPITenant.create(control);
    await using _manager = await start();
    await victim.createMachine('m');
    for (const one of [victim, attacker]) await one.select(true);
    await victim.untilRunning('m');

    const foreign = `../${victim.namespace}`;
    await attacker.createMachine('by-cluster', { clusterName: `${foreign}/c` });
    await attacker.createMachine('by-secret', {
      bootstrap: { dataSecretName: `../../${victim.namespace}/secrets/given` },
    });
    await attacker.createMachine('by-infrastructure', {
      infrastructureRef: { ...SIM_MACHINE, name: `../../${victim.namespace}/simmachines/m` },
    });
    await attacker.createMachine('by-namespace', {
      infrastructureRef: { ...SIM_MACHINE, name: 'm', namespace: victim.namespace },
    });
    await attacker.createMachine('plain');
    await attacker.untilRunning('plain');
    for (const name of ['by-cluster', 'by-secret', 'by-infrastructure', 'by-namespace']) {
      if ((await attacker.machine(name)) === undefined) continue;
      await attacker.deleteMachine(name);
      await attacker.shows(name, (machine) => machine === undefined);
    }

    expect((await victim.infrastructure('m'))?.metadata.deletionTimestamp).toBeUndefined();
    expect((await victim.infrastructure('m'))?.metadata.ownerReferences).toMatchObject([{ name: 'm' }]);
    expect(await victim.node('m')).toBeDefined();
    expect(await victim.machine('m')).toMatchObject({ status: { phase: 'Running' } });
  },
  TEST_MS,
);

test(
  'of two namespaces whose Clusters lead to one workload cluster, the second waits and says so, and gets it when the first leaves it',
  async () => {
    await using tenant = await ClusterAPITenant.create(control);
    await using twin = await ClusterAPITenant.create(control);
    await using manager = await start();
    await tenant.createMachine('m');
    await tenant.select(true);
    await tenant.untilRunning('m');
    await twin.setSecret('c-kubeconfig', { value: tenant.kubeconfig });
    // Of the same name and provider ID: the Node is that of the first.
    await twin.createMachine('m');
    await twin.select(true);

    const said = (whose: string): string => `The cluster of Secret c-kubeconfig is that of ${whose}, too`;
    const events = `/api/v1/namespaces/${twin.namespace}/events?fieldSelector=involvedObject.kind=Namespace`;
    await eventually(async () => {
      const { items } = await control.api.send<{ items: { reason: string; message: string }[] }>('GET', events);
      expect(items.map(({ reason, message }) => `${reason}: ${message}`).join()).toContain(
        `TargetClusterTaken: ${said('another namespace')}`,
      );
    }, PATIENCE);
    expect(await manager.page('/readyz?verbose')).toContain(
      `cell ${twin.namespace}: ${said(`namespace ${tenant.namespace}`)}`,
    );
    expect(JSON.stringify(await twin.machine('m'))).not.toContain(tenant.namespace);
    await twin.deleteMachine('m');
    await tenant.createMachine('n');
    await tenant.untilRunning('n');
    expect((await twin.machine('m'))?.metadata.deletionTimestamp).toBeDefined();
    expect((await twin.infrastructure('m'))?.metadata.deletionTimestamp).toBeUndefined();
    const node = await tenant.node('m');
    expect(node?.spec?.unschedulable).toBeUndefined();
    expect(node?.metadata.annotations).toMatchObject({ 'cluster.x-k8s.io/cluster-namespace': tenant.namespace });

    for (const name of ['m', 'n']) {
      await tenant.deleteMachine(name);
      await tenant.untilGone(name);
    }
    await tenant.deleteSecret('c-kubeconfig');
    await twin.shows('m', (machine) => machine === undefined);
    const leases = `/apis/coordination.k8s.io/v1/namespaces/${CELL_LEASES}/leases`;
    const { items } = await control.api.send<{ items: Lease[] }>(
      'GET',
      `${leases}?labelSelector=machine.sapcloud.io/cell-workload%3D${twin.namespace}`,
    );
    expect(items.map(({ spec }) => spec?.holderIdentity)).toEqual([twin.namespace]);
  },
  TEST_MS,
);

test(
  'the target cluster of a cell has the Nodes of Clusters without a kubeconfig, and may be the workload cluster of its own Clusters, too',
  async () => {
    await using plain = await ClusterAPITenant.create(control);
    await using both = await ClusterAPITenant.create(control);
    await plain.deleteSecret('c-kubeconfig');
    await using _manager = await start({ 'target-kubeconfig': '', 'cell-kubeconfig-secret': 'target' });
    for (const one of [plain, both]) {
      await one.setSecret('target', { kubeconfig: one.kubeconfig });
      await one.createMachine('m');
      await one.select(true);
    }
    for (const one of [plain, both]) await one.untilRunning('m');

    const leases = `/apis/coordination.k8s.io/v1/namespaces/${CELL_LEASES}/leases`;
    const { items } = await control.api.send<{ items: Lease[] }>('GET', leases);
    const labelsOf = ({ namespace }: ClusterAPITenant): readonly string[] =>
      items
        .filter(({ spec }) => spec?.holderIdentity === namespace)
        .flatMap(({ metadata }) => Object.keys(metadata.labels ?? {}).toSorted());
    expect(labelsOf(plain)).toEqual(['machine.sapcloud.io/cell-target']);
    expect(labelsOf(both)).toEqual(['machine.sapcloud.io/cell-target', 'machine.sapcloud.io/cell-workload']);
    for (const one of [plain, both]) await one.deleteMachine('m');
    for (const one of [plain, both]) await one.untilGone('m');
  },
  TEST_MS,
);

test(
  'after a restore that has forgotten who has a workload cluster, two namespaces do not both use it',
  async () => {
    await using tenant = await ClusterAPITenant.create(control);
    await using twin = await ClusterAPITenant.create(control);
    await using manager = await start();
    await tenant.createMachine('m');
    await tenant.select(true);
    await tenant.untilRunning('m');
    await twin.setSecret('c-kubeconfig', { value: tenant.kubeconfig });
    await twin.createMachine('other');
    await twin.select(true);
    const says = async (one: ClusterAPITenant, holder: ClusterAPITenant): Promise<void> =>
      await eventually(async () => {
        const page = await manager.page('/readyz?verbose');
        expect(page).toContain(
          `cell ${one.namespace}: The cluster of Secret c-kubeconfig is that of namespace ${holder.namespace}`,
        );
      }, PATIENCE);
    await says(twin, tenant);
    expect(await manager.page('/metrics')).toContain(
      `machinist_cell_refused_workload_clusters{cell="${twin.namespace}"} 1\n`,
    );

    const { uid } = await tenant.workload.api
      .send<KubeObject>('GET', '/api/v1/namespaces/kube-system')
      .then(({ metadata }) => metadata);
    const lease = `/apis/coordination.k8s.io/v1/namespaces/${CELL_LEASES}/leases/machinist-target-${uid}`;
    await control.api.send('DELETE', lease);
    await eventually(async () => {
      const { spec } = await control.api.send<Lease>('GET', lease);
      expect(spec?.holderIdentity).toBe(twin.namespace);
    }, PATIENCE);
    await manager.process.cells.running.get(tenant.namespace)?.claim(AbortSignal.any([]));
    await says(tenant, twin);
    await tenant.deleteMachine('m');
    await twin.deleteSecret('c-kubeconfig');
    await tenant.untilGone('m');
  },
  TEST_MS,
);

test(
  'a namespace whose shard moves is gone on with by the other replica',
  async () => {
    await using tenants = new AsyncDisposableStack();
    const all: ClusterAPITenant[] = [];
    for (let i = 0; i < 3; i++) all.push(tenants.use(await ClusterAPITenant.create(control)));
    await using second = new AsyncDisposableStack();
    const first = second.use(await start(QUICK_LEASES));
    for (const one of all) {
      await one.createMachine('m');
      await one.select(true);
    }
    for (const one of all) await one.untilRunning('m');
    const next = second.use(await start(QUICK_LEASES));
    await eventually(() => expect(next.process.shards.held.length).toBeGreaterThan(0), PATIENCE);

    expect(await first.terminate()).toBe(0);
    for (const one of all) await one.deleteMachine('m');
    for (const one of all) await one.untilGone('m');
  },
  TEST_MS,
);

test(
  'preflight names the roles and definitions that cells with Cluster API lack in the control cluster',
  async () => {
    const weak = await control.plane.connection.kubeconfigFor({ user: 'weak' });
    const flags = [
      '--cells=cell',
      '--controllers=*,cluster-api',
      '--target-kubeconfig=none',
      `--namespace=${CELL_LEASES}`,
    ];
    const run = async (kubeconfig: string): Promise<string> => {
      const { stdout } = await Program.run('machinist', ['preflight', ...flags, `--control-kubeconfig=${kubeconfig}`]);
      return stdout.replaceAll(/\s+/g, ' ');
    };

    const [lacking, granted] = [await run(weak), await run(control.kubeconfig)];

    expect(lacking).toMatch(
      /FAIL permissions .*deploy\/rbac\/cells\.yaml.*deploy\/rbac\/cluster-api-all-namespaces\.yaml/,
    );
    expect(granted).toMatch(/OK permissions/);
    expect(granted).not.toMatch(/FAIL (permissions|definitions)/);
  },
  TEST_MS,
);
