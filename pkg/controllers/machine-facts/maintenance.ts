import {
  MAINTENANCE_ANNOTATION,
  MAINTENANCE_NODE_ANNOTATION,
  MAINTENANCE_SINCE_ANNOTATION,
} from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine, MachineCondition } from '../../apis/machine/v1alpha1/machine.ts';
import type { Node } from '../../apis/wire.ts';
import { conditionOf } from '../../work/reconcile/conditions.ts';
import { problemWith, type AnnotationRule } from './annotation-rule.ts';
import { frontEndField } from './front-end-field.ts';
import { describeHooks, hooksOf } from './hooks.ts';

export const MAINTENANCE = 'Maintenance';

/** What it says, in the order in which that happens; it is True with InMaintenance alone. */
export const MAINTENANCE_REASONS = [
  'InvalidValue',
  'Requested',
  'WaitingForHooks',
  'Draining',
  'DrainBlocked',
  'DrainFailed',
  'InMaintenance',
  'UncordonFailed',
  'NotInMaintenance',
] as const;

export type MaintenanceReason = (typeof MAINTENANCE_REASONS)[number];

/** Said of a Node that asks for maintenance, and belongs to no machine. */
export const NO_MACHINE = 'NoMachine';

/** What is recorded of a machine in maintenance instead of the UID of the Node that was emptied: there is none, or it was given back. */
export const WITHOUT_NODE = 'none';
export const GIVEN_BACK = 'given-back';

/** Reasons of the condition of a Node that has nothing of a maintenance. */
const SILENT: ReadonlySet<string | undefined> = new Set([undefined, 'NotInMaintenance', 'InvalidValue']);
/** Values of the request; any other counts as none. */
const VALUES: ReadonlySet<string> = new Set(['true', 'false']);

/** Whether a Node whose condition has this reason has nothing of a maintenance. */
export function leavesNodeUntouched(reason: string | undefined): boolean {
  return SILENT.has(reason);
}

type WithAnnotations = Pick<Machine | Node, 'metadata'>;

/** Whether maintenance is asked for, on the Machine or on its Node. */
export function isMaintenanceRequested(machine: WithAnnotations, node: WithAnnotations | undefined): boolean {
  return [machine, node].some((one) => one?.metadata.annotations?.[MAINTENANCE_ANNOTATION] === 'true');
}

/** What may stand in the annotation, on Machines and on Nodes. */
export const MAINTENANCE_RULE: AnnotationRule = {
  key: MAINTENANCE_ANNOTATION,
  isUnderstood: (value) => VALUES.has(value),
  allowed: 'true or false',
  until: 'it has no effect',
};

/**
 * Whether a machine is in maintenance, on its way there, or on its way back: nothing is replaced because of its health then, and it is not
 * available. Follows from the Machine alone; that its Node asks for it is recorded there.
 */
export function isUnderMaintenance(machine: Pick<Machine, 'metadata'>): boolean {
  return (
    isMaintenanceRequested(machine, undefined) ||
    machine.metadata.annotations?.[MAINTENANCE_SINCE_ANNOTATION] !== undefined
  );
}

export interface ReportedMaintenance extends Pick<MachineCondition, 'status'> {
  readonly reason: MaintenanceReason;
  readonly message: string;
}

/** What is told of the maintenance of a machine, from what is recorded on it; undefined of one that never was in maintenance. */
export function maintenanceOf(machine: Pick<Machine, 'metadata' | 'status'>): ReportedMaintenance | undefined {
  const { metadata, status } = machine;
  const { [MAINTENANCE_SINCE_ANNOTATION]: since, [MAINTENANCE_NODE_ANNOTATION]: emptied } = metadata.annotations ?? {};
  const mirrored = conditionOf(status?.conditions, MAINTENANCE);
  if (since === undefined) {
    const wrong = problemWith(MAINTENANCE_RULE, machine, 'the Machine');
    if (wrong !== undefined) return told('InvalidValue', wrong);
    if (isMaintenanceRequested(machine, undefined)) return told('Requested', REQUESTED);
    if (mirrored?.reason === 'InvalidValue') return told('InvalidValue', mirrored.message ?? '');
    return mirrored === undefined ? undefined : told('NotInMaintenance', ENDED);
  }
  if (emptied === GIVEN_BACK) {
    if (mirrored?.reason === 'UncordonFailed') return told('UncordonFailed', mirrored.message ?? '');
    return told('NotInMaintenance', mirrored?.reason === 'NotInMaintenance' ? ENDED : RETURNING);
  }
  if (emptied === WITHOUT_NODE)
    return told('InMaintenance', `There is no Node to drain. ${howMaintenanceEnds(machine)}`);
  const hooks = emptied === undefined ? hooksOf({ metadata }, 'maintenance') : [];
  if (hooks.length > 0) return told('WaitingForHooks', describeHooks(hooks));
  // It is recorded after the drain, and removed before another one: the API server may refuse that the Node says so.
  if (emptied !== undefined && leavesNodeUntouched(mirrored?.reason))
    return told('InMaintenance', `The Node is cordoned and drained. ${howMaintenanceEnds(machine)}`);
  const reason = MAINTENANCE_REASONS.find((one) => one === mirrored?.reason);
  // What the mirror says before the Node was told is of another time; also of a Node that could not be told how that ended.
  const isStale = leavesNodeUntouched(reason) || (reason === 'InMaintenance' && emptied === undefined);
  if (reason === undefined || isStale) return told('Requested', REQUESTED);
  return told(reason, mirrored?.message ?? '');
}

export function howMaintenanceEnds(machine: Pick<Machine, 'metadata'>): string {
  const field = frontEndField(machine, 'maintenance');
  return field === undefined
    ? `It ends when annotation ${MAINTENANCE_ANNOTATION} is removed from Machine and Node.`
    : `It ends when ${field} is false, and the Node does not carry annotation ${MAINTENANCE_ANNOTATION}.`;
}
export const REQUESTED = 'Maintenance was requested.';
const RETURNING = 'Maintenance is no longer requested. Uncordoning the Node.';
export const ENDED = 'Maintenance is not requested.';

function told(reason: MaintenanceReason, message: string): ReportedMaintenance {
  return { status: reason === 'InMaintenance' ? 'True' : 'False', reason, message };
}
