import { NO_REASON, type ClusterAPICondition } from '../api/condition.ts';
import type { ConditionStatus } from '../../../apis/machine/v1alpha1/phases.ts';
import type { ClusterAPIMachine, ClusterAPIPhase, DeprecatedCondition } from '../api/machine.ts';
import { isBeingDeleted } from '../../../apis/meta.ts';
import { fromTimestamp } from '../../../base/clock/clock.ts';
import { dated, conditionOf } from '../../../work/reconcile/conditions.ts';
import type { DataSecretTrouble } from './data-secrets.ts';
import type { ObservedObject, ObservedBootstrap, ObservedInfrastructure, ObservedNode } from './observed.ts';

/** What a condition says, before it is known since when. */
export interface ConditionValue {
  readonly type: string;
  readonly status: ConditionStatus;
  readonly reason: string;
  readonly message: string;
}

export interface MachineFacts {
  /** With what the pass has changed. */
  readonly machine: ClusterAPIMachine;
  readonly infrastructure: ObservedInfrastructure;
  readonly bootstrap: ObservedBootstrap;
  readonly node: ObservedNode;
  /** What keeps the machine from starting with its bootstrap data. */
  readonly dataSecret: DataSecretTrouble | undefined;
  /** Whether it is as its MachineDeployment wants it; undefined: nobody says so here. */
  readonly upToDate: ConditionValue | undefined;
  readonly deleting: { readonly reason: string; readonly message: string } | undefined;
  /** What keeps the Machine from going on, beside what its conditions say: what, and what would help. */
  readonly problems: readonly string[];
}

/** What the definitions of Cluster API take. */
const LONGEST_MESSAGE = 10_240;

/** Conditions of a Node that are bad when they are True. */
export const PRESSURES = ['MemoryPressure', 'DiskPressure', 'PIDPressure'];

/** All conditions that are ours, since when, on top of those that the Machine has. `nowMs` is wall time. */
export function clusterAPIMachineConditions(facts: MachineFacts, nowMs: number): readonly ClusterAPICondition[] {
  const { status, metadata } = facts.machine;
  const before = status?.conditions ?? [];
  const said = [
    whileReading(bootstrapReady(facts), facts.bootstrap, before),
    whileReading(infrastructureReady(facts), facts.infrastructure, before),
    ...nodeConditions(facts.node, facts.machine),
    deleting(facts),
    plain('Updating', 'False', 'NotUpdating'),
    ...(facts.upToDate === undefined ? [] : [facts.upToDate]),
    plain('Paused', 'False', 'NotPaused'),
  ];
  const ready = readyOf(facts, [...before.filter(({ type }) => said.every((one) => one.type !== type)), ...said]);
  const readySince = dated(ready, before, nowMs);
  return merged(before, [...said, ready, availableOf(facts.machine, readySince, nowMs)], nowMs, metadata.generation);
}

/** A manager that has just begun to watch a kind knows nothing new about its objects: what was said last stands. */
function whileReading(
  said: ConditionValue,
  { kind }: ObservedObject<unknown>,
  before: readonly ClusterAPICondition[],
): ConditionValue {
  return (kind === 'reading' ? conditionOf(before, said.type) : undefined) ?? said;
}

/** When condition Available becomes True by itself, from now; undefined: it does not. */
export function availableInMs({ status, spec }: ClusterAPIMachine, nowMs: number): number | undefined {
  const find = (type: string) => status?.conditions?.find((one) => one.type === type);
  if (find('Available')?.reason !== 'WaitingForMinReadySeconds') return undefined;
  return leftMs(find('Ready'), spec?.minReadySeconds ?? 0, nowMs);
}

