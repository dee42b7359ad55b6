import type { ClusterAPIMachine } from '../api/machine.ts';
import { isBeingDeleted } from '../../../apis/meta.ts';
import { conditionOf } from '../../../work/reconcile/conditions.ts';
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

interface Found {
  readonly problems: readonly string[];
  readonly deleting: DeletionWait | undefined;
  /** What of it the pass before had found, as `foundIn` says; undefined for the first pass of a process. */
  readonly foundBefore: ReadonlySet<string> | undefined;
}

/** What a pass has found that is reported while it is new. */
export function foundIn({ problems, deleting }: Pick<Found, 'problems' | 'deleting'>): ReadonlySet<string> {
  return new Set([...problems, ...(deleting?.event === undefined ? [] : [keyOfWait(deleting)])]);
}

function keyOfWait({ reason, event }: DeletionWait): string {
  return `${reason} ${event?.reason} ${event?.why ?? ''}`;
}

/**
 * What is to be reported after a pass, beside what its steps report: why a condition is not True, once for each change of its reason; what a
 * deletion waits for that may take long; and problems. Of these two, what the pass before had found is no news; nor is to the next process what
 * a condition says in the same words.
 */
export function machineEventsOf(
  before: ClusterAPIMachine,
  after: ClusterAPIMachine,
  { problems, deleting, foundBefore }: Found,
): readonly PassEvent[] {
  const isNew = (what: string, type: string): boolean =>
    foundBefore === undefined ? !isUnchanged(before, after, type) : !foundBefore.has(what);
  const news = problems.filter((problem) => isNew(problem, 'Ready')).join('; ');
  return [
    ...Object.entries(EVENTS).flatMap(([type, event]) => waitsFor(before, after, type, event, problems) ?? []),
    ...(deleting?.event !== undefined && isNew(keyOfWait(deleting), 'Deleting')
      ? [{ type: deleting.event.type, reason: deleting.event.reason, message: deleting.message }]
      : []),
    ...(news === '' ? [] : [{ type: 'Warning', reason: 'Problem', message: news } as const]),
  ];
}

function isUnchanged(before: ClusterAPIMachine, after: ClusterAPIMachine, type: string): boolean {
  const [was, is] = [before, after].map(({ status }) => conditionOf(status?.conditions, type));
  return was !== undefined && was.status === is?.status && was.reason === is.reason && was.message === is.message;
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
