import type { Registry } from 'prom-client';

import { declaring } from './declaring.ts';

/** Declares the gate's metrics in `registry`. */
export function gateMetrics(registry: Registry) {
  const { counter, gauge } = declaring(registry);
  return {
    anyOutage: gauge(
      'mcm_machine_controller_frozen',
      'Whether changes are stopped because of an outage of a cluster: 1 stopped, 0 not.',
    ),
    outage: gauge(
      'machinist_cluster_outage',
      'Whether changes that concern this cluster are stopped because it could not be reached, or was set back: 1 stopped, 0 not.',
      ['cluster'],
    ),
    outageSince: gauge(
      'machinist_cluster_outage_since_timestamp_seconds',
      'When a cluster with an outage gave its last sign of life (without any: when the first probe was sent), in seconds since the epoch; no value without an outage. The log and /readyz?verbose say why.',
      ['cluster'],
    ),
    outageReason: gauge(
      'machinist_cluster_outage_reason',
      'Why changes that concern this cluster are stopped: 1 for the reason (unreachable, set-back, server-ahead), 0 for the others.',
      ['cluster', 'reason'],
    ),
    setBacks: counter(
      'machinist_cluster_set_back_total',
      'How often a cluster turned out to have been set back to an earlier state: its etcd was restored from a backup.',
      ['cluster'],
    ),
    probes: counter(
      'machinist_cluster_probes_total',
      'Live reads that ask whether a cluster answers, by result (up, down).',
      ['cluster', 'result'],
    ),
    refusals: counter(
      'machinist_gate_refusals_total',
      'Mutations that were not sent, by intent and reason (fenced, outage, unproven).',
      ['intent', 'reason'],
    ),
  };
}

/** What is counted about probes, outages and refused mutations. */
export type GateMetrics = ReturnType<typeof gateMetrics>;
