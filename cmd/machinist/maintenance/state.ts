import { MAINTENANCE_ANNOTATION } from '../../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../pkg/apis/machine/v1alpha1/machine.ts';
import { isBeingDeleted } from '../../../pkg/apis/meta.ts';
import {
  isMaintenanceRequested,
  isUnderMaintenance,
  maintenanceOf,
} from '../../../pkg/controllers/machine-facts/maintenance.ts';
import { CommandError } from '../command-error.ts';

/** What a command waits for; `status` for whatever is asked. */
export type MaintenanceGoal = 'start' | 'end' | 'status';

/** Where the maintenance of a machine stands, in one line. */
export interface MaintenanceState {
  readonly text: string;
  /** Whether the goal is reached. */
  readonly isDone: boolean;
}

/** Where it stands. Throws CommandError when the goal will not be reached by waiting. */
export function maintenanceState(machine: Machine, goal: MaintenanceGoal): MaintenanceState {
  const { reason = 'NotInMaintenance', message = '' } = maintenanceOf(machine) ?? {};
  const isOver = !isUnderMaintenance(machine);
  if (goal === 'start' && isBeingDeleted(machine)) throw new CommandError(`${quoted(machine)} is being deleted`);
  if (goal === 'start' && isOver) throw new CommandError(`maintenance of ${quoted(machine)} is no longer requested`);
  const isThere = reason === 'InMaintenance';
  const isDone = goal === 'start' ? isThere : goal === 'end' ? isOver : isThere || isOver;
  const told = message === '' ? '' : `: ${message}`;
  return {
    text: `${quoted(machine)} ${isOver && reason !== 'InvalidValue' ? 'is not in maintenance' : `${reason}${told}`}`,
    isDone,
  };
}

/** What a wait that takes too long was for, how to look at that, and how to end it where that can be done. */
export function maintenanceTimeoutText(machine: Machine, goal: MaintenanceGoal): string {
  const { name, namespace = 'default' } = machine.metadata;
  const { description = '' } = machine.status?.lastOperation ?? {};
  const { reason } = maintenanceOf(machine) ?? {};
  // Nothing was done about it yet: perhaps the manager does not run, or is at something else.
  const before = reason === 'Requested' && description !== '' ? ` Last operation: ${description}` : '';
  const end = goal === 'start' ? `, end it with: machinist maintenance end -n ${namespace} ${name}` : '';
  const look = `show it with: machinist describe machine -n ${namespace} ${name}`;
  const onNode = goal === 'end' ? nodeMayAsk(machine) : '';
  return `${maintenanceState(machine, goal).text}${before}; it continues; ${look}${end}${onNode}`;
}

/** What starts a maintenance; undefined when that was asked for. Throws CommandError for a machine that is being deleted. */
export function startOf(machine: Machine): Record<string, string> | undefined {
  if (isBeingDeleted(machine)) throw new CommandError(`${quoted(machine)} is being deleted`);
  return isMaintenanceRequested(machine, undefined) ? undefined : { [MAINTENANCE_ANNOTATION]: 'true' };
}

/** What ends a maintenance; undefined when nothing has to. Throws CommandError when the Machine alone does not. */
export function endMaintenancePatch(machine: Machine): Record<string, null> | undefined {
  if (machine.metadata.annotations?.[MAINTENANCE_ANNOTATION] !== undefined) return { [MAINTENANCE_ANNOTATION]: null };
  if (!isUnderMaintenance(machine) || isReturning(machine)) return undefined;
  throw new CommandError(
    `maintenance of ${quoted(machine)} was requested on its Node; to end it: ${endOnNode(machine.metadata.labels?.['node'] ?? 'NODE')}`,
  );
}

/**
 * What is to be done if the Node requests the maintenance as well, which the Machine does not show; empty where there is nothing to end, or no
 * Node.
 */
export function nodeMayAsk(machine: Machine): string {
  const node = machine.metadata.labels?.['node'] ?? '';
  if (node === '' || !isUnderMaintenance(machine) || isReturning(machine)) return '';
  return `; if its Node requests it as well, end that with: ${endOnNode(node)}`;
}

function isReturning(machine: Machine): boolean {
  const { reason } = maintenanceOf(machine) ?? {};
  return reason === 'NotInMaintenance' || reason === 'UncordonFailed';
}

function endOnNode(node: string): string {
  return `kubectl annotate node ${node} ${MAINTENANCE_ANNOTATION}-`;
}

function quoted({ metadata }: Machine): string {
  return `machine "${metadata.name}"`;
}