/** The list with what is said now, of that generation; those of others stay, and no time moves unless the status does. */
export function merged(
  before: readonly ClusterAPICondition[],
  said: readonly ConditionValue[],
  nowMs: number,
  generation?: number,
): readonly ClusterAPICondition[] {
  const kept = before.filter(({ type }) => said.every((one) => one.type !== type));
  const ours = said.map((one): ClusterAPICondition => {
    const { type, status, reason, message } = one;
    const short = { type, status, reason, message: message.slice(0, LONGEST_MESSAGE) };
    return { ...dated(short, before, nowMs), ...(generation !== undefined && { observedGeneration: generation }) };
  });
  return [...kept, ...ours].toSorted((a, b) => (a.type < b.type ? -1 : 1));
}

/** The same for the older contract, where a condition that is not True has a severity. */
export function deprecatedConditions(
  before: readonly DeprecatedCondition[],
  said: readonly (ConditionValue & Pick<DeprecatedCondition, 'severity'>)[],
  nowMs: number,
): readonly DeprecatedCondition[] {
  const ours = said.map(({ type, status, reason, message, severity = 'Info' }): DeprecatedCondition => {
    const current = {
      type,
      status,
      // No member may be empty.
      ...(status === 'False' && { severity }),
      ...(status !== 'True' && reason !== '' && { reason }),
      ...(status !== 'True' && message !== '' && { message: message.slice(0, LONGEST_MESSAGE) }),
    };
    return dated(current, before, nowMs);
  });
  const kept = before.filter(({ type }) => ours.every((one) => one.type !== type));
  return [...kept, ...ours].toSorted((a, b) => (a.type < b.type ? -1 : 1));
}

export function clusterAPIPhaseOf({ metadata, spec, status }: ClusterAPIMachine): ClusterAPIPhase {
  const { initialization = {}, nodeRef } = status ?? {};
  if (metadata.deletionTimestamp !== undefined) return 'Deleting';
  if (nodeRef !== undefined && initialization.infrastructureProvisioned === true) return 'Running';
  if (spec?.providerID !== undefined && spec.providerID !== '') return 'Provisioned';
  return initialization.bootstrapDataSecretCreated === true ? 'Provisioning' : 'Pending';
}

function bootstrapReady({ machine, bootstrap, dataSecret }: MachineFacts): ConditionValue {
  const type = 'BootstrapConfigReady';
  if (dataSecret !== undefined) return plain(type, 'False', dataSecret.reason, dataSecret.message);
  const isCreated = machine.status?.initialization?.bootstrapDataSecretCreated === true;
  if (bootstrap.kind === 'none') {
    return (machine.spec?.bootstrap?.dataSecretName ?? '') !== ''
      ? plain(type, 'True', 'DataSecretProvided')
      : plain(type, 'False', 'NotNamed', 'spec.bootstrap sets neither configRef nor dataSecretName: set one of them');
  }
  const { kind = '', name = '' } = machine.spec?.bootstrap?.configRef ?? {};
  return external(type, bootstrap, {
    isReady: isCreated,
    what: `${kind} ${name}`,
    field: 'spec.bootstrap.configRef',
    waitsFor: `${kind} ${name} has not created its data Secret yet`,
    isGone: isCreated && isBeingDeleted(machine),
  });
}

function infrastructureReady({ machine, infrastructure }: MachineFacts): ConditionValue {
  const type = 'InfrastructureReady';
  const wasThere = machine.status?.initialization?.infrastructureProvisioned === true;
  if (infrastructure.kind === 'none') {
    return plain(
      type,
      'False',
      'NotNamed',
      'spec.infrastructureRef is missing: set it to the infrastructure object of the Machine',
    );
  }
  const { kind = '', name = '' } = machine.spec?.infrastructureRef ?? {};
  return external(type, infrastructure, {
    isReady: wasThere,
    what: `${kind} ${name}`,
    field: 'spec.infrastructureRef',
    waitsFor: `${kind} ${name} is not provisioned yet`,
    isGone: wasThere,
  });
}

interface ConditionTexts {
  readonly isReady: boolean;
  readonly what: string;
  /** The field of the Machine that names it. */
  readonly field: string;
  readonly waitsFor: string;
  /** It was there, or is not to be there any more. */
  readonly isGone: boolean;
}

