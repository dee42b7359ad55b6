import { PRESERVE_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine, MachineSummary } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineSet, MachineSetCondition, MachineSetStatus } from '../../apis/machine/v1alpha1/machine-set.ts';
import type { MachineSetConditionType } from '../../apis/machine/v1alpha1/conditions.ts';
import { controllerOf } from '../../apis/meta.ts';
import { shortText } from '../../apis/short-text.ts';
import { fromTimestamp, toTimestamp } from '../../base/clock/clock.ts';
import { statusPatch, type MergePatch } from '../../kube/client/patch.ts';
import { dated } from '../../work/reconcile/conditions.ts';
import { next } from '../../work/reconcile/result.ts';
import { CHANGE_REFUSED } from '../replicas/events.ts';
import { INVALID_ANNOTATION, invalidAnnotations } from '../replicas/invalid-annotations.ts';
import { countMachines, isPreservedFailed, LISTED_FAILED_MACHINES } from '../replicas/machine-state.ts';
import type { ToldFailure } from '../replicas/owner-status.ts';
import { isEmpty, statusChange } from '../replicas/status-change.ts';
import { NODE_SYNC_REFUSED, nodeSyncRefusal } from '../machine-facts/node-refusal.ts';
import type { Collaborators, SetStep } from './step.ts';

export const status = ({ statuses, clock }: Pick<Collaborators, 'statuses' | 'clock'>): SetStep => ({
  name: 'status',
  async run(pass) {
    const { key, object, machines, invalid, isCutShort = false } = pass;
    const { failure: uncreated, undeleted, refusal: refused } = pass;
    const kind = uncreated !== undefined ? 'creation' : undeleted !== undefined ? 'deletion' : 'refusal';
    const failure = statuses.failureOf(key, uncreated ?? undeleted ?? refused, kind);
    await statuses.write(pass, (set) => {
      const observedGeneration = (isCutShort ? set.status?.observedGeneration : object.metadata.generation) ?? 0;
      const facts = { set, observedGeneration, machines, failure, invalid, nowMs: clock.now() };
      const change = machineSetStatusChange(facts);
      return change && statusPatch(set, change);
    });
    return next;
  },
});

export interface MachineSetStatusFacts {
  readonly set: MachineSet;
  readonly observedGeneration: number;
  /** The claimed Machines, terminating ones included. */
  readonly machines: readonly Machine[];
  /** What has failed in this pass. */
  readonly failure: ToldFailure | undefined;
  /** Why the spec cannot be obeyed. */
  readonly invalid: string | undefined;
  readonly nowMs: number;
}

/**
 * The members of `/status` that have to change, as a merge patch (null removes a member); undefined when the stored
 * status already says it all. Conditions of other writers are kept.
 */
export function machineSetStatusChange(facts: MachineSetStatusFacts): MergePatch<MachineSetStatus> | undefined {
  const change = statusChange(facts.set.status, statusOf(facts));
  if (change === undefined) return undefined;
  return { ...change, lastOperation: { lastUpdateTime: toTimestamp(facts.nowMs) } };
}

function statusOf(facts: MachineSetStatusFacts): Omit<MachineSetStatus, 'lastOperation'> {
  const { set, machines } = facts;
  const counts = countMachines(machines);
  const templateLabels = Object.entries(set.spec.template?.metadata?.labels ?? {});
  const failed = failedMachines(machines);
  return {
    replicas: counts.replicas,
    fullyLabeledReplicas: machines.filter(({ metadata }) =>
      templateLabels.every(([label, value]) => metadata.labels?.[label] === value),
    ).length,
    readyReplicas: counts.ready,
    availableReplicas: counts.available,
    preservedFailedReplicas: counts.preservedFailed,
    autoPreserveFailedMachineCount: machines.filter(
      ({ metadata }) => metadata.annotations?.[PRESERVE_ANNOTATION] === 'auto-preserved',
    ).length,
    observedGeneration: facts.observedGeneration,
    failedMachines: failed.slice(0, LISTED_FAILED_MACHINES),
    machineSetCondition: conditionsOf(facts, failed.length),
  };
}

