import { NO_REASON } from '../api/condition.ts';
import type { ClusterAPIMachine, DeprecatedCondition } from '../api/machine.ts';
import { isBeingDeleted } from '../../../apis/meta.ts';
import type { Node } from '../../../apis/wire.ts';
import { plain, PRESSURES, type MachineFacts, type ConditionValue } from './conditions.ts';
import type { ObservedObject, ObservedNode } from './observed.ts';

/*
 * The conditions of the older contract, `status.deprecated.v1beta1.conditions`, as Cluster API's core still writes them: older providers, and tools
 * of the time, read them. They are not those of the newer contract under other names: Ready sums up infrastructure and bootstrap only, NodeHealthy
 * counts what the Node reports, and what a deletion has reached has conditions of its own.
 */

/** What such a condition says; one that is False without a severity is Info. */
export interface OlderConditionValue extends ConditionValue {
  readonly severity?: NonNullable<DeprecatedCondition['severity']>;
}

/** What Ready is the summary of, beside what others write; the first one has the word. */
const SUMMED_UP = [
  'InfrastructureReady',
  'BootstrapReady',
  'HealthCheckSucceeded',
  'OwnerRemediated',
  'DrainingSucceeded',
];
/** Of which it counts how many are True while the machine is being made. */
const STEPS = ['BootstrapReady', 'InfrastructureReady'];

/** A condition of the older contract: one that is True needs no reason. */
export function older(
  type: string,
  status: ConditionValue['status'],
  reason = '',
  {
    message = '',
    severity,
  }: { readonly message?: string; readonly severity?: NonNullable<OlderConditionValue['severity']> } = {},
): OlderConditionValue {
  return { ...plain(type, status, reason, message), ...(severity !== undefined && { severity }) };
}

/** What a pass says of a Machine, with what its deletion has noted; `before` are the conditions that it has. */
export function olderConditions(
  facts: MachineFacts,
  noted: readonly OlderConditionValue[],
  before: readonly DeprecatedCondition[],
): readonly OlderConditionValue[] {
  const said = [...infrastructureReady(facts), ...bootstrapReady(facts), ...nodeHealthy(facts), ...noted];
  const known = before.filter(({ type }) => said.every((one) => one.type !== type));
  return [...said, ...readyOf(facts.machine, [...said, ...known])];
}

function infrastructureReady({ machine, infrastructure }: MachineFacts): readonly OlderConditionValue[] {
  return external('InfrastructureReady', machine, infrastructure, {
    isReached: machine.status?.initialization?.infrastructureProvisioned === true,
    waits: 'WaitingForInfrastructure',
  });
}

function bootstrapReady({ machine, bootstrap, dataSecret }: MachineFacts): readonly OlderConditionValue[] {
  const type = 'BootstrapReady';
  if (machine.spec?.bootstrap?.configRef === undefined) return [];
  if (dataSecret !== undefined) return [older(type, 'False', dataSecret.reason, { message: dataSecret.message })];
  if (bootstrap.kind === 'found' && (machine.spec.bootstrap.dataSecretName ?? '') !== '') return [older(type, 'True')];
  return external(type, machine, bootstrap, {
    isReached: machine.status?.initialization?.bootstrapDataSecretCreated === true,
    waits: 'WaitingForDataSecret',
  });
}

/** What an object reports under the newer contract is passed on as it is. What nobody can tell stays as it was. */
function external(
  type: string,
  machine: ClusterAPIMachine,
  seen: ObservedObject<{ readonly ready: ConditionValue | undefined }>,
  { isReached, waits }: { readonly isReached: boolean; readonly waits: string },
): readonly OlderConditionValue[] {
  switch (seen.kind) {
    case 'found': {
      const { ready } = seen.report;
      if (ready !== undefined) return [{ ...ready, type, reason: ready.reason === NO_REASON ? '' : ready.reason }];
      if (isReached) return [older(type, 'True')];
      return [older(type, 'False', isBeingDeleted(machine) ? 'Deleting' : waits)];
    }
    case 'absent':
      return isBeingDeleted(machine) ? [older(type, 'False', 'Deleted')] : [older(type, 'False', waits)];
    case 'foreign':
      return [older(type, 'False', waits, { message: seen.problem })];
    case 'none':
      return [older(type, 'False', waits)];
    case 'unknown':
    case 'reading':
      return [];
  }
}

