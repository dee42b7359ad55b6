import { NO_REASON, type ClusterAPICondition } from '../api/condition.ts';
import type { DeprecatedCondition } from '../api/machine.ts';
import { isInitialized, isProvisioned, type ClusterFacts, type ClusterObservation } from './cluster-conditions.ts';
import { older, olderSummary, type OlderConditionValue } from './older-conditions.ts';

/** What Ready is the summary of; the first one has the word. */
const SUMMED_UP = ['ControlPlaneReady', 'InfrastructureReady'];

/**
 * What a pass says of a Cluster that stays by conditions of the older contract, as Cluster API's core writes them; `before` are those that it
 * has.
 */
export function olderClusterConditions(
  facts: ClusterFacts,
  before: readonly DeprecatedCondition[],
): readonly OlderConditionValue[] {
  const { infrastructure, controlPlane } = facts;
  const said = [
    ...external('InfrastructureReady', infrastructure, isProvisioned(facts), 'WaitingForInfrastructure'),
    ...(controlPlane.kind === 'none'
      ? []
      : external('ControlPlaneReady', controlPlane, isInitialized(facts), 'WaitingForControlPlane')),
    controlPlaneInitialized(facts),
  ];
  const all = [...said, ...before.filter(({ type }) => said.every((one) => one.type !== type))];
  return [...said, ...olderSummary(SUMMED_UP.flatMap((type) => all.find((one) => one.type === type) ?? []))];
}

/** What an object reports is passed on as it is. What nobody can tell stays as it was. */
function external(
  type: string,
  { kind, report }: ClusterObservation<{ readonly ready: ClusterAPICondition | undefined }>,
  isReached: boolean,
  waits: string,
): readonly OlderConditionValue[] {
  if (kind === 'unknown' || kind === 'reading') return [];
  const ready = report?.ready;
  if (ready !== undefined) return [{ ...ready, type, reason: ready.reason === NO_REASON ? '' : ready.reason }];
  return [isReached && kind !== 'absent' ? older(type, 'True') : older(type, 'False', waits)];
}

function controlPlaneInitialized(facts: ClusterFacts): OlderConditionValue {
  const type = 'ControlPlaneInitialized';
  if (isInitialized(facts)) return older(type, 'True');
  return older(type, 'False', 'WaitingForControlPlaneProviderInitialized', {
    message: 'Waiting for control plane provider to indicate the control plane has been initialized',
  });
}
