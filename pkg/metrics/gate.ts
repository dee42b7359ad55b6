import { Counter, Gauge } from 'prom-client';
import type { Registry } from 'prom-client';

/** What is counted about probes, freezes and refused mutations. */
export interface GateMetrics {
  /** Original's 0/1: whether any cluster is frozen. */
  readonly controllerFrozen: Gauge;
  readonly frozen: Gauge<'cluster'>;
  /** Without a value for a cluster that is not frozen. */
  readonly frozenSince: Gauge<'cluster'>;
  readonly setBacks: Counter<'cluster'>;
  readonly probes: Counter<'cluster' | 'result'>;
  readonly refusals: Counter<'intent' | 'reason'>;
}

/** Declares the gate's metrics in `registry`. */
export function gateMetrics(registry: Registry): GateMetrics {
  const registers = [registry];
  return {
    controllerFrozen: new Gauge({
      name: 'mcm_machine_controller_frozen',
      help: 'Whether mutations are stopped because a cluster could not be reached: 1 frozen, 0 not.',
      registers,
    }),
    frozen: new Gauge({
      name: 'machinist_cluster_frozen',
      help: 'Whether mutations that concern this cluster are stopped because it could not be reached: 1 frozen, 0 not.',
      labelNames: ['cluster'],
      registers,
    }),
    frozenSince: new Gauge({
      name: 'machinist_cluster_frozen_since_timestamp_seconds',
      help: 'When a frozen cluster gave its last sign of life (without any: when the first probe was sent), in seconds since the epoch; no value while it is not frozen. Why is in the log and in /readyz?verbose.',
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
      help: 'Mutations that were not sent, by intent and reason (fenced, frozen, unproven).',
      labelNames: ['intent', 'reason'],
      registers,
    }),
  };
}
