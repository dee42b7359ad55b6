import type { Registry } from 'prom-client';

import { activityMetrics } from '../metrics/activity.ts';
import { clockMetrics } from '../metrics/clock.ts';
import { driverMetrics } from '../metrics/driver.ts';
import { eventMetrics } from '../metrics/events.ts';
import { gateMetrics } from '../metrics/gate.ts';
import { kubeMetrics } from '../metrics/kube.ts';
import { leaderMetrics } from '../metrics/leader.ts';
import { queueMetrics } from '../metrics/queue.ts';
import { reconcileMetrics } from '../metrics/reconcile.ts';

/** The metrics that are declared once for the process, whatever controllers it runs. */
export type OperatorMetrics = ReturnType<typeof operatorMetrics>;

export function operatorMetrics(registry: Registry) {
  return {
    activity: activityMetrics(registry),
    clock: clockMetrics(registry),
    driver: driverMetrics(registry),
    event: eventMetrics(registry),
    gate: gateMetrics(registry),
    kube: kubeMetrics(registry),
    leader: leaderMetrics(registry),
    queue: queueMetrics(registry),
    reconcile: reconcileMetrics(registry),
  };
}