/** Machines whose last operation failed, newest failure first; preserved ones are listed nowhere. */
function failedMachines(machines: readonly Machine[]): MachineSummary[] {
  return machines
    .filter((machine) => machine.status?.lastOperation?.state === 'Failed' && !isPreservedFailed(machine))
    .map((machine) => ({ machine, failedMs: fromTimestamp(machine.status?.lastOperation?.lastUpdateTime) ?? 0 }))
    .toSorted((a, b) => b.failedMs - a.failedMs || (a.machine.metadata.name < b.machine.metadata.name ? -1 : 1))
    .map(({ machine }) => summaryOf(machine));
}

/** Absent and null members are left out: the server drops them, and the next comparison must find what was written. */
function summaryOf(machine: Machine): MachineSummary {
  const lastOperation = Object.fromEntries(
    Object.entries(machine.status?.lastOperation ?? {})
      .filter(([, value]) => !isEmpty(value))
      // A hundred long ones would be more than etcd takes.
      .map(([member, value]) => [member, typeof value === 'string' ? shortText(value) : value]),
  );
  const { providerID } = machine.spec;
  const ownerRef = controllerOf(machine)?.name;
  return {
    name: machine.metadata.name,
    ...(isEmpty(providerID) ? {} : { providerID }),
    ...(ownerRef === undefined ? {} : { ownerRef }),
    lastOperation,
  };
}

function conditionsOf(facts: MachineSetStatusFacts, failedCount: number): MachineSetCondition[] {
  const stored = facts.set.status?.machineSetCondition ?? [];
  const wanted = [
    replicaFailure(facts),
    invalidSpec(facts),
    meaningless(facts),
    truncation(failedCount),
    refusal(facts),
  ];
  const ours: ReadonlySet<string> = new Set<MachineSetConditionType>(OWN_CONDITIONS);

  return [
    ...stored.filter(({ type }) => !ours.has(type)),
    ...wanted.filter((condition) => condition !== undefined).map((condition) => dated(condition, stored, facts.nowMs)),
  ].toSorted((a, b) => position(stored, a.type) - position(stored, b.type));
}

/** The conditions that this controller owns; `Frozen` belongs to the overshoot safety. */
const OWN_CONDITIONS = [
  'ReplicaFailure',
  'InvalidSpec',
  INVALID_ANNOTATION,
  'FailedMachinesTruncated',
  NODE_SYNC_REFUSED,
] as const;

function replicaFailure(facts: MachineSetStatusFacts): MachineSetCondition | undefined {
  const { set, machines, failure } = facts;
  if (failure === undefined) return undefined;
  const surplus = machines.length - (set.spec.replicas ?? 0);
  const ofCount = surplus < 0 ? 'FailedCreate' : surplus > 0 ? 'FailedDelete' : '';
  const reason = { creation: ofCount, deletion: 'FailedDelete', refusal: CHANGE_REFUSED }[failure.kind];
  return { type: 'ReplicaFailure', status: 'True', ...(reason === '' ? {} : { reason }), message: failure.text };
}

function invalidSpec({ invalid }: MachineSetStatusFacts): MachineSetCondition | undefined {
  if (invalid === undefined) return undefined;
  return { type: 'InvalidSpec', status: 'True', reason: 'ValidationFailed', message: invalid };
}

function meaningless({ set }: MachineSetStatusFacts): MachineSetCondition | undefined {
  const message = invalidAnnotations('MachineSet', set);
  return message === undefined
    ? undefined
    : { type: INVALID_ANNOTATION, status: 'True', reason: 'UnknownValue', message };
}

function truncation(failedCount: number): MachineSetCondition | undefined {
  if (failedCount <= LISTED_FAILED_MACHINES) return undefined;
  const message = `${failedCount} machines have failed; the newest ${LISTED_FAILED_MACHINES} are listed`;
  return { type: 'FailedMachinesTruncated', status: 'True', reason: 'TooManyFailedMachines', message };
}

function refusal({ machines }: MachineSetStatusFacts): MachineSetCondition | undefined {
  const refused = nodeSyncRefusal(machines);
  return refused && { type: NODE_SYNC_REFUSED, status: 'True', ...refused };
}

function position(stored: readonly MachineSetCondition[], type: string): number {
  const index = stored.findIndex((condition) => condition.type === type);
  return index < 0 ? stored.length : index;
}
