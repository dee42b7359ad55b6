import { nodeNameOf } from '../../apis/machine/v1alpha1/defaults.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { SELECTED_FOR_UPDATE_LABEL } from '../../apis/machine/v1alpha1/labels.ts';
import { nodeAccess } from '../machine-facts/node-access.ts';
import { isHealthy } from '../machine-facts/node-health.ts';
import { belongsTo, ownNodeOf } from '../machine-facts/node-owner.ts';
import type { MachineSetDeps } from './deps.ts';

/**
 * The last look before a Failed Machine is deleted: whether its own Node works after all, as the target cluster says now; then the
 * machine controller makes it `Running` again at its next pass, whatever it had failed at, and corrects label `node` where that is wrong. A Node that was drained for an
 * in-place update is the exception: the update failed, and that it is Ready proves nothing. The Machine itself needs no read:
 * the DELETE names the resourceVersion at which it was Failed.
 */
export async function hasRecovered(
  { targets, nodeConditions, machines }: Pick<MachineSetDeps, 'targets' | 'nodeConditions' | 'machines'>,
  machine: Machine,
  signal: AbortSignal,
): Promise<boolean> {
  const target = targets.of(machine);
  if (target === undefined) return false;
  const access = nodeAccess(target, machines);
  const named = nodeNameOf(machine);
  const names = new Set([named, ownNodeOf(machine, access)?.metadata.name ?? '']);
  for (const name of names) {
    // No look, no deletion: what this throws is thrown.
    const node = name === '' ? undefined : await access.read(name, signal);
    if (node === undefined || !belongsTo(node, machine, machines)) continue;
    if (node.metadata.labels?.[SELECTED_FOR_UPDATE_LABEL] !== undefined) return false;
    return isHealthy(node.status?.conditions ?? [], conditionsOf(machine) ?? nodeConditions);
  }
  return false;
}

function conditionsOf(machine: Machine): string[] | undefined {
  return machine.spec.nodeConditions?.split(',').map((type) => type.trim());
}