function external(
  type: string,
  seen: ObservedObject<{ readonly ready: ClusterAPICondition | undefined }>,
  { isReady, what, field, waitsFor, isGone }: ConditionTexts,
): ConditionValue {
  switch (seen.kind) {
    case 'found': {
      const { ready } = seen.report;
      if (ready !== undefined) return mirrored(ready, type);
      return isReady ? plain(type, 'True', 'Ready') : plain(type, 'False', 'NotReady', waitsFor);
    }
    case 'absent':
      return isGone
        ? plain(type, 'False', 'ObjectDeleted', `${what} was deleted`)
        : plain(type, 'False', 'ObjectDoesNotExist', `${what} does not exist: create it, or correct ${field}`);
    case 'unknown':
      return plain(type, 'Unknown', 'InternalError', seen.problem);
    case 'foreign':
      return plain(type, 'False', 'NotReady', seen.problem);
    case 'reading':
    case 'none':
      return plain(type, 'Unknown', 'InternalError', `Reading ${what}`);
  }
}

function nodeConditions(seen: ObservedNode, machine: ClusterAPIMachine): readonly ConditionValue[] {
  const types = ['NodeReady', 'NodeHealthy'];
  const both = (status: ConditionStatus, reason: string, message: string): readonly ConditionValue[] =>
    types.map((type) => plain(type, status, reason, message));
  switch (seen.kind) {
    case 'none':
      return isBeingDeleted(machine)
        ? both('Unknown', 'NodeDoesNotExist', 'There is no Node')
        : both('Unknown', 'InspectionFailed', 'Waiting for the infrastructure to report a provider ID');
    case 'absent':
      return isBeingDeleted(machine)
        ? both('Unknown', 'NodeDoesNotExist', 'There is no Node')
        : both('Unknown', 'InspectionFailed', 'Waiting for a Node with the provider ID');
    case 'gone':
      return both(
        'False',
        'NodeDeleted',
        isBeingDeleted(machine) ? 'The Node no longer exists' : 'The Node was deleted: delete the Machine',
      );
    case 'unknown':
    case 'undecided':
      return both('Unknown', 'InspectionFailed', seen.problem);
    case 'unreachable': {
      const last = (machine.status?.conditions ?? []).filter(({ type }) => types.includes(type));
      return seen.isOver || last.length < types.length ? both('Unknown', 'ConnectionDown', seen.why) : last;
    }
    case 'found': {
      const conditions = seen.node.status?.conditions ?? [];
      const find = (type: string) => conditions.find((one) => one.type === type);
      const ready = find('Ready');
      const status = statusOf(ready?.status);
      const wrong = PRESSURES.flatMap((type) => (find(type)?.status === 'True' ? [`Node.${type} is True`] : []));
      const silent = PRESSURES.filter((type) => statusOf(find(type)?.status) === 'Unknown');
      const unready = status === 'True' ? [] : [`Node.Ready is ${status}: ${ready?.message ?? 'not reported'}`];
      return [
        plain('NodeReady', status, READY_REASONS[status], unready.join('; ')),
        status === 'False' || wrong.length > 0
          ? plain('NodeHealthy', 'False', 'NodeNotHealthy', [...unready, ...wrong].join('; '))
          : status === 'Unknown' || silent.length > 0
            ? plain('NodeHealthy', 'Unknown', 'NodeHealthyUnknown', [...unready, ...silent.map(unreported)].join('; '))
            : plain('NodeHealthy', 'True', 'NodeHealthy'),
      ];
    }
  }
}

const READY_REASONS = { True: 'NodeReady', False: 'NodeNotReady', Unknown: 'NodeReadyUnknown' } as const;

const unreported = (type: string): string => `Node.${type} is not reported`;

/** What a pass could not look at, because it has failed before, is as it was. */
function deleting({ deleting: waits, machine, problems }: MachineFacts): ConditionValue {
  if (!isBeingDeleted(machine)) return plain('Deleting', 'False', 'NotDeleting');
  if (waits === undefined && problems.length > 0) {
    const before = machine.status?.conditions?.find(({ type, status }) => type === 'Deleting' && status === 'True');
    return before ?? plain('Deleting', 'True', 'InternalError', problems.join('; '));
  }
  return plain('Deleting', 'True', waits?.reason ?? 'DeletionCompleted', waits?.message ?? '');
}

