import type { Machine } from '../apis/machine/v1alpha1/machine.ts';
import { nodeOfMachine, type MachineToNode, type TreeNode } from '../fleet/tree.ts';
import { isPreserved } from '../controllers/machine-facts/preserved.ts';

interface Known {
  readonly node: TreeNode;
  readonly outage: string | undefined;
  readonly isPreserved: boolean;
}

/**
 * What nodeOfMachine gives, which is remembered as long as a cache has the same object: of thousands of Machines, few change in a second. Of the
 * time it depends in one way: that a Machine is preserved ends.
 */
export function rememberingNodes(): MachineToNode {
  const known = new WeakMap<Machine, Known>();
  return (machine, nowMs, outage) => {
    const before = known.get(machine);
    const preserved = isPreserved(machine, nowMs);
    if (before !== undefined && before.outage === outage && before.isPreserved === preserved) return before.node;
    const node = nodeOfMachine(machine, nowMs, outage);
    known.set(machine, { node, outage, isPreserved: preserved });
    return node;
  };
}
