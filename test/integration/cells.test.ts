import { afterAll, beforeAll, expect, test } from '@jest/globals';

import { CELL_LEASES, cellsControl, CellsManager, QUICK_LEASES } from '../cloud/cells-manager.ts';
import { TestCell } from '../cloud/cell.ts';
import { InProcessManager } from '../cloud/manager.ts';
import type { Site } from '../cloud/site.ts';
import { eventually } from '../expect/eventually.ts';

const TEST_MS = 300_000;
const PATIENCE = { timeoutMs: 120_000, intervalMs: 100 };
const SELECTED = { labels: { cell: '' } };

let control: Site;

beforeAll(async () => {
  control = await cellsControl();
});

afterAll(async () => {
  await control[Symbol.asyncDispose]();
});

async function eventsIn(namespace: string): Promise<readonly string[]> {
  const { items } = await control.api.send<{ items: { reason: string; message: string }[] }>(
    'GET',
    `/api/v1/namespaces/${namespace}/events?fieldSelector=involvedObject.kind=Namespace`,
  );
  return items.map(({ reason, message }) => `${reason}: ${message}`);
}

/** A manager of all selected namespaces, with the drivers of these cells. */
async function start(...given: readonly (TestCell | Readonly<Record<string, string>>)[]): Promise<CellsManager> {
  const cells = given.filter((one) => one instanceof TestCell);
  const flags = Object.assign({}, ...given.filter((one) => !(one instanceof TestCell))) as Record<string, string>;
  const drivers = cells.map(({ driver }) => driver).join(',');
  return await CellsManager.start({ kubeconfig: control.kubeconfig, namespace: CELL_LEASES, drivers, flags });
}

/** By which a namespace has its target cluster. */
async function claimsOf({ namespace }: TestCell): Promise<readonly unknown[]> {
  const path = `/apis/coordination.k8s.io/v1/namespaces/${CELL_LEASES}/leases`;
  const selector = `machine.sapcloud.io/cell-target=${namespace}`;
  return (await control.api.send<{ items: readonly unknown[] }>('GET', `${path}?labelSelector=${selector}`)).items;
}

async function untilTold(cell: TestCell, event: RegExp): Promise<void> {
  await eventually(
    async () => expect((await eventsIn(cell.namespace)).join('\n')).toMatch(new RegExp(event, 'm')),
    PATIENCE,
  );
}

test(
  'each selected namespace has its machines in its own target cluster, and nothing of the others',
  async () => {
    await using one = await TestCell.create(control, 'one', { replicas: 2 });
    await using other = await TestCell.create(control, 'other', { replicas: 1 });
    await using unselected = await TestCell.create(control, 'unselected', { replicas: 1 });
    await using manager = await start(one, other, unselected);

    await one.mark(control, SELECTED);
    await other.mark(control, SELECTED);
    await one.pool.untilUp(2);
    await other.pool.untilUp(1);
    await other.pool.scale(2);
    await other.pool.untilUp(2);

    expect(unselected.cloud.created).toEqual([]);
    expect(one.cloud.created).toHaveLength(2);
    expect(other.cloud.created).toHaveLength(2);
    const metrics = await manager.page('/metrics');
    for (const { namespace } of [one, other]) {
      expect(metrics).toContain(`machinist_kube_credentials_age_seconds{cluster="target",cell="${namespace}"}`);
      expect(metrics).toContain(
        `machinist_machines{namespace="${namespace}",machine_deployment="pool",phase="Running",cell="${namespace}"} 2`,
      );
    }
  },
  TEST_MS,
);

test(
  'a cell whose kubeconfig cannot be used says why on its namespace, and begins when it is corrected',
  async () => {
    await using cell = await TestCell.create(control, 'one', { replicas: 1 });
    await using other = await TestCell.create(control, 'other', { replicas: 1 });
    await using _manager = await start(cell, other);
    const good = cell.kubeconfig;
    const withPlugin = good.replace(/^( +)(token|client-certificate-data):.*$/m, '$1exec: {}');

    await cell.setKubeconfig(control, 'clusters: []');
    await cell.mark(control, SELECTED);
    await untilTold(cell, /^InvalidKubeconfig: Secret .*\/target: .*current context.*Machines are not managed\.$/);
    await cell.setKubeconfig(control, withPlugin);
    await untilTold(
      cell,
      /^InvalidKubeconfig: Secret .*\/target: .*is not allowed, because it names a file or a program/,
    );
    await other.mark(control, SELECTED);
    await other.pool.untilUp(1);
    expect(cell.cloud.created).toEqual([]);

    await cell.setKubeconfig(control, good);
    await cell.pool.untilUp(1);
  },
  TEST_MS,
);

