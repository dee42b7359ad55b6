import type { Registry } from 'prom-client';

import { declaring } from './declaring.ts';

export function gateMetrics(registry: Registry) {
  const { counter, gauge } = declaring(registry);
  return {
    anyOutage: gauge('mcm_machine_controller_frozen').help(
      'Whether changes are blocked because of an outage of a cluster (1) or not (0).',
    ),
    outage: gauge('machinist_cluster_outage', ['cluster']).help(
      'Whether changes to this cluster are blocked because it is unreachable or was restored to an earlier state (1) or not (0).',
    ),
    outageSince: gauge('machinist_cluster_outage_since_timestamp_seconds', ['cluster']).help(
      'Time of the last response of a cluster with an outage (if it never responded: of the first probe), in seconds since the epoch; no value without an outage. For the cause, see the log and /readyz?verbose.',
    ),
    outageReason: gauge('machinist_cluster_outage_reason', ['cluster', 'reason']).help(
      'Why changes to this cluster are blocked: 1 for the reason (unreachable, no-credentials, set-back, server-ahead), 0 for the others.',
    ),
    setBacks: counter('machinist_cluster_set_back_total', ['cluster']).help(
      'Number of times a cluster was found to be restored to an earlier state, for example from an etcd backup.',
    ),
    probes: counter('machinist_cluster_probes_total', ['cluster', 'result']).help(
      'Live reads that check whether a cluster responds, by result (up, down).',
    ),
    refusals: counter('machinist_gate_refusals_total', ['intent', 'reason']).help(
      'Mutations that were not sent, by intent and reason (fenced, outage, unproven).',
    ),
  };
}

export type GateMetrics = ReturnType<typeof gateMetrics>;
