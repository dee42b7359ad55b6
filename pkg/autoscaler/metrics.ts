import { Gauge, Histogram, type Registry } from 'prom-client';

import type { NodeGroup } from './groups.ts';
import type { Instance, InstanceState } from './instances.ts';
import { parsePlaceholder } from './placeholder.ts';

export interface GroupSizes {
  readonly group: NodeGroup;
  readonly target: number;
  readonly instances: readonly Instance[];
}

export interface AutoscalerMetrics {
  /** Every call, by method and name of the gRPC code. */
  readonly duration: Histogram<'method' | 'code'>;
}

const STATES: readonly InstanceState[] = ['running', 'creating', 'deleting'];

/** Declares the metrics of the autoscaler's port in `registry`; groups are asked for at each scrape. */
export function autoscalerMetrics(registry: Registry, groups: () => readonly GroupSizes[]): AutoscalerMetrics {
  const registers = [registry];
  void new Gauge({
    name: 'machinist_autoscaler_node_group_size',
    help: 'Size of a node group: its limits (min, max), the desired machines (target), the machines that are running, being created and being deleted, and the replicas without a machine (synthetic).',
    labelNames: ['namespace', 'group', 'of'],
    registers,
    collect() {
      this.reset();
      for (const { group, target, instances } of groups()) {
        const labels = { namespace: group.namespace, group: group.name };
        const count = (of: string, value: number): void => this.set({ ...labels, of }, value);
        count('min', group.min);
        count('max', group.max);
        count('target', target);
        const machines = instances.filter(({ id }) => parsePlaceholder(id)?.kind !== 'missing');
        for (const state of STATES) count(state, machines.filter((machine) => machine.state === state).length);
        count('synthetic', instances.length - machines.length);
      }
    },
  });
  return {
    duration: new Histogram({
      name: 'machinist_autoscaler_request_duration_seconds',
      help: 'Duration in seconds of cluster-autoscaler calls, by method and gRPC code.',
      labelNames: ['method', 'code'],
      buckets: [0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 30],
      registers,
    }),
  };
}