test(
  'settings of a namespace that are wrong are told, and do not end what runs by those before',
  async () => {
    await using cell = await TestCell.create(control, 'one', { replicas: 1 });
    await using _manager = await start(cell);
    const annotate = async (value: string | null): Promise<void> =>
      await cell.mark(control, {
        annotations: { 'cell.machine.sapcloud.io/machine-safety-orphan-vms-dry-run': value },
      });

    await annotate('perhaps');
    await cell.mark(control, SELECTED);
    await untilTold(
      cell,
      /^InvalidSettings: annotation cell\.machine\.sapcloud\.io\/machine-safety-orphan-vms-dry-run: "perhaps" is not valid: .*Machines are not managed\.$/,
    );
    expect(cell.cloud.created).toEqual([]);
    await annotate('true');
    await cell.pool.untilUp(1);

    await annotate('never');
    await untilTold(cell, /"never" is not valid.*What was valid before stays in use\.$/);
    await cell.pool.scale(2);
    await cell.pool.untilUp(2);
  },
  TEST_MS,
);

test(
  'a namespace that loses its label keeps its machines, and says that nobody manages them',
  async () => {
    await using cell = await TestCell.create(control, 'one', { replicas: 1 });
    await using manager = await start(cell);
    const unselected = async (): Promise<number> =>
      Number(/^machinist_cell_namespaces_unselected (\d+)$/m.exec(await manager.page('/metrics'))?.[1]);
    await cell.mark(control, SELECTED);
    await cell.pool.untilUp(1);
    const before = await unselected();

    await cell.mark(control, { labels: { cell: null } });
    await eventually(async () => expect(await unselected()).toBe(before + 1), PATIENCE);
    await untilTold(cell, /^CellReleased: .* its 1 Machines are not managed any more; their VMs keep running/);
    await cell.pool.scale(0);
    await cell.mark(control, SELECTED);
    await cell.pool.untilEmpty();

    expect(cell.cloud.created).toHaveLength(1);
    expect(await claimsOf(cell)).toHaveLength(1);
    await cell.mark(control, { labels: { cell: null } });
    await eventually(async () => expect(await claimsOf(cell)).toEqual([]), PATIENCE);
  },
  TEST_MS,
);

test(
  'a namespace goes from a manager of its own to one with cells and back in the middle of work, and no VM is made twice or lost',
  async () => {
    await using cell = await TestCell.create(control, 'migrated', { replicas: 2 });
    const { cloud, pool } = cell;
    await using _manager = await start(cell);
    const startAlone = (): Promise<InProcessManager> =>
      InProcessManager.start({
        kubeconfig: control.kubeconfig,
        namespace: cell.namespace,
        flags: { 'target-kubeconfig': cell.target.kubeconfig, driver: cell.driver },
      });

    await using alone = await startAlone();
    const first = await pool.untilUp(2);
    await pool.scale(4);
    await pool.untilAsked(4);
    expect(await alone.terminate()).toBe(0);
    await cell.mark(control, SELECTED);
    const asCell = await pool.untilUp(4);
    await pool.scale(2);
    await pool.untilAsked(2);
    await cell.mark(control, { labels: { cell: null } });
    await untilTold(cell, /^CellReleased: /);
    await using _again = await startAlone();
    const again = await pool.untilUp(2);

    expect(asCell).toEqual(expect.arrayContaining([...first]));
    expect(asCell).toEqual(expect.arrayContaining([...again]));
    expect(cloud.created).toHaveLength(4);
    expect([...cloud.doubled]).toEqual([]);
  },
  TEST_MS,
);

test(
  'a namespace whose own manager is still running is not managed by another one as well, which begins when that has ended',
  async () => {
    await using cell = await TestCell.create(control, 'led', { replicas: 1 });
    await using other = await TestCell.create(control, 'other', { replicas: 1 });
    await using manager = await start(cell, other);
    await using alone = await InProcessManager.start({
      kubeconfig: control.kubeconfig,
      namespace: cell.namespace,
      flags: { ...QUICK_LEASES, 'target-kubeconfig': cell.target.kubeconfig, driver: cell.driver },
    });
    await cell.pool.untilUp(1);

    await cell.mark(control, SELECTED);
    await other.mark(control, SELECTED);
    await untilTold(cell, /^ManagedByAnother: Another manager is running .* The Machines are left to it\.$/);
    await other.pool.untilUp(1);
    await cell.pool.scale(2);
    await cell.pool.untilUp(2);
    expect(manager.process.cells.running.has(cell.namespace)).toBe(false);
    expect(await manager.page('/readyz?verbose')).toContain(`cell ${cell.namespace}: Another manager is running`);
    expect(await manager.page('/metrics')).toContain(`machinist_cell_refused{cell="${cell.namespace}"} 1`);

    expect(await alone.terminate()).toBe(0);
    await cell.pool.scale(3);
    await cell.pool.untilUp(3);
    expect(manager.process.cells.running.has(cell.namespace)).toBe(true);
    expect(cell.cloud.created).toHaveLength(3);
    expect([...cell.cloud.doubled]).toEqual([]);
  },
  TEST_MS,
);

