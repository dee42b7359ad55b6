import type { Registry } from 'prom-client';

import { cellMetrics } from '../../pkg/operator/cells/metrics.ts';
import { autoscalerMetrics } from '../../pkg/autoscaler/metrics.ts';
import { silentLogger } from '../../pkg/base/log/logger.ts';
import { activityMetrics } from '../../pkg/base/metrics/activity.ts';
import { buildInfo } from '../../pkg/base/metrics/build.ts';
import { logMetrics } from '../../pkg/base/metrics/log.ts';
import { clockMetrics } from '../../pkg/base/metrics/clock.ts';
import { driverMetrics } from '../../pkg/base/metrics/driver.ts';
import { eventMetrics } from '../../pkg/base/metrics/events.ts';
import { gateMetrics } from '../../pkg/base/metrics/gate.ts';
import { heldWorkMetrics } from '../../pkg/base/metrics/held-work.ts';
import { kubeMetrics } from '../../pkg/base/metrics/kube.ts';
import { metricFailures } from '../../pkg/base/metrics/metric-failures.ts';
import { leaderMetrics } from '../../pkg/base/metrics/leader.ts';
import { machineDeploymentMetrics } from '../../pkg/controllers/machine-deployment/metrics.ts';
import { machineSetMetrics } from '../../pkg/controllers/machine-set/metrics.ts';
import { rolloutMetrics } from '../../pkg/controllers/machine-deployment/rollout/rollout-metrics.ts';
import { machineMetrics } from '../../pkg/controllers/machine/metrics.ts';
import { poolMetrics } from '../../pkg/controllers/machine/pool-metrics.ts';
import { waitMetrics } from '../../pkg/controllers/machine/wait-metrics.ts';
import { replacementMetrics } from '../../pkg/controllers/machine/replacement-metrics.ts';
import { openStackMetrics } from '../../pkg/base/metrics/openstack.ts';
import { queueMetrics } from '../../pkg/base/metrics/queue.ts';
import { reconcileMetrics } from '../../pkg/base/metrics/reconcile.ts';
import { orphanVMMetrics } from '../../pkg/controllers/safety/orphan-vms/metrics.ts';
import { unmanagedNodeMetrics } from '../../pkg/controllers/safety/unmanaged-nodes/metrics.ts';
import { servedDriverMetrics } from '../../pkg/base/metrics/served-driver.ts';
import { createRegistry } from '../../pkg/base/metrics/registry.ts';
import { table } from './table.ts';
import { WORLDS } from './worlds/index.ts';

const INTRODUCTION = `# Metrics

Generated from the declarations in \`pkg\`.

Served at \`/metrics\` in the Prometheus text format. Metrics with the prefixes \`mcm_\` and \`rest_client_\` have the names and labels of
Gardener's machine-controller-manager; those with the prefix \`machinist_\` are specific to Machinist. The usual \`process_*\` and \`nodejs_*\` metrics are
served too.

Gauges about objects are computed from the caches at each scrape, so the series of an object end when the object is deleted. Every process reports the
contents of its own caches, whether or not it is the leader: take the maximum over several replicas, not the sum. Counters and histograms are those of
the process that did the work: take the sum of their rates.

The response has the text format 0.0.4, unless the client accepts \`application/openmetrics-text\` and does not prefer plain text; then it has OpenMetrics
1.0. In OpenMetrics, an \`mcm_\` counter without the suffix \`_total\` has type \`unknown\`.

A metric that cannot be read is omitted from the response, counted by \`machinist_scrape_failures_total\` from the next scrape on, and reported in the log once.
`;

const CARDINALITY = `
## How many series

A metric has at most one series for each combination of the values of its labels; a histogram has one for each bucket, and two more. The values of each
label are bounded as follows:

`;

const A_NAME = 'one for each object of the kind of the metric';
const A_MACHINE = 'one for each Machine';
const FIXED = 'a fixed list';

