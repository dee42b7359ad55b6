import { Counter, Gauge } from 'prom-client';
import type { Registry } from 'prom-client';

/** What is counted about probes, outages and refused mutations. */
export interface GateMetrics {
  /** Original's 0/1: whether any cluster has an outage. */
  readonly anyOutage: Gauge;
  readonly outage: Gauge<'cluster'>;
  /** Without a value for a cluster without an outage. */
  readonly outageSince: Gauge<'cluster'>;
  readonly setBacks: Counter<'cluster'>;
  readonly probes: Counter<'cluster' | 'result'>;
  readonly refusals: Counter<'intent' | 'reason'>;
}

/** Declares the gate's metrics in `registry`. */
export function gateMetrics(registry: Registry): GateMetrics {
  const registers = [registry];
  return {
    anyOutage: new Gauge({
      name: 'mcm_machine_controller_frozen',
      help: 'Whether changes are stopped because of an outage of a cluster: 1 stopped, 0 not.',
      registers,
    }),
    outage: new Gauge({
      name: 'machinist_cluster_outage',
      help: 'Whether changes that concern this cluster are stopped because it could not be reached, or was set back: 1 stopped, 0 not.',
      labelNames: ['cluster'],
      registers,
    }),
    outageSince: new Gauge({
      name: 'machinist_cluster_outage_since_timestamp_seconds',
      help: 'When a cluster with an outage gave its last sign of life (without any: when the first probe was sent), in seconds since the epoch; no value without an outage. The log and /readyz?verbose say why.',
      labelNames: ['cluster'],
      registers,
    }),
    setBacks: new Counter({
      name: 'machinist_cluster_set_back_total',
      help: 'How often a cluster turned out to have been set back to an earlier state: its etcd was restored from a backup.',
      labelNames: ['cluster'],
      registers,
    }),
    probes: new Counter({
      name: 'machinist_cluster_probes_total',
      help: 'Live reads that ask whether a cluster answers, by result (up, down).',
      labelNames: ['cluster', 'result'],
      registers,
    }),
    refusals: new Counter({
      name: 'machinist_gate_refusals_total',
      help: 'Mutations that were not sent, by intent and reason (fenced, outage, unproven).',
      labelNames: ['intent', 'reason'],
      registers,
    }),
  };
}
