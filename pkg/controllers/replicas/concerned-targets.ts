import { hasForceDeletionLabel } from '../../apis/machine/v1alpha1/defaults.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { Cluster } from '../../kube/gate/gate.ts';
import type { Targets } from '../../kube/targets/targets.ts';

/**
 * The target clusters that must be proven alive before any of `machines` may be given up: while one cannot be seen, nobody
 * knows how its Nodes are. Machines that are to go by force wait for none: theirs may be hibernated, or gone for good.
 */
export function concernedTargets(targets: Pick<Targets, 'of'>, machines: readonly Machine[]): readonly Cluster[] {
  const clusters = machines
    .filter((machine) => !hasForceDeletionLabel(machine))
    .map((machine) => targets.of(machine)?.cluster);
  return [...new Set(clusters.filter((cluster) => cluster !== undefined))];
}
