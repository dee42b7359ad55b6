import { isMaintenanceRequested, isUnderMaintenance } from '../../machine-facts/maintenance.ts';
import type { MachineIndex } from '../../machine-facts/node-owner.ts';
import type { MachineContext } from '../context.ts';
import { namedNode } from './named-node.ts';

/**
 * Whether no timeout of the machine's health or update counts: from the request for maintenance on, also one on its Node that was not recorded
 * yet, until its timeouts have begun anew.
 */
export function isSuspended(
  { machines }: { readonly machines: MachineIndex },
  ctx: Pick<MachineContext, 'machine' | 'nodes'>,
): boolean {
  if (isUnderMaintenance(ctx.machine)) return true;
  const node = namedNode(ctx, machines);
  return typeof node === 'object' && isMaintenanceRequested(ctx.machine, node);
}
