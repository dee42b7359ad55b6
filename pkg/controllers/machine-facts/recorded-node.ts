import { nodeNameOf } from '../../apis/machine/v1alpha1/defaults.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { Node } from '../../apis/wire.ts';
import type { Targets } from '../../kube/targets/targets.ts';
import { belongsTo, type MachineIndex } from './node-owner.ts';

export interface RecordedNodeDeps {
  readonly targets: Pick<Targets, 'of'>;
  readonly machines: MachineIndex;
}

/** The Node that label `node` of a Machine names, from the cache; undefined when there is none, or it is another machine's. */
export function recordedNodeOf({ targets, machines }: RecordedNodeDeps, machine: Machine): Node | undefined {
  const name = nodeNameOf(machine);
  const node = name === '' ? undefined : targets.of(machine)?.nodes.get(name);
  return node !== undefined && belongsTo(node, machine, machines) ? node : undefined;
}
