import { join, resolve } from 'node:path';

import { afterAll, beforeAll, expect, test } from '@jest/globals';

import { InProcessManager } from '../cloud/manager.ts';
import { Pool } from '../cloud/pool.ts';
import { SimulatedCloud } from '../cloud/sim-cloud.ts';
import { Site } from '../cloud/site.ts';
import { dashboardQueries } from '../env/dashboard.ts';
import { Prometheus, promtool } from '../env/prometheus.ts';
import { eventually } from '../expect/eventually.ts';

const PATIENCE = { timeoutMs: 120_000, intervalMs: 500 };
const MONITORING = resolve(import.meta.dirname, '../../deploy/monitoring');
const ALERTS = join(MONITORING, 'alerts.yaml');
const CRITICAL = ['MachinistClusterOutage', 'MachinistNoLeader', 'MachinistDriverDown', 'MachinistWorkHeld'];
/** The loop over VMs looks often, so that there is something to see. */
const FLAGS = {
  'leader-elect': 'true',
  'machine-safety-orphan-vms-period': '2s',
  'machine-safety-orphan-vms-grace': '2s',
};

const stack = new AsyncDisposableStack();
let manager: InProcessManager;
let prometheus: Prometheus;

/** A manager that has rolled two machines, and now asks for one more than the provider has. */
beforeAll(async () => {
  const site = stack.use(await Site.open());
  const cloud = stack.use(await SimulatedCloud.start({ site, quota: 3 }));
  const pool = stack.use(await Pool.create({ site, cloud, replicas: 2 }));
  manager = stack.use(await InProcessManager.start({ ...pool.access, flags: FLAGS }));
  prometheus = stack.use(await Prometheus.start({ targets: [new URL(manager.url).host], rules: ALERTS }));
  await pool.untilUp(2);
  await pool.roll('2');
  await pool.untilUp(2);
  await pool.scale(4);
});

afterAll(async () => {
  await stack.disposeAsync();
});

test.each([
  { query: 'up{job="machinist"}', values: [1] },
  { query: 'machinist_build_info{version="test",program="machinist run"}', values: [1] },
  { query: 'machinist_leader', values: [1, 1] },
  { query: 'machinist_driver_up{provider="sim"}', values: [1] },
  { query: 'machinist_machines{machine_deployment="pool",phase="Running"}', values: [3] },
  { query: 'mcm_machine_deployment_status_available_replicas{name="pool"}', values: [3] },
  { query: 'machinist_machines_created_total', values: [6] },
  { query: 'machinist_machines_deleted_total{reason="surplus"}', values: [2] },
  { query: 'machinist_machine_join_duration_seconds_count{provider="sim"}', values: [5] },
  { query: 'machinist_machine_drain_duration_seconds_count{forced="false"}', values: [2] },
  { query: 'machinist_machine_deletion_duration_seconds_bucket{provider="sim",le="+Inf"}', values: [2] },
  { query: 'machinist_machine_deployment_rollout_age_seconds{name="pool"}', values: [0] },
  { query: 'machinist_machine_class_exhausted{machine_class="pool"}', values: [1] },
  { query: 'machinist_driver_retries_held{machine_class="pool",call="create"}', values: [1] },
  { query: 'sum(machinist_cluster_outage_reason)', values: [0] },
  { query: 'time() - machinist_orphan_vms_last_look_timestamp_seconds < bool 60', values: [1] },
])('Prometheus answers $query with $values', async ({ query, values }) => {
  await eventually(async () => {
    expect((await prometheus.query(query)).map(({ value }) => value)).toEqual(values);
  }, PATIENCE);
});

/** What does not happen to this manager; panels show 0 instead. */
const NOT_HERE = [
  'machinist_autoscaler_node_group_size',
  'machinist_cell_namespaces_unselected',
  'machinist_cell_refused',
  'machinist_cell_shards',
  'machinist_cell_shards_configured',
  'machinist_cells',
  'machinist_drains_blocked',
  'machinist_drains_blocked_next_force_seconds',
  'machinist_gate_refusals_total',
  'machinist_machines_failed_total',
  'machinist_machines_in_maintenance',
  'machinist_machines_preserved',
  'machinist_orphan_vms_total',
  'machinist_work_held',
];

test.each(dashboardQueries({ job: 'machinist', cell: '.*', __rate_interval: '30s' }))(
  'panel "$panel" of the dashboard has data: $expression',
  async ({ expression }) => {
    const shown = NOT_HERE.some((name) => expression.includes(`${name}{`))
      ? expression
      : expression.replace(' or on() vector(0)', '');

    await eventually(async () => expect(await prometheus.query(shown)).not.toEqual([]), PATIENCE);
  },
);

test('promtool finds nothing wrong with the alerts, and each fires when it should, and not before', async () => {
  const checked = await promtool(['check', 'rules', '--lint=all', '--lint-fatal', ALERTS]);
  const tested = await promtool(['test', 'rules', join(MONITORING, 'alerts.test.yaml')]);

  expect(checked).toMatchObject({ code: 0 });
  expect(tested).toMatchObject({ code: 0 });
});

test('Prometheus evaluates every alert; a manager that works raises none that is critical', async () => {
  await eventually(async () => {
    const rules = await prometheus.rules();
    const raised = rules.filter(({ state }) => state !== 'inactive').map(({ name }) => name);

    expect(rules.length).toBeGreaterThanOrEqual(14);
    expect(rules.filter(({ health }) => health !== 'ok')).toEqual([]);
    expect(raised.filter((name) => CRITICAL.includes(name))).toEqual([]);
  }, PATIENCE);
});

/** What promtool says of names that are the original's, or those of every Node.js process; none of ours may be here. */
const GIVEN = [
  ...['info', 'deployment_info', 'set_info'].map(
    (name) => `mcm_machine_${name} label names should be written in 'snake_case' not 'camelCase'`,
  ),
  ...['mcm_machine', 'mcm_machine_deployment', 'mcm_machine_set'].map(
    (kind) => `${kind}_items_total non-counter metrics should not have "_total" suffix`,
  ),
  ...['handles', 'requests', 'resources'].map(
    (what) => `nodejs_active_${what}_total non-counter metrics should not have "_total" suffix`,
  ),
];

test("promtool finds nothing wrong with the metrics, but for the original's names", async () => {
  const text = await (await fetch(`${manager.url}/metrics`)).text();

  const { output } = await promtool(['check', 'metrics'], text);

  expect([...new Set(output.trim().split('\n'))].toSorted()).toEqual(GIVEN.toSorted());
});
