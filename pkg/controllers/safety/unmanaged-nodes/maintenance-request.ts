import { MAINTENANCE_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import type { Node } from '../../../apis/wire.ts';
import { isMaintenanceRequested, ENDED, MAINTENANCE, NO_MACHINE } from '../../machines/maintenance.ts';
import { nodeConditionOf, type DesiredCondition } from '../../machines/node-condition.ts';

const TEXT =
  `Annotation ${MAINTENANCE_ANNOTATION} has no effect: no Machine refers to this Node, by label node or by its provider ID. ` +
  'Cordon and drain it with kubectl instead, and remove the annotation.';

/** What a Node without Machine says of maintenance that is asked of it, and of such a request that was taken back. */
export function answerOf(node: Node): Pick<DesiredCondition, 'reason' | 'message'> | undefined {
  if (isMaintenanceRequested(node, undefined)) return { reason: NO_MACHINE, message: TEXT };
  return nodeConditionOf(node, MAINTENANCE)?.reason === NO_MACHINE
    ? { reason: 'NotInMaintenance', message: ENDED }
    : undefined;
}
