import type { ClusterAPICondition } from '../../apis/cluster-api/condition.ts';
import type { ClusterAPIMachine } from '../../apis/cluster-api/machine.ts';
import { isBeingDeleted } from '../../apis/meta.ts';
import { conditionOf } from '../../reconcile/conditions.ts';
import type { PassEvent, DeletionWait } from './machine-pass.ts';

/** By condition, the Event that tells why it is not True. */
const EVENTS = {
  BootstrapConfigReady: 'BootstrapNotReady',
  InfrastructureReady: 'InfrastructureNotReady',
  NodeReady: 'NodeLost',
} as const;
/** Of the Node only that it is out of reach: what else it says comes and goes, and stands in its own Events. */
const OF_NODES: readonly string[] = ['NodeDeleted', 'ConnectionDown'];
/** The same of a Machine whose Node was never found: none is lost. */
const NO_NODE = 'NodeNotFound';
/** Somebody has to do something; all else comes by waiting. */
const TROUBLE: readonly string[] = [
  'NotNamed',
  'ObjectDoesNotExist',
  'ObjectDeleted',
  'DataSecretMissing',
  'DataSecretEmpty',
  ...OF_NODES,
];
/** It is a problem, and told as one; or nobody knows yet. */
const UNTOLD = 'InternalError';

/**
 * What is to be told after a pass, beside what its steps tell: why a condition is not True, once for each change of its reason; what a deletion
 * waits for that may take long; and problems, once for each that condition Ready has not said before.
 */
export function machineEventsOf(
  before: ClusterAPIMachine,
  after: ClusterAPIMachine,
  { problems, deleting }: { readonly problems: readonly string[]; readonly deleting: DeletionWait | undefined },
): readonly PassEvent[] {
  const told = conditionOf(before.status?.conditions, 'Ready')?.message ?? '';
  const news = problems.filter((problem) => !told.includes(problem)).join('; ');
  return [
    ...Object.entries(EVENTS).flatMap(([type, event]) => waitsFor(before, after, type, event, problems) ?? []),
    ...heldUp(conditionOf(before.status?.conditions, 'Deleting'), deleting),
    ...(news === '' ? [] : [{ type: 'Warning', reason: 'Problem', message: news } as const]),
  ];
}

function waitsFor(
  before: ClusterAPIMachine,
  after: ClusterAPIMachine,
  type: string,
  event: string,
  problems: readonly string[],
): PassEvent | undefined {
  const now = conditionOf(after.status?.conditions, type);
  if (now === undefined || now.status === 'True' || now.reason === UNTOLD || isBeingDeleted(after)) return undefined;
  if (type === 'NodeReady' && !OF_NODES.includes(now.reason)) return undefined;
  if (problems.includes(now.message) || conditionOf(before.status?.conditions, type)?.reason === now.reason)
    return undefined;
  const message = now.message === '' ? now.reason : `${now.reason}: ${now.message}`;
  const hasNone = type === 'NodeReady' && after.status?.nodeRef === undefined;
  return { type: TROUBLE.includes(now.reason) ? 'Warning' : 'Normal', reason: hasNone ? NO_NODE : event, message };
}

/** What condition Deleting has said before is no news: neither to the next process. */
function heldUp(before: ClusterAPICondition | undefined, deleting: DeletionWait | undefined): readonly PassEvent[] {
  if (deleting?.event === undefined) return [];
  const { type, reason, why = '' } = deleting.event;
  const isKnown = before?.status === 'True' && before.reason === deleting.reason && before.message.includes(why);
  return isKnown ? [] : [{ type, reason, message: deleting.message }];
}
