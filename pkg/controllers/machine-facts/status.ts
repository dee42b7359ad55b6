import { copyOfObject } from '../../apis/copy.ts';
import { hasFinalizer } from '../../apis/finalizers.ts';
import { phaseOf, providerIDOf } from '../../apis/machine/v1alpha1/defaults.ts';
import type { LastOperation, Machine, MachineCondition, MachineStatus } from '../../apis/machine/v1alpha1/machine.ts';
import { MACHINE_FINALIZER } from '../../apis/machine/v1alpha1/labels.ts';
import type { MachinePhase } from '../../apis/machine/v1alpha1/phases.ts';
import { LONGEST_TEXT, shortText } from '../../apis/short-text.ts';
import { toTimestamp, fromTimestamp, MINUTE_MS } from '../../base/clock/clock.ts';
import type { DriverCode } from '../../driver/error.ts';
import { conditionOf, dated, withCondition, withoutCondition } from '../../work/reconcile/conditions.ts';
import type { OperationCode } from './operation-codes.ts';

/** The copy that steps change: its status always exists. */
export type MachineCopy = Machine & { status: MachineStatus };

/** What steps say about the last operation; when it was said is added here. `errorCode`: of a driver, or why it waits. */
export interface OperationUpdate extends Pick<LastOperation, 'type' | 'state' | 'description'> {
  readonly errorCode?: DriverCode | OperationCode;
}

const NEVER_ASKED: ReadonlySet<string | undefined> = new Set<OperationCode>([
  'NeverAsked',
  'FinalizerRefused',
  'NameTaken',
]);

const UNDER_WAY: ReadonlySet<string | undefined> = new Set<OperationCode>(['VMBeingCreated', 'VMBeingInitialized']);

/** A copy of a cached Machine for one pass. */
export function copyOf(machine: Machine): MachineCopy {
  return wholeOf(copyOfObject(machine));
}

/** A Machine to look at. The CRD makes neither spec nor status mandatory; this one has both. */
export function wholeOf(machine: Machine): MachineCopy {
  const { spec, status, ...rest }: Partial<Machine> & Pick<Machine, 'metadata'> = machine;
  return { ...rest, spec: spec ?? {}, status: status ?? {} };
}

/** Whether our finalizer holds the Machine: none without it has a VM that was asked for by us. */
export function hasMachineFinalizer(machine: Pick<Machine, 'metadata'>): boolean {
  return hasFinalizer(machine, MACHINE_FINALIZER);
}

/** Whether a VM is still to be made or found: nothing was confirmed, or the last attempt failed. */
export function isBeingCreated(machine: Pick<Machine, 'status'>): boolean {
  const phase = phaseOf(machine);
  return phase === '' || phase === 'CrashLoopBackOff';
}

export function isUnderWay(operation: LastOperation | undefined): boolean {
  return UNDER_WAY.has(operation?.errorCode);
}

/**
 * Whether the machine has waited for its MachineClass, for our finalizer, or for its name from the beginning, and says so: no provider can have been
 * asked for a VM, because a class that is used is protected by a finalizer, and no VM is asked for without ours. A deletion keeps the code.
 */
export function wasNeverRequested({ spec, status }: Pick<Machine, 'spec' | 'status'>): boolean {
  const { type, state, errorCode } = status?.lastOperation ?? {};
  const isTold = type === 'Delete' || (type === 'Create' && state === 'Failed');
  return isTold && providerIDOf({ spec }) === '' && NEVER_ASKED.has(errorCode);
}

/** The code of an operation of a deletion: that no provider was asked is never forgotten, whatever else is to be said. */
export function codeInDeletion<T extends OperationCode | undefined>(
  machine: Pick<Machine, 'spec' | 'status'>,
  code: T,
): T | 'NeverAsked' {
  return wasNeverRequested(machine) ? 'NeverAsked' : code;
}

/** Shows a condition of the machine, since now if its status is another; undefined: shows none of that type. */
export function showCondition(
  { status }: MachineCopy,
  type: string,
  said: Omit<MachineCondition, 'type' | 'lastTransitionTime'> | undefined,
  nowMs: number,
): void {
  const { machineConditions } = status;
  if (said !== undefined)
    status.machineConditions = withCondition(machineConditions, dated({ type, ...said }, machineConditions, nowMs));
  else if (conditionOf(machineConditions, type) !== undefined)
    status.machineConditions = withoutCondition(machineConditions, type);
}

/**
 * Begins a phase now, unless the machine is in it already. A preservation survives, `timeoutActive` is told only of a
 * Pending machine that has a Node to wait for.
 */
