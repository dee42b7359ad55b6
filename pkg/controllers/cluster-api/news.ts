import type { Condition } from '../../apis/cluster-api/condition.ts';
import type { ClusterAPIMachine } from '../../apis/cluster-api/machine.ts';
import { isBeingDeleted } from '../../apis/meta.ts';
import type { Told } from './machine-pass.ts';

/** By condition, the Event that tells why it is not True. */
const EVENTS = {
  BootstrapConfigReady: 'BootstrapNotReady',
  InfrastructureReady: 'InfrastructureNotReady',
  NodeReady: 'NodeLost',
} as const;
/** Of the Node only that it is out of reach: what else it says comes and goes, and stands in its own Events. */
const OF_NODES: readonly string[] = ['NodeDeleted', 'ConnectionDown'];
/** Somebody has to do something; all else comes by waiting. */
const TROUBLE: readonly string[] = [
  'NotNamed',
  'DoesNotExist',
  'Deleted',
  'DataSecretMissing',
  'DataSecretEmpty',
  ...OF_NODES,
];
/** It is a problem, and told as one; or nobody knows yet. */
const UNTOLD = 'InternalError';

/**
 * What is to be told after a pass, beside what its steps tell: why a condition is not True, once for each change of its reason, and problems, once
 * for each that condition Ready has not said before.
 */
export function newsOf(
  before: ClusterAPIMachine,
  after: ClusterAPIMachine,
  problems: readonly string[],
): readonly Told[] {
  const told = conditionOf(before, 'Ready')?.message ?? '';
  const news = problems.filter((problem) => !told.includes(problem)).join('; ');
  return [
    ...Object.entries(EVENTS).flatMap(([type, event]) => waitsFor(before, after, type, event, problems) ?? []),
    ...(news === '' ? [] : [{ type: 'Warning', reason: 'Problem', message: news } as const]),
  ];
}

function waitsFor(
  before: ClusterAPIMachine,
  after: ClusterAPIMachine,
  type: string,
  event: string,
  problems: readonly string[],
): Told | undefined {
  const now = conditionOf(after, type);
  if (now === undefined || now.status === 'True' || now.reason === UNTOLD || isBeingDeleted(after)) return undefined;
  if (type === 'NodeReady' && !OF_NODES.includes(now.reason)) return undefined;
  if (problems.includes(now.message) || conditionOf(before, type)?.reason === now.reason) return undefined;
  const message = now.message === '' ? now.reason : `${now.reason}: ${now.message}`;
  return { type: TROUBLE.includes(now.reason) ? 'Warning' : 'Normal', reason: event, message };
}

function conditionOf({ status }: ClusterAPIMachine, wanted: string): Condition | undefined {
  return status?.conditions?.find(({ type }) => type === wanted);
}
