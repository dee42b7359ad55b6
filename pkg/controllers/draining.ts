import type { Drain } from '../drain/drain.ts';
import { createDrainer } from '../drain/drainer.ts';
import { createKeptVolumes, type KeptVolumes } from '../drain/kept-volumes.ts';
import { DrainLimits } from '../drain/limits.ts';
import type { PodSource } from '../drain/node-pods.ts';
import type { Operator } from '../operator/operator.ts';
import type { Target } from '../kube/targets/targets.ts';
import { obeying, type PodRules } from './machine-facts/pod-rules.ts';

/** How Nodes are emptied, whatever their machines are: all drains share the limits of the process. */
export interface Draining {
  readonly drain: Drain;
  /** What it does about pods; undefined: nobody has rules. */
  readonly rules: PodRules | undefined;
  readonly keptVolumes: KeptVolumes;
}

export function drainingOf(operator: Operator, rules: PodRules | undefined): Draining {
  const { clock, log, random } = operator;
  const podsOf = ({ cluster }: Target, nodeName: string): PodSource => operator.targets.podsOn(cluster, nodeName);
  const drainer = createDrainer({ clock, random, log, limits: new DrainLimits(), podsOf });
  return {
    drain: rules === undefined ? drainer : obeying(drainer, rules),
    rules,
    keptVolumes: createKeptVolumes({ podsOf, clock, log }),
  };
}
