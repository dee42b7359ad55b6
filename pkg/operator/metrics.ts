import type { Registry } from 'prom-client';

import { activityMetrics } from '../base/metrics/activity.ts';
import { clockMetrics } from '../base/metrics/clock.ts';
import { driverMetrics } from '../base/metrics/driver.ts';
import { eventMetrics } from '../base/metrics/events.ts';
import { gateMetrics } from '../base/metrics/gate.ts';
import { kubeMetrics } from '../base/metrics/kube.ts';
import { leaderMetrics } from '../base/metrics/leader.ts';
import { queueMetrics } from '../base/metrics/queue.ts';
import { reconcileMetrics } from '../base/metrics/reconcile.ts';

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