/** The summary: what is False outweighs what is Unknown. */
function readyOf({ machine, problems }: MachineFacts, all: readonly ConditionValue[]): ConditionValue {
  const gates = machine.spec?.readinessGates ?? [];
  const needed = ['Deleting', 'BootstrapConfigReady', 'InfrastructureReady', 'NodeHealthy'];
  const optional = all.some(({ type }) => type === 'HealthCheckSucceeded') ? ['HealthCheckSucceeded'] : [];
  const ours = problems.map((problem) => plain('Problem', 'False', '', problem));
  return summary('Ready', ['Ready', 'NotReady', 'ReadyUnknown'], all, [...needed, ...optional], gates, ours);
}

/** Conditions that have to be True, or with the other polarity False, beside what is needed anyway. */
type Gates = readonly { readonly conditionType: string; readonly polarity?: 'Positive' | 'Negative' }[];

/** What several conditions come to: what is wrong outweighs what is unknown. The reasons are those of True, False and Unknown. */
export function summary(
  of: string,
  reasons: readonly [string, string, string],
  all: readonly ConditionValue[],
  needed: readonly string[],
  gates: Gates,
  problems: readonly ConditionValue[] = [],
): ConditionValue {
  const negative = new Set([
    'Deleting',
    ...gates.flatMap((gate) => (gate.polarity === 'Negative' ? gate.conditionType : [])),
  ]);
  const looked = [...needed, ...gates.map(({ conditionType }) => conditionType)].map((type) => {
    const found =
      all.find((one) => one.type === type) ?? plain(type, 'Unknown', 'NotYetReported', 'is not reported yet');
    const isWrong = found.status === (negative.has(type) ? 'True' : 'False');
    return { ...found, isWrong, isUnknown: found.status === 'Unknown' };
  });
  const told = (some: readonly ConditionValue[]): string =>
    some.map(({ type, reason, message }) => `* ${type}: ${message === '' ? reason : message}`).join('\n');
  const wrong = looked.filter(({ isWrong }) => isWrong);
  const unknown = looked.filter(({ isUnknown }) => isUnknown);
  const [yes, no, unclear] = reasons;
  if (problems.length + wrong.length > 0) return plain(of, 'False', no, told([...problems, ...wrong, ...unknown]));
  return unknown.length > 0 ? plain(of, 'Unknown', unclear, told(unknown)) : plain(of, 'True', yes);
}

function availableOf({ spec }: ClusterAPIMachine, ready: ClusterAPICondition, nowMs: number): ConditionValue {
  if (ready.status !== 'True') return plain('Available', 'False', 'NotReady');
  return leftMs(ready, spec?.minReadySeconds ?? 0, nowMs) === 0
    ? plain('Available', 'True', 'Available')
    : plain('Available', 'False', 'WaitingForMinReadySeconds');
}

function leftMs(ready: ClusterAPICondition | undefined, seconds: number, nowMs: number): number {
  const sinceMs = fromTimestamp(ready?.lastTransitionTime) ?? nowMs;
  return Math.max(0, sinceMs + seconds * 1_000 - nowMs);
}

/** What an object of a provider reports, as another condition: one that is True, and gives no reason, has the reason of all that is well. */
export function mirrored(reported: ConditionValue, type: string, whenWell = 'Ready'): ConditionValue {
  const { status, reason } = reported;
  return { ...reported, type, reason: reason === NO_REASON && status === 'True' ? whenWell : reason };
}

export function plain(type: string, status: ConditionStatus, reason: string, message = ''): ConditionValue {
  return { type, status, reason, message };
}

function statusOf(status: string | undefined): ConditionStatus {
  return status === 'True' || status === 'False' ? status : 'Unknown';
}