export function beginPhase(machine: MachineCopy, phase: MachinePhase, nowMs: number): void {
  if (phaseOf(machine) === phase) return;
  const preserved = machine.status.currentStatus?.preserveExpiryTime;
  machine.status.currentStatus = {
    phase,
    lastUpdateTime: toTimestamp(nowMs),
    ...(phase === 'Pending' && { timeoutActive: true }),
    ...(preserved !== undefined && preserved !== null && { preserveExpiryTime: preserved }),
  };
}

/** Counts a phase from `sinceMs`, also one that the machine is in already: what it waits for is another thing now. */
export function restartPhase(machine: MachineCopy, phase: MachinePhase, sinceMs: number): void {
  beginPhase(machine, phase, sinceMs);
  machine.status.currentStatus = { ...machine.status.currentStatus, lastUpdateTime: toTimestamp(sinceMs) };
}

/** Longest description of an operation: a text from outside, and what is said of it. */
const LONGEST_DESCRIPTION = 2 * LONGEST_TEXT;

function kept(operation: OperationUpdate): OperationUpdate {
  const { description } = operation;
  return description === undefined
    ? operation
    : { ...operation, description: shortText(description, LONGEST_DESCRIPTION) };
}

/** Tells what is being done; the same words again change nothing. */
export function setOperation(machine: MachineCopy, told: OperationUpdate, nowMs: number): void {
  const operation = kept(told);
  if (saysTheSame(machine.status.lastOperation, operation)) return;
  machine.status.lastOperation = { ...operation, lastUpdateTime: toTimestamp(nowMs) };
}

/** Tells what failed; much the same words again change nothing. */
export function setFailure(machine: MachineCopy, told: OperationUpdate, nowMs: number): void {
  const operation = kept(told);
  if (isSimilar(machine.status.lastOperation, operation, nowMs)) return;
  machine.status.lastOperation = { ...operation, lastUpdateTime: toTimestamp(nowMs) };
}

function saysTheSame(previous: LastOperation | undefined, next: OperationUpdate): boolean {
  return (
    previous !== undefined &&
    previous.type === next.type &&
    previous.state === next.state &&
    previous.description === next.description &&
    (previous.errorCode ?? '') === (next.errorCode ?? '')
  );
}

/** Older than this, an operation is written again although nothing but its text changed. */
const FRESH_FOR_MS = 30 * MINUTE_MS;

/**
 * Whether writing `next` over `previous` would tell nobody anything new: same type, state and code, and descriptions that differ in nothing
 * but what varies from one attempt to the next. Provider errors carry request ids; without this rule each retry would be a write. Another word is
 * another error: the original compares by edit distance, and keeps short texts that name another field or Machine.
 */
export function isSimilar(previous: LastOperation | undefined, next: LastOperation, nowMs: number): boolean {
  if (previous === undefined) return false;
  const writtenMs = fromTimestamp(previous.lastUpdateTime);
  if (writtenMs === undefined || nowMs - writtenMs > FRESH_FOR_MS) return false;
  return (
    previous.type === next.type &&
    previous.state === next.state &&
    (previous.errorCode ?? '') === (next.errorCode ?? '') &&
    lasting(previous.description) === lasting(next.description)
  );
}

const VARIES = '#';

/** What varies from one attempt to the next, in the order in which it is left out. */
const VARYING: readonly RegExp[] = [
  // Named as the id of a request: whatever it looks like.
  /(?<=\b(?:request|correlation|trace|activity|operation)[ _-]?id["']?\s*[:=]?\s*["']?)[\w./+=-]+/gi,
  // UUIDs, timestamps, durations as Go writes them.
  /\b[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}\b/gi,
  /\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?/g,
  /\b(?:\d+(?:\.\d+)?(?:ns|us|µs|ms|s|m|h))+\b/g,
  // Long ids of letters and digits in both cases, such as messages that only the provider can decode.
  /(?<![\w-])(?=[\w-]*[a-z])(?=[\w-]*[A-Z])(?=[\w-]*\d)[\w-]{40,}/g,
  // Ids of letters and digits; hexadecimal ones of letters only.
  /\b(?=[a-z]*\d)[a-z\d]{6,}\b/gi,
  /\b[a-f]{8,64}\b/gi,
  // What is left of numbers.
  /\d+(?:\.\d+)?/g,
];

/** A text without what varies. */
function lasting(text = ''): string {
  return VARYING.reduce((left, one) => left.replace(one, VARIES), shortText(text));
}
