import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { NODE_LABEL, SELECTED_FOR_UPDATE_LABEL } from '../../apis/machine/v1alpha1/labels.ts';
import { isNotFound } from '../../kube/errors.ts';
import { nodes } from '../../kube/resource.ts';
import { isHealthy } from '../machines/node-health.ts';
import type { MachineSetParts } from './parts.ts';

/**
 * The last look before a Failed Machine is deleted: whether its Node works after all, as the target cluster says now; then the
 * machine controller makes it `Running` again at its next pass, whatever it had failed at. A Node that was drained for an
 * in-place update is the exception: the update failed, and that it is Ready proves nothing. The Machine itself needs no read:
 * the DELETE names the resourceVersion at which it was Failed.
 */
export async function hasRecovered(
  { targets, nodeConditions }: Pick<MachineSetParts, 'targets' | 'nodeConditions'>,
  machine: Machine,
  signal: AbortSignal,
): Promise<boolean> {
  const name = machine.metadata.labels?.[NODE_LABEL] ?? '';
  const target = targets.of(machine);
  if (target === undefined || name === '') return false;
  try {
    const node = await target.reader.get(nodes, { name }, { signal });
    if (node.metadata.labels?.[SELECTED_FOR_UPDATE_LABEL] !== undefined) return false;
    return isHealthy(node.status?.conditions ?? [], conditionsOf(machine) ?? nodeConditions);
  } catch (err) {
    if (isNotFound(err)) return false;
    throw err; // no look, no deletion
  }
}

function conditionsOf(machine: Machine): string[] | undefined {
  return machine.spec.nodeConditions?.split(',').map((type) => type.trim());
}