function nodeHealthy({ machine, infrastructure, node }: MachineFacts): readonly OlderConditionValue[] {
  const type = 'NodeHealthy';
  if ((machine.spec?.providerID ?? '') === '') return [older(type, 'False', 'WaitingForNodeRef')];
  switch (node.kind) {
    case 'found': {
      const isGoing = infrastructure.kind === 'absent' || goes(infrastructure);
      return [isGoing ? older(type, 'False', 'Deleting') : healthOf(node.node)];
    }
    case 'gone':
      return isBeingDeleted(machine) ? [] : [older(type, 'False', 'NodeNotFound', { severity: 'Error' })];
    case 'absent':
    case 'none':
      return isBeingDeleted(machine) ? [] : [older(type, 'False', 'NodeProvisioning', PROVISIONING)];
    case 'unknown':
    case 'undecided':
      return [older(type, 'Unknown', 'NodeInspectionFailed', { message: node.problem })];
    case 'unreachable':
      return [];
  }
}

const PROVISIONING = { severity: 'Warning', message: 'Waiting for a node with matching ProviderID to exist' } as const;

function goes(seen: MachineFacts['infrastructure']): boolean {
  return seen.kind === 'found' && isBeingDeleted(seen.external.object);
}

/** What is not reported counts for nothing, and one thing that is unknown does not either. */
function healthOf({ status }: Extract<ObservedNode, { kind: 'found' }>['node']): OlderConditionValue {
  const type = 'NodeHealthy';
  const wrong = (status?.conditions ?? []).filter((one) => isWrong(one));
  const message = wrong.map((one) => `Node condition ${one.type} is ${one.status}`).join('. ');
  const bad = wrong.filter(({ status: is }) => is !== 'Unknown');
  if (bad.length > 0) return older(type, 'False', 'NodeConditionsFailed', { severity: 'Warning', message });
  return wrong.length > PRESSURES.length
    ? older(type, 'Unknown', 'NodeConditionsFailed', { message })
    : older(type, 'True');
}

type NodeCondition = NonNullable<NonNullable<Node['status']>['conditions']>[number];

function isWrong({ type, status }: NodeCondition): boolean {
  if (PRESSURES.includes(type)) return status !== 'False';
  return type === 'Ready' && status !== 'True';
}

/** While the machine is being made, it tells how much is done. */
function readyOf(machine: ClusterAPIMachine, all: readonly DeprecatedCondition[]): readonly OlderConditionValue[] {
  const looked = SUMMED_UP.flatMap((type) => all.find((one) => one.type === type) ?? []);
  const isBeingMade = !isBeingDeleted(machine) && (machine.spec?.providerID ?? '') === '';
  const counts = isBeingMade && looked.every(({ type }) => STEPS.includes(type));
  const done = looked.filter(({ status }) => status === 'True').length;
  return olderSummary(looked, counts ? `${done} of ${STEPS.length} completed` : undefined);
}

/** Ready, as the summary of others: what is wrong, the worst first; what is unknown does not count beside what is well. Without any there is none. */
export function olderSummary(looked: readonly DeprecatedCondition[], message?: string): readonly OlderConditionValue[] {
  const worst = Math.min(...looked.map(rankOf));
  const first = looked.find((one) => rankOf(one) === worst);
  if (first === undefined) return [];
  if (first.status === 'True') return [older('Ready', 'True')];
  const { severity, reason = '', status } = first;
  const said = message ?? first.message ?? '';
  return [older('Ready', status, reason, { message: said, ...(severity !== undefined && { severity }) })];
}

function rankOf({ status, severity = 'Info' }: DeprecatedCondition): number {
  if (status === 'True') return 3;
  return status === 'Unknown' ? 4 : ['Error', 'Warning', 'Info'].indexOf(severity);
}
