import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { NODE_LABEL } from '../../apis/machine/v1alpha1/labels.ts';
import { isNotFound } from '../../kube/errors.ts';
import { nodes } from '../../kube/resource.ts';
import { isHealthy } from '../machine/node-health.ts';
import type { MachineSetParts } from './parts.ts';

/**
 * The last look before a Failed Machine is deleted: whether its Node works after all, as the target cluster says now. Only a
 * Machine that failed its health check is looked at, because then the machine controller makes it `Running` again at its next
 * pass. The Machine itself needs no read: the DELETE names the resourceVersion at which it was Failed.
 */
export async function hasRecovered(
  { targets, nodeConditions }: Pick<MachineSetParts, 'targets' | 'nodeConditions'>,
  machine: Machine,
  signal: AbortSignal,
): Promise<boolean> {
  const name = machine.metadata.labels?.[NODE_LABEL] ?? '';
  const target = targets.of(machine);
  if (target === undefined || name === '' || machine.status?.lastOperation?.type !== 'HealthCheck') return false;
  try {
    const node = await target.reader.get(nodes, { name }, { signal });
    return isHealthy(node.status?.conditions ?? [], conditionsOf(machine) ?? nodeConditions);
  } catch (err) {
    if (isNotFound(err)) return false;
    throw err; // no look, no deletion
  }
}

function conditionsOf(machine: Machine): string[] | undefined {
  return machine.spec.nodeConditions?.split(',').map((type) => type.trim());
}