test(
  'of two namespaces with the same target cluster, the second waits and says so',
  async () => {
    await using cell = await TestCell.create(control, 'one', { replicas: 1 });
    await using twin = await TestCell.create(control, 'twin', { replicas: 1 });
    await using manager = await start(cell, twin);
    await cell.mark(control, SELECTED);
    await cell.pool.untilUp(1);

    await twin.setKubeconfig(control, cell.kubeconfig);
    await twin.mark(control, SELECTED);
    await untilTold(twin, /^TargetClusterTaken: Its target cluster is that of another namespace, too/);
    await cell.pool.scale(2);
    await cell.pool.untilUp(2);

    expect(twin.cloud.created).toEqual([]);
    expect(await manager.page('/readyz?verbose')).toContain(
      `cell ${twin.namespace}: Its target cluster is that of namespace ${cell.namespace}, too`,
    );
    const refused = `machinist_cell_refused{cell="${twin.namespace}"} 1`;
    expect(await manager.page('/metrics')).toContain(refused);
    await twin.setKubeconfig(control, twin.kubeconfig);
    await twin.pool.untilUp(1);
    expect(await manager.page('/metrics')).not.toContain(refused);
  },
  TEST_MS,
);

test(
  'where the rate of requests is limited, a cell with many machines lets one with a single machine go first',
  async () => {
    await using large = await TestCell.create(control, 'large', { replicas: 0 });
    await using small = await TestCell.create(control, 'small', { replicas: 0 });
    await using _manager = await start(large, small, { 'kube-api-qps': '10', 'kube-api-burst': '1' });
    await large.mark(control, SELECTED);
    await small.mark(control, SELECTED);

    await large.pool.scale(20);
    await eventually(() => expect(large.cloud.created.length).toBeGreaterThan(0), PATIENCE);
    await small.pool.scale(1);
    await small.pool.untilUp(1);

    expect(large.cloud.created.length).toBeLessThan(20);
  },
  TEST_MS,
);

test(
  'a target cluster that cannot be reached concerns its own namespace alone',
  async () => {
    await using cell = await TestCell.create(control, 'one', { replicas: 1 });
    await using other = await TestCell.create(control, 'other', { replicas: 1 });
    await using manager = await start(cell, other);
    const unreachable = cell.kubeconfig.replace(/server: .*/, 'server: https://127.0.0.1:1');
    await cell.setKubeconfig(control, unreachable);
    await cell.mark(control, SELECTED);
    await other.mark(control, SELECTED);

    await other.pool.untilUp(1);
    await eventually(async () => {
      const metrics = await manager.page('/metrics');
      expect(metrics).toContain(`machinist_cluster_outage{cluster="target",cell="${cell.namespace}"} 1`);
      expect(metrics).toContain(`machinist_cluster_outage{cluster="target",cell="${other.namespace}"} 0`);
    });
    await other.pool.scale(2);
    await other.pool.untilUp(2);
    expect(cell.cloud.created).toEqual([]);

    // Another server is another cluster until it has shown that it is not: the cell begins anew.
    await cell.setKubeconfig(control, cell.kubeconfig);
    await cell.pool.untilUp(1);
  },
  TEST_MS,
);

test(
  'a target cluster that sends more than a cell may take concerns its own namespace alone',
  async () => {
    await using cell = await TestCell.create(control, 'one', { replicas: 1 });
    await using other = await TestCell.create(control, 'other', { replicas: 1 });
    const { api } = cell.target;
    const large = Array.from({ length: 6 }, (_, i) => `large-${i}`);
    const annotations = { large: 'x'.repeat(200_000) };
    for (const name of large) await api.send('POST', '/api/v1/nodes', { metadata: { name, annotations } });
    await using manager = await start(cell, other, { 'cell-max-target-mib': '1' });

    await cell.mark(control, SELECTED);
    await other.mark(control, SELECTED);
    await other.pool.untilUp(1);
    await eventually(async () => {
      expect(await manager.page('/readyz?verbose')).toContain('the nodes of the cluster take more than 1 MiB');
    }, PATIENCE);
    await other.pool.scale(2);
    await other.pool.untilUp(2);
    expect(cell.cloud.created).toEqual([]);

    for (const name of large) await api.send('DELETE', `/api/v1/nodes/${name}`);
    await cell.pool.untilUp(1);
  },
  TEST_MS,
);