/** What bounds the values of each label; one that is missing here may not be declared. */
const BOUNDS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(WORLDS.flatMap(({ bounds = {} }) => Object.entries(bounds))),
  action: FIXED,
  binary: 'one',
  call: FIXED,
  cluster: 'the control cluster and the target',
  cell: 'one for each namespace that cannot be managed; with --cells, metrics of cells have it for at most 50 cells',
  code: 'HTTP status codes, gRPC codes, or codes of machine errors',
  condition: 'types of conditions; for a Machine, those of its Node',
  controller: FIXED,
  createdAt: 'one for each object',
  error_code: 'the 18 codes of machine errors',
  failed_machine_last_operation_machine_operation_type: FIXED,
  failed_machine_last_operation_state: FIXED,
  failed_machine_name: 'at most 100 for each MachineSet or MachineDeployment',
  failed_machine_owner_ref: 'as failed_machine_name',
  failed_machine_provider_id: 'as failed_machine_name',
  fate: FIXED,
  forced: 'true, false',
  group: 'one for each node group',
  host: 'one for each API server',
  instance_type: 'the instance types of MachineClasses',
  intent: FIXED,
  kind: FIXED,
  lease: 'at most two',
  machine_class: 'one for each MachineClass',
  machine_deployment: 'one for each MachineDeployment; in counters also deleted ones',
  method: FIXED,
  metric: 'one for each metric that could not be read',
  name: `${A_NAME}, or one for each workqueue`,
  namespace: 'one: a process serves one namespace',
  node_name: A_MACHINE,
  nodejs: 'one',
  of: 'clusters and providers, or a fixed list',
  operation: 'the 6 driver calls',
  owner: FIXED,
  phase: 'the phases of a Machine',
  program: 'one',
  provider: 'one for each driver, and one for each provider in MachineClasses',
  reason: FIXED,
  result: FIXED,
  service: FIXED,
  state: FIXED,
  spec_class_api_group: 'one or two',
  spec_class_kind: 'one or two',
  spec_class_name: 'one for each MachineClass',
  spec_machine_class_api_group: 'one or two',
  spec_machine_class_kind: 'one or two',
  spec_machine_class_name: 'one for each MachineClass',
  spec_provider_id: A_MACHINE,
  spec_strategy_type: FIXED,
  url: 'one for each kind of request; namespaces and names are replaced by placeholders',
  verb: FIXED,
  version: 'one',
  waits_for: FIXED,
  work: 'the Leases, and `process`',
  zone: 'the zones of the machines',
};

/** The parts of a metric that the reference shows; prom-client does not declare `labelNames`. */
export interface Described {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly labelNames?: readonly string[];
}

/** Every metric that a process can show, those of Node.js included. */
export function describedMetrics(): readonly Described[] {
  const registry = createRegistry();
  declareAll(registry);
  return registry.getMetricsAsArray() as unknown as readonly Described[];
}

/** docs/reference/metrics.md, from the declarations. */
export async function metricsReference(): Promise<string> {
  const described = describedMetrics();
  const rows = described
    .filter(isOurs)
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .map(({ name, type, labelNames = [], help }) => [
      `\`${name}\``,
      type,
      labelNames.map((label) => `\`${label}\``).join(', ') || '–',
      help,
    ]);
  const metrics = await table(['metric', 'type', 'labels', 'meaning'], rows);
  return `${INTRODUCTION}\n${metrics}${CARDINALITY}${await table(['label', 'values'], boundsOf(described))}`;
}

/** Throws for a label without a bound, and for a bound without a metric. */
function boundsOf(described: readonly Described[]): string[][] {
  const labels = new Set(described.filter(isOurs).flatMap(({ labelNames = [] }) => labelNames));
  const bounded = Object.keys(BOUNDS);
  const differing = [
    ...[...labels].filter((label) => !(label in BOUNDS)),
    ...bounded.filter((label) => !labels.has(label)),
  ];
  if (differing.length > 0) throw new Error(`labels without metric, or without a bound in BOUNDS: ${differing.join()}`);
  return [...labels].toSorted().map((label) => [`\`${label}\``, BOUNDS[label] ?? '']);
}

/** Declared in pkg; all others are those of every Node.js process. */
function isOurs({ name }: Described): boolean {
  return /^(mcm|rest_client|machinist)_/.test(name);
}

function declareAll(registry: Registry): void {
  for (const declare of [
    activityMetrics,
    clockMetrics,
    driverMetrics,
    eventMetrics,
    gateMetrics,
    kubeMetrics,
    leaderMetrics,
    openStackMetrics,
    queueMetrics,
    reconcileMetrics,
    servedDriverMetrics,
  ]) {
    declare(registry);
  }
  machineDeploymentMetrics(registry, () => []);
  machineSetMetrics(registry, () => []);
  machineMetrics(registry, { list: () => [] });
  const none = { list: () => [], get: () => undefined };
  const clock = { now: () => 0 };
  rolloutMetrics(registry, { machineDeployments: none, machineSets: none, machines: { byIndex: () => [] }, clock });
  poolMetrics(registry, { machines: none, machineSets: none, clock });
  waitMetrics(registry, { steps: NOTHING_WAITS, classes: none, clock });
  buildInfo(registry, { version: '', program: '' });
  logMetrics(registry, () => 0);
  replacementMetrics(registry, { held: () => [], zones: () => [] }, []);
  orphanVMMetrics(registry, () => 0);
  unmanagedNodeMetrics(registry);
  heldWorkMetrics(registry, () => []);
  for (const { metrics } of WORLDS) metrics?.(registry);
  metricFailures(registry, silentLogger);
  autoscalerMetrics(registry, () => []);
  cellMetrics(registry, () => ({
    running: 0,
    refused: [],
    refusedWorkloads: new Map(),
    shards: 0,
    unselected: 0,
    configuredShards: 0,
    replicas: 0,
  }));
}

const NOTHING_WAITS = { drains: { blocked: () => [] }, retries: { held: () => [], isExhausted: () => false } };
