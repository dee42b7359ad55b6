import { phaseOf, providerIDOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import { MACHINE_CONDITION_TYPES, type MachineConditionType } from '../../../apis/machine/v1alpha1/conditions.ts';
import type { Machine, MachineCondition } from '../../../apis/machine/v1alpha1/machine.ts';
import type { ConditionStatus } from '../../../apis/machine/v1alpha1/phases.ts';
import { isBeingDeleted } from '../../../apis/meta.ts';
import { dated, conditionOf } from '../../../work/reconcile/conditions.ts';
import { deletionStageOf, hasReached, textOfStage } from '../../machine-facts/deletion-stage.ts';
import { isVMRefused } from '../../machine-facts/joining.ts';
import { MAINTENANCE, maintenanceOf } from '../../machine-facts/maintenance.ts';
import { NODE_SYNC_REFUSED, refusedFor } from '../../machine-facts/node-refusal.ts';
import { isBeingCreated, hasMachineFinalizer } from '../../machine-facts/status.ts';
import { VM_DELETION_REQUESTED } from '../../machine-facts/vm-states.ts';
import { failedCallOf } from '../../machine-facts/original-texts.ts';
import { NODE_DELETED } from '../node/deleted-node-condition.ts';
import { explain } from './explain.ts';
import type { MachineExplanation } from '../explanation.ts';

/** Says that a machine names another class than its VM was requested with. */
export const CLASS_CHANGE_IGNORED = 'ClassChangeIgnored';

/** Says what the API server refuses to record of a machine. */
const RECORD_REFUSED = 'RecordRefused';

/** Those that are made here, of the explanation; all others are told by steps of their own. */
const EXPLAINED: ReadonlySet<MachineConditionType> = new Set([
  'VMCreated',
  'NodeJoined',
  'Healthy',
  'Drained',
  MAINTENANCE,
  NODE_SYNC_REFUSED,
  RECORD_REFUSED,
]);
const REPORTED_BY_STEPS: ReadonlySet<string> = new Set(MACHINE_CONDITION_TYPES.filter((type) => !EXPLAINED.has(type)));

/** What is said of machines that are kept, and over when they are deleted. */
const OF_KEPT_MACHINES: ReadonlySet<string> = new Set([VM_DELETION_REQUESTED, NODE_DELETED]);

/**
 * The machine's explanation as conditions, for `kubectl describe` and `kubectl wait`. Display only: nothing is decided from them,
 * because the original prunes them. They are written along with other changes of the status, never for their own sake.
 * `recordRefused`: what the API server refuses to record, in words, where the last operation does not say it.
 */
export function machineConditions(machine: Machine, nowMs: number, recordRefused?: string): MachineCondition[] {
  const explanation = explain(machine, nowMs);
  const conditions = [vmCreated(machine, explanation), nodeJoined(machine, explanation), healthy(machine, explanation)];
  if (isBeingDeleted(machine)) conditions.push(drained(machine, explanation));
  const maintenance = maintenanceOf(machine);
  if (maintenance !== undefined) conditions.push({ type: MAINTENANCE, ...maintenance });
  const refused = refusedFor(machine);
  if (refused !== undefined) conditions.push(condition(NODE_SYNC_REFUSED, 'True', 'Refused', refused));
  const refusal = recordRefused ?? recordedRefusalOf(machine);
  if (refusal !== undefined) conditions.push(condition(RECORD_REFUSED, 'True', 'Refused', refusal));
  const recorded = machine.status?.machineConditions ?? [];
  // Their definition does not keep one from being there twice.
  const byType = new Map(recorded.map((one) => [one.type, one]));
  const others = [...byType.values()].filter(
    ({ type }) => REPORTED_BY_STEPS.has(type) && !(OF_KEPT_MACHINES.has(type) && isBeingDeleted(machine)),
  );
  return [...conditions.map((current) => dated(current, recorded, nowMs)), ...others];
}

/** Whether the conditions of a machine say of its maintenance what is to be said after a pass. That it is over is no news where nothing was said. */
export function showsMaintenanceOf({ status }: Machine, after: Machine): boolean {
  const shown = conditionOf(status?.machineConditions, MAINTENANCE);
  const wanted = maintenanceOf(after);
  if (wanted === undefined) return shown === undefined;
  if (shown === undefined) return wanted.reason === 'NotInMaintenance';
  return shown.reason === wanted.reason && shown.message === wanted.message;
}

/** What the API server refused to record when the status was last written; undefined when nothing. */
export function refusalShownBy({ status }: Machine): string | undefined {
  return conditionOf(status?.machineConditions, RECORD_REFUSED)?.message;
}

/** What the last operation says that the API server refuses to record; undefined when it says nothing of that, or that is over. */
export function recordedRefusalOf(machine: Machine): string | undefined {
  const { spec, status } = machine;
  const { type, errorCode, description = '' } = status?.lastOperation ?? {};
  const isOpen =
    (errorCode === 'FinalizerRefused' && !hasMachineFinalizer(machine)) ||
    (errorCode === 'RecordRefused' && type === 'Delete') ||
    (isVMRefused(machine) && providerIDOf({ spec }) === '');
  return isOpen ? textOfStage(description) : undefined;
}

function vmCreated(machine: Machine, { reason, message }: MachineExplanation): MachineCondition {
  const { providerID = '' } = machine.spec ?? {};
  if (hasUnrecordedVM(machine))
    return condition('VMCreated', 'True', 'RecordRefused', recordedRefusalOf(machine) ?? '');
  if (!hasVM(machine)) return condition('VMCreated', 'False', reason, message);
  const vanished = vanishedVM(machine);
  if (vanished !== undefined) return vanished;
  // A provider id that the Machine was created with is not confirmed yet.
  const { lastOperation } = machine.status ?? {};
  if (isBeingCreated(machine) && failedCallOf(lastOperation) === 'create')
    return condition('VMCreated', lastOperation?.errorCode === 'NotFound' ? 'False' : 'Unknown', reason, message);
  return hasReached(deletionStageOf(machine), 'delete-node')
    ? condition('VMCreated', 'False', 'VMDeleted', `VM ${providerID} was deleted.`)
    : condition('VMCreated', 'True', 'VMCreated', `VM ${providerID} exists.`);
}

/** The condition of a machine that has failed because the provider no longer has its VM. */
function vanishedVM({ status }: Machine): MachineCondition | undefined {
  const { type, state, errorCode, description = '' } = status?.lastOperation ?? {};
  if (type !== 'HealthCheck' || state !== 'Failed' || errorCode !== 'NotFound') return undefined;
  return condition('VMCreated', 'False', 'VMVanished', description);
}

/** Whether the conditions still say that the VM exists which has vanished: whoever finds that writes no conditions. */
export function hidesVanishedVM({ status }: Machine, after: Machine): boolean {
  const shown = conditionOf(status?.machineConditions, 'VMCreated');
  return shown?.status === 'True' && vanishedVM(after) !== undefined;
}

/** The mirror of the Node's conditions is empty until it has joined, and stays filled from then on. */
function nodeJoined(machine: Machine, { reason, message }: MachineExplanation): MachineCondition {
  if (hasReached(deletionStageOf(machine), 'release-finalizer'))
    return condition('NodeJoined', 'False', 'NodeDeleted', 'The machine no longer has a Node.');
  if (hasUnrecordedVM(machine)) return condition('NodeJoined', 'False', 'NotRecorded', UNRECORDED);
  if (hasJoined(machine)) return condition('NodeJoined', 'True', 'NodeJoined', 'The Node has joined.');
  if (!hasVM(machine)) return condition('NodeJoined', 'False', 'NoVM', 'There is no VM yet.');
  return isBeingDeleted(machine)
    ? condition('NodeJoined', 'False', 'NotJoined', 'The VM has not joined as a Node.')
    : condition('NodeJoined', 'False', reason, message);
}

const UNRECORDED = 'Node unknown: the VM has not been recorded yet.';

/** The machine had got a VM when the API server refused to record which. */
function hasUnrecordedVM(machine: Machine): boolean {
  return hasMachineFinalizer(machine) && !hasVM(machine) && isVMRefused(machine);
}

function hasVM({ spec }: Machine): boolean {
  return providerIDOf({ spec }) !== '';
}

function hasJoined({ status }: Machine): boolean {
  return (status?.conditions ?? []).length > 0;
}

function healthy(machine: Machine, { reason, message }: MachineExplanation): MachineCondition {
  const phase = phaseOf(machine);
  const status: ConditionStatus =
    phase === 'Running' || phase === 'Available' ? 'True' : phase === 'Unknown' ? 'Unknown' : 'False';
  if (status !== 'False' || hasJoined(machine)) return condition('Healthy', status, reason, message);
  if (hasUnrecordedVM(machine)) return condition('Healthy', 'False', 'NotRecorded', UNRECORDED);
  return hasVM(machine)
    ? condition('Healthy', 'False', 'NotJoined', 'The VM has not joined as a Node yet.')
    : condition('Healthy', 'False', 'NoVM', 'There is no VM yet.');
}

function drained(machine: Machine, { reason, message }: MachineExplanation): MachineCondition {
  return hasReached(deletionStageOf(machine), 'detach-volumes')
    ? condition('Drained', 'True', 'Drained', 'The drain is complete.')
    : condition('Drained', 'False', reason, message);
}

function condition(
  type: MachineConditionType,
  status: ConditionStatus,
  reason: string,
  message: string,
): MachineCondition {
  return { type, status, reason, message };
}