test(
  'a server that shows a certificate that the kubeconfig of a cell does not trust concerns its own namespace alone',
  async () => {
    await using cell = await TestCell.create(control, 'one', { replicas: 1 });
    await using other = await TestCell.create(control, 'other', { replicas: 1 });
    await using manager = await start(cell, other);
    const { certificate } = other.target.plane.connection.admin;
    const ca = `certificate-authority-data: ${Buffer.from(certificate).toString('base64')}`;
    await cell.setKubeconfig(control, cell.kubeconfig.replace(/certificate-authority-data: .*/, ca));

    await cell.mark(control, SELECTED);
    await other.mark(control, SELECTED);
    await other.pool.untilUp(1);
    await eventually(async () => {
      const metrics = await manager.page('/metrics');
      expect(metrics).toContain(`machinist_cluster_outage{cluster="target",cell="${cell.namespace}"} 1`);
    }, PATIENCE);
    expect(cell.cloud.created).toEqual([]);

    await cell.setKubeconfig(control, cell.kubeconfig);
    await cell.pool.untilUp(1);
  },
  TEST_MS,
);

test(
  'replicas divide the namespaces among them, and what one leaves the others take over',
  async () => {
    await using stack = new AsyncDisposableStack();
    const cells: TestCell[] = [];
    for (let i = 0; i < 4; i++) {
      cells.push(stack.use(await TestCell.create(control, `provider${i}`, { replicas: 1 })));
    }
    const first = stack.use(await start(...cells, QUICK_LEASES));
    for (const cell of cells) await cell.mark(control, SELECTED);
    for (const cell of cells) await cell.pool.untilUp(1);
    expect(first.process.cells.running.size).toBe(4);

    const second = stack.use(await start(...cells, QUICK_LEASES));
    await eventually(() => {
      const held = [first, second].map(({ process }) => process.shards.held.map(({ index }) => index));
      expect(held.flat()).toHaveLength(16);
      expect(held.every((indices) => indices.length > 0)).toBe(true);
    }, PATIENCE);
    for (const cell of cells) await cell.pool.scale(2);
    for (const cell of cells) await cell.pool.untilUp(2);

    expect(await first.terminate()).toBe(0);
    for (const cell of cells) await cell.pool.scale(1);
    for (const cell of cells) await cell.pool.untilUp(1);
    expect(second.process.cells.running.size).toBe(4);
    for (const { cloud } of cells) {
      expect(cloud.created).toHaveLength(2);
      expect([...cloud.doubled]).toEqual([]);
    }
  },
  TEST_MS,
);

test(
  'a replica with another number of shards takes none while another one lives, and says so',
  async () => {
    await using cell = await TestCell.create(control, 'one', { replicas: 1 });
    await using first = await start(cell, QUICK_LEASES);
    await cell.mark(control, SELECTED);
    await cell.pool.untilUp(1);

    await using second = await start(cell, { ...QUICK_LEASES, 'cell-shards': '4' });
    await eventually(async () => {
      expect(await second.page('/readyz?verbose')).toContain(
        `replica ${first.identity} has --cell-shards=16, this one 4`,
      );
    }, PATIENCE);
    expect(second.process.shards.held).toEqual([]);
    await first.terminate();
    await cell.pool.scale(2);
    await cell.pool.untilUp(2);

    expect(second.process.shards.held).toHaveLength(4);
    expect(cell.cloud.created).toHaveLength(2);
  },
  TEST_MS,
);

test(
  'a change of settings whose kubeconfig cannot be used any more ends nothing',
  async () => {
    await using cell = await TestCell.create(control, 'one', { replicas: 1 });
    await using manager = await start(cell);
    await cell.mark(control, SELECTED);
    await cell.pool.untilUp(1);

    await cell.setKubeconfig(control, 'clusters: []');
    await untilTold(cell, /^InvalidKubeconfig: .*What was valid before stays in use\.$/);
    expect(await manager.page('/readyz?verbose')).toMatch(new RegExp(`cell ${cell.namespace}: .*current context`));
    await cell.mark(control, { annotations: { 'cell.machine.sapcloud.io/safety-up': '3' } });
    await cell.pool.scale(2);
    await cell.pool.untilUp(2);
  },
  TEST_MS,
);
