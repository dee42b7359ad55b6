import type { Registry } from 'prom-client';

import { autoscalerMetrics } from '../../pkg/autoscaler/metrics.ts';
import { activityMetrics } from '../../pkg/metrics/activity.ts';
import { clockMetrics } from '../../pkg/metrics/clock.ts';
import { driverMetrics } from '../../pkg/metrics/driver.ts';
import { eventMetrics } from '../../pkg/metrics/events.ts';
import { gateMetrics } from '../../pkg/metrics/gate.ts';
import { heldWorkMetrics } from '../../pkg/metrics/held-work.ts';
import { kubeMetrics } from '../../pkg/metrics/kube.ts';
import { leaderMetrics } from '../../pkg/metrics/leader.ts';
import { machineDeploymentMetrics } from '../../pkg/controllers/machine-deployment/metrics.ts';
import { machineSetMetrics } from '../../pkg/controllers/machine-set/metrics.ts';
import { machineMetrics } from '../../pkg/controllers/machine/metrics.ts';
import { replacementMetrics } from '../../pkg/controllers/machine/replacement-metrics.ts';
import { queueMetrics } from '../../pkg/metrics/queue.ts';
import { reconcileMetrics } from '../../pkg/metrics/reconcile.ts';
import { orphanVMMetrics } from '../../pkg/controllers/safety/orphan-vms/metrics.ts';
import { unmanagedNodeMetrics } from '../../pkg/controllers/safety/unmanaged-nodes/metrics.ts';
import { createRegistry } from '../../pkg/metrics/registry.ts';
import { table } from './table.ts';

const INTRODUCTION = `# Metrics

Generated from the declarations in \`pkg\`.

Served at \`/metrics\` in the Prometheus text format. Names that begin with \`mcm_\` and \`rest_client_\` are the original's, with its labels; those that
begin with \`machinist_\` are ours. The usual \`process_*\` and \`nodejs_*\` metrics come on top. Gauges about objects are read from the caches at each
scrape: the series of a deleted object are gone with it.
`;

/** What of a metric the reference shows; prom-client does not declare \`labelNames\`. */
interface Described {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly labelNames?: readonly string[];
}

/** docs/reference/metrics.md, from the declarations. */
export async function metricsReference(): Promise<string> {
  const registry = createRegistry();
  declareAll(registry);
  const described = registry.getMetricsAsArray() as unknown as readonly Described[];
  const rows = described
    .filter(({ name }) => /^(mcm|rest_client|machinist)_/.test(name))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .map(({ name, type, labelNames = [], help }) => [
      `\`${name}\``,
      type,
      labelNames.map((label) => `\`${label}\``).join(', ') || '–',
      help,
    ]);
  return `${INTRODUCTION}\n${await table(['metric', 'type', 'labels', 'meaning'], rows)}`;
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
    queueMetrics,
    reconcileMetrics,
  ]) {
    declare(registry);
  }
  machineDeploymentMetrics(registry, () => []);
  machineSetMetrics(registry, () => []);
  machineMetrics(registry, { list: () => [] });
  replacementMetrics(registry, { held: () => [], zones: () => [] }, []);
  orphanVMMetrics(registry, () => 0);
  unmanagedNodeMetrics(registry);
  heldWorkMetrics(registry, () => []);
  autoscalerMetrics(registry, () => []);
}
