import { phaseOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import type { Machine, MachineCondition } from '../../../apis/machine/v1alpha1/machine.ts';
import type { ConditionStatus } from '../../../apis/machine/v1alpha1/phases.ts';
import { isBeingDeleted } from '../../../apis/meta.ts';
import { toTimestamp } from '../../../clock/clock.ts';
import { deletionStageOf, hasReached } from '../../machines/deletion-stage.ts';
import { NODE_SYNC_REFUSED, refusedFor } from '../../machines/node-refusal.ts';
import { explain } from './explain.ts';
import type { Explanation } from './explanation.ts';

/** Says what the API server refuses to record of a machine. */
const RECORD_REFUSED = 'RecordRefused';

/** Types of `status.machineConditions`. `Drained` exists only while the machine is deleted, `NodeSyncRefused` and `RecordRefused`
 * only while something is refused. */
export type MachineConditionType =
  'VMCreated' | 'NodeJoined' | 'Healthy' | 'Drained' | typeof NODE_SYNC_REFUSED | typeof RECORD_REFUSED;

/**
 * The machine's story as conditions, for `kubectl describe` and `kubectl wait`. Display only: nothing is decided from them,
 * because the original prunes them. They are written along with other changes of the status, never for their own sake.
 * `recordRefused`: what the API server refuses to record, in words.
 */
export function machineConditions(machine: Machine, nowMs: number, recordRefused?: string): MachineCondition[] {
  const explanation = explain(machine, nowMs);
  const conditions = [vmCreated(machine, explanation), nodeJoined(machine, explanation), healthy(machine, explanation)];
  if (isBeingDeleted(machine)) conditions.push(drained(machine, explanation));
  const refused = refusedFor(machine);
  if (refused !== undefined) conditions.push(condition(NODE_SYNC_REFUSED, 'True', 'Refused', refused));
  if (recordRefused !== undefined) conditions.push(condition(RECORD_REFUSED, 'True', 'Refused', recordRefused));
  const known = new Map((machine.status?.machineConditions ?? []).map((old) => [old.type, old]));
  return conditions.map((current) => {
    const old = known.get(current.type);
    const turnedAt = old?.status === current.status ? old.lastTransitionTime : undefined;
    return { ...current, lastTransitionTime: turnedAt ?? toTimestamp(nowMs) };
  });
}

/** What the API server refused to record when the status was last written; undefined when nothing. */
export function refusalShownBy({ status }: Machine): string | undefined {
  return status?.machineConditions?.find(({ type }) => type === RECORD_REFUSED)?.message;
}

function vmCreated(machine: Machine, { reason, message }: Explanation): MachineCondition {
  const { providerID = '' } = machine.spec ?? {};
  return !hasVM(machine)
    ? condition('VMCreated', 'False', reason, message)
    : condition('VMCreated', 'True', 'VMCreated', `VM ${providerID} exists.`);
}

/** The mirror of the Node's conditions is empty until it has joined, and stays filled from then on. */
function nodeJoined(machine: Machine, { reason, message }: Explanation): MachineCondition {
  if (hasJoined(machine)) return condition('NodeJoined', 'True', 'NodeJoined', 'The Node has joined.');
  if (!hasVM(machine)) return condition('NodeJoined', 'False', 'NoVM', 'There is no VM yet.');
  return isBeingDeleted(machine)
    ? condition('NodeJoined', 'False', 'NotJoined', 'The VM has not become a Node.')
    : condition('NodeJoined', 'False', reason, message);
}

function hasVM({ spec }: Machine): boolean {
  return (spec?.providerID ?? '') !== '';
}

function hasJoined({ status }: Machine): boolean {
  return (status?.conditions ?? []).length > 0;
}

function healthy(machine: Machine, { reason, message }: Explanation): MachineCondition {
  const phase = phaseOf(machine);
  const status: ConditionStatus =
    phase === 'Running' || phase === 'Available' ? 'True' : phase === 'Unknown' ? 'Unknown' : 'False';
  if (status !== 'False' || hasJoined(machine)) return condition('Healthy', status, reason, message);
  return hasVM(machine)
    ? condition('Healthy', 'False', 'NotJoined', 'The VM has not become a Node yet.')
    : condition('Healthy', 'False', 'NoVM', 'There is no VM yet.');
}

function drained(machine: Machine, { reason, message }: Explanation): MachineCondition {
  return hasReached(deletionStageOf(machine), 'detach-volumes')
    ? condition('Drained', 'True', 'Drained', 'The drain is over.')
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
