import { toTimestamp } from '../base/clock/clock.ts';
import type { BlockedPod, DrainProgress } from './drain.ts';

/** So many pods are named; more would not fit into anybody's head. */
const MAX_NAMED = 5;

/**
 * What the original says of a budget that never allows an eviction. Gardener looks for these words among the failed machines of a
 * MachineDeployment, and tells the owner of the cluster to correct the budget.
 */
const MISCONFIGURED = 'is misconfigured and requires zero voluntary evictions';

interface Wording {
  readonly say: (detail: string) => string;
  /** Whether somebody has to do something before the pod goes: such a wait is told as an Event. */
  readonly isBlock: boolean;
}

/** What each reason is called. Those that somebody can do something about come first. */
const REASONS: Record<BlockedPod['reason'], Wording> = {
  'misconfigured-disruption-budget': {
    say: (budget) => `pod disruption budget ${budget} ${MISCONFIGURED}: correct it`,
    isBlock: true,
  },
  'disruption-budget': { say: (name) => `PodDisruptionBudget ${name} currently allows no eviction`, isBlock: true },
  error: { say: (text) => text, isBlock: true },
  terminating: { say: (holder) => `not terminating: ${holder}`, isBlock: true },
  'volume-detach': { say: (volumes) => `volume ${volumes} is still attached here`, isBlock: false },
  'volume-reattach': {
    say: (volumes) => `waiting for volume ${volumes} to be attached to another node`,
    isBlock: false,
  },
  turn: { say: () => 'waiting for its turn: pods with volumes are evicted one at a time', isBlock: false },
  completion: { say: (by) => `not evicted; waiting for it to complete${because(by)}`, isBlock: false },
  order: { say: (by) => `waiting for other pods to leave first${because(by)}`, isBlock: false },
  ending: { say: (until) => `terminating until ${until}`, isBlock: false },
};

/** Nothing holds up a pod that has to wait for these. */
const TAKES_TIME: readonly BlockedPod['reason'][] = ['ending', 'turn', 'order'];

/** These pass by themselves: at the latest when their timeouts end. */
const OF_VOLUMES: readonly BlockedPod['reason'][] = ['volume-detach', 'volume-reattach'];

const RANKS = Object.keys(REASONS);

function because(by: string): string {
  return by === '' ? '' : `, required by ${by}`;
}

/**
 * What a drain waits for: `Waiting for 9 pods: ns/a, ns/b (PodDisruptionBudget x currently allows no eviction); …; and 4 more.` The same words
 * as long as nothing has changed. `deadlineMs` (wall time) is when pods that are left are deleted.
 */
export function describeProgress({ remainingPods, blocked }: DrainProgress, deadlineMs?: number): string {
  const told = mostImportant(blocked);
  const named = told.slice(0, MAX_NAMED);
  const left = Math.max(remainingPods, told.length) - named.length;
  const more = named.length > 0 && left > 0 ? `; and ${left} more` : '';
  const list = named.length > 0 ? `: ${byReason(named)}${more}` : '';
  const end = deadlineMs === undefined ? '' : ` Remaining pods are deleted at ${toTimestamp(deadlineMs)}.`;
  return `Waiting for ${subject(remainingPods, told.length)}${list}.${end}`;
}

/** The pod that says most of why a drain goes on: `ns/a (PodDisruptionBudget x currently allows no eviction)`. */
export function mainWait({ blocked }: DrainProgress): string | undefined {
  const [first] = mostImportant(blocked);
  return first && byReason([first]);
}

/** Volumes may be waited for longer than their pods. */
function subject(pods: number, told: number): string {
  if (pods === 0 && told > 0) return 'volumes of deleted pods';
  return `${pods} ${pods === 1 ? 'pod' : 'pods'}`;
}

/**
 * What `mainWait` says without whose pod it is: pods come and go while it stays. Undefined while they only take the time that they were
 * given, or wait for one another or for volumes.
 */
export function mainHold({ blocked }: DrainProgress): string | undefined {
  const [first] = mostImportant(blocked);
  if (first === undefined || TAKES_TIME.includes(first.reason) || OF_VOLUMES.includes(first.reason)) return undefined;
  return REASONS[first.reason].say(first.detail);
}

/** Pods that wait for the same are told of together. */
function byReason(named: readonly BlockedPod[]): string {
  const pods = new Map<string, string[]>();
  for (const { pod, reason, detail } of named) {
    const text = REASONS[reason].say(detail);
    pods.set(text, [...(pods.get(text) ?? []), pod]);
  }
  return [...pods].map(([text, names]) => `${names.join(', ')} (${text})`).join('; ');
}

/** One reason for each pod. */
function mostImportant(blocked: readonly BlockedPod[]): BlockedPod[] {
  const sorted = blocked.toSorted((a, b) => RANKS.indexOf(a.reason) - RANKS.indexOf(b.reason));
  const seen = new Set<string>();
  return sorted.filter(({ pod }) => !seen.has(pod) && seen.add(pod));
}

/**
 * Why a drain does not go on, without the names of pods and volumes, which come and go while the reason stays. Empty while pods
 * only take the time that they were given.
 */
export function blockReasonOf({ blocked }: DrainProgress): string {
  const reasons = blocked.flatMap(({ reason, detail }) => {
    if (TAKES_TIME.includes(reason)) return [];
    return reason.endsWith('disruption-budget') ? [`${reason} ${detail}`] : [reason];
  });
  return [...new Set(reasons)].toSorted().join(', ');
}

/** Whether somebody has to do something before the drain goes on. */
export function isBlocked(progress: DrainProgress): boolean {
  return blockOf(progress) !== undefined;
}

/** The most important of what somebody has to do something about before the drain goes on. */
export function blockOf({ blocked }: DrainProgress): BlockedPod['reason'] | undefined {
  return mostImportant(blocked).find(({ reason }) => REASONS[reason].isBlock)?.reason;
}
