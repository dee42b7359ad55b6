import type { Histogram, Registry } from 'prom-client';

import { declaring } from '../base/metrics/declaring.ts';
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
  const { series } = declaring(registry);
  series(
    'machinist_autoscaler_node_group_size',
    'Size of a node group: its limits (min, max), the desired machines (target), the machines that are running, being created and being deleted, and the replicas without a machine (synthetic).',
    ['namespace', 'group', 'of'],
    () => groups().flatMap(sizesOf),
  );
  return callMetrics(registry);
}

/** Declares those that are about no group. */
export function callMetrics(registry: Registry): AutoscalerMetrics {
  const { histogram } = declaring(registry);
  return {
    duration: histogram(
      'machinist_autoscaler_request_duration_seconds',
      ['method', 'code'],
      [0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 30],
    ).help('Duration in seconds of cluster-autoscaler calls, by method and gRPC code.'),
  };
}

function sizesOf({ group, target, instances }: GroupSizes) {
  const { namespace, name, min, max } = group;
  const machines = instances.filter(({ id }) => parsePlaceholder(id)?.kind !== 'missing');
  const states = STATES.map((state) => [state, machines.filter((machine) => machine.state === state).length] as const);
  const synthetic = instances.length - machines.length;
  const sizes = [['min', min], ['max', max], ['target', target], ...states, ['synthetic', synthetic]] as const;
  return sizes.map(([of, value]) => [{ namespace, group: name, of }, value] as const);
}
