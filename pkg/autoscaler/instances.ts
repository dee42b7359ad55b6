import type { NodeOfMachine } from '../controllers/machine-deployment/node-marks/node-marker.ts';
import type { Machine } from '../apis/machine/v1alpha1/machine.ts';
import { phaseOf, showsNode } from '../apis/machine/v1alpha1/defaults.ts';
import { formatDuration } from '../apis/duration.ts';
import { fromTimestamp } from '../base/clock/clock.ts';
import { isBeingCreated } from '../controllers/machine-facts/status.ts';
import { isTerminating } from '../controllers/replicas/machine-state.ts';
import type { DriverCode } from '../driver/error.ts';
import { truncated } from '../kube/events/combined-message.ts';
import { hasJoined, hasLostNode, isKeptForInspection, isReplacedBySet } from './mutations/group-state.ts';
import { missingPlaceholder, placeholderOf } from './placeholder.ts';

export type InstanceState = 'running' | 'creating' | 'deleting';

/** Why a Machine gets no VM. */
export interface InstanceError {
  readonly code: string;
  readonly message: string;
  readonly class: 'out-of-resources' | 'other';
}

/** What an autoscaler is told of one Machine, or of a replica without one. */
export interface Instance {
  readonly id: string;
  readonly state: InstanceState;
  readonly error?: InstanceError;
}

export interface GroupFacts {
  readonly id: string;
  readonly replicas: number;
  /** Autoscalers cannot make it smaller than this. */
  readonly min: number;
  /** Of a rollout: see `owedBy`. */
  readonly owed: number;
  readonly machines: readonly NodeOfMachine[];
  /** Names of Machines that have several Nodes, of which nobody can tell the right one. */
  readonly ambiguous: ReadonlySet<string>;
  /** Names of Machines that an autoscaler has chosen to go. */
  readonly chosen: ReadonlySet<string>;
  /** Names for so many replicas without a Machine. */
  readonly places: (count: number) => readonly string[];
  /** How long the autoscaler waits for the Node of a new Machine; undefined while it has not said. */
  readonly provisionMs: number | undefined;
  /** For how much of the time since `sinceMs` Nodes could be seen to join; 0 while those that have joined unseen may be yet to come. */
  readonly seenMs: (sinceMs: number) => number;
  readonly nowMs: number;
}

/**
 * More places than anybody waits for. A size is what somebody typed, up to 2,147,483,647: as many places would be more than fits into memory,
 * and into the 4 MiB that a client of gRPC takes.
 */
export const MOST_PLACES = 10_000;

/**
 * So long before an autoscaler stops to wait, a Machine without a Node has failed. When the time is over, those from 1.36 on take the request
 * for fulfilled, as they no longer expect what has not come: they delete it, request as many from the same group at once, and never try
 * another one. The margin is for one of their loops to see the error: they list instances in each loop while a group grows.
 */
const MARGIN = { part: 0.1, longestMs: 120_000 } as const;

/** What trying again does not cure: somebody has to change a class, a permission or a quota. */
const INCURABLE: ReadonlySet<string> = new Set<DriverCode>([
  'PermissionDenied',
  'Unauthenticated',
  'InvalidArgument',
  'NotFound',
  'FailedPrecondition',
  'OutOfRange',
  'Unimplemented',
]);

/**
 * The instances of a node group. There are never fewer that are not going than the group should have, but for more than MOST_PLACES that
 * do not exist yet: an autoscaler would set its size back.
 *
 * | Machine                                            | id                | state    | error                                  |
 * |----------------------------------------------------|-------------------|----------|----------------------------------------|
 * | has a Node with a providerID                       | the providerID    | running  |                                        |
 * | has a Node without one                             | is left out: the autoscaler knows it by its Node's name               |
 * | has no Node                                        | placeholder       | creating |                                        |
 * | has lost its Node: deletions are refused           | placeholder       | running  |                                        |
 * | has no Node, ResourceExhausted, and can be deleted | placeholder       | creating | out-of-resources: others are tried now |
 * | has no Node, a failure that lasts, can be deleted  | placeholder       | creating | other: others are tried now            |
 * | has never had a Node, waited long, can be deleted  | placeholder       | creating | other: others are tried now            |
 * | is going, chosen to go, or failed, never preserved | as above          | deleting |                                        |
 * | has no Node, and is more than the size asks for    | is left out: taken back, it would cost one that has a Node            |
 * | does not exist yet                                 | of its place      | creating |                                        |
 */
export function instancesOf(facts: GroupFacts): readonly Instance[] {
  const { id, replicas, machines, places } = facts;
  const staying = machines.filter(({ machine }) => !isLeaving(machine, facts));
  const count = Math.min(Math.max(0, replicas - staying.length), MOST_PLACES);
  const surplus = surplusOf(staying, facts);
  const missing = places(count).map((place): Instance => ({ id: missingPlaceholder(id, place), state: 'creating' }));
  const errors = reportedErrors(facts);
  const shown = machines.filter(({ machine }) => !surplus.has(machine.metadata.name));
  return [...shown.flatMap((each) => instanceOf(each, facts, errors)), ...missing];
}

/** Names of Machines without a Node that a rollout has made beyond the size: the oldest, as the youngest are those that show errors. */
function surplusOf(
  staying: readonly NodeOfMachine[],
  { replicas, nowMs }: Pick<GroupFacts, 'replicas' | 'nowMs'>,
): ReadonlySet<string> {
  const expected = staying
    .filter(({ machine, node }) => node === undefined && !isKeptForInspection(machine, nowMs))
    .map(({ machine }) => machine);
  const surplus = Math.min(expected.length, Math.max(0, staying.length - replicas));
  return new Set(
    expected
      .toSorted(youngestFirst)
      .slice(expected.length - surplus)
      .map(({ metadata }) => metadata.name),
  );
}

function youngestFirst(a: Machine, b: Machine): number {
  return createdMsOf(b) - createdMsOf(a) || (a.metadata.name < b.metadata.name ? -1 : 1);
}

function createdMsOf({ metadata }: Machine): number {
  return fromTimestamp(metadata.creationTimestamp) ?? 0;
}

/**
 * Errors of the Machines that an autoscaler can delete, by name: of as many as the group is above its minimum, and above what a rollout needs
 * so as not to replace working Machines by those that fail; the youngest. It expects no Node of an instance with an error, and deletes it. Where
 * that is refused, as at the minimum, the size remains unexplained: it lowers the size, and when that is refused too, its loop ends for all
 * groups. Without an error it waits, and leaves what does not come as it is.
 */
function reportedErrors(facts: GroupFacts): ReadonlyMap<string, InstanceError> {
  const { replicas, min, owed, machines, ambiguous, nowMs } = facts;
  const hasNode = ({ machine, node }: NodeOfMachine): boolean =>
    node !== undefined || ambiguous.has(machine.metadata.name) || hasJoined(machine);
  const failed = machines.flatMap((each) => {
    const { machine } = each;
    const error = creationError(machine) ?? lateError(machine, facts);
    const isKept = hasNode(each) || isLeaving(machine, facts) || isKeptForInspection(machine, nowMs);
    if (isKept || error === undefined) return [];
    return [{ machine, error }];
  });
  const youngest = failed.toSorted((a, b) => youngestFirst(a.machine, b.machine));
  const staying = machines.filter((each) => hasNode(each) || isKeptForInspection(each.machine, nowMs));
  const needed = staying.filter(({ machine }) => !isLeaving(machine, facts)).length + owed;
  const removable = Math.max(0, replicas - Math.max(min, needed));
  return new Map(youngest.slice(0, removable).map(({ machine, error }) => [machine.metadata.name, error]));
}

/** Whether a Machine counts for no replica any more, or will not for long. */
function isLeaving(machine: Machine, { chosen, nowMs }: Pick<GroupFacts, 'chosen' | 'nowMs'>): boolean {
  if (isTerminating(machine) || chosen.has(machine.metadata.name)) return true;
  return isReplacedBySet(machine, nowMs);
}

function instanceOf(
  { machine, node }: NodeOfMachine,
  facts: GroupFacts,
  errors: ReadonlyMap<string, InstanceError>,
): Instance[] {
  const id = node === undefined ? placeholderOf(machine.metadata.name) : (node.spec?.providerID ?? '');
  if (id === '') return [];
  if (isLeaving(machine, facts)) return [{ id, state: 'deleting' }];
  if (node !== undefined || hasLostNode(machine)) return [{ id, state: 'running' }];
  const error = errors.get(machine.metadata.name);
  return [error === undefined ? { id, state: 'creating' } : { id, state: 'creating', error }];
}

/** Why no VM is made, if it is known and worth going elsewhere for. */
export function creationError(machine: Machine): InstanceError | undefined {
  const { type, state, errorCode: code = '', description = '' } = machine.status?.lastOperation ?? {};
  if (type !== 'Create' || state !== 'Failed' || phaseOf(machine) === 'Failed') return undefined;
  // A thousand Machines that fail with the same long text must not make the reply larger than a client takes.
  const message = truncated(description);
  if (code === ('ResourceExhausted' satisfies DriverCode)) return { code, message, class: 'out-of-resources' };
  return INCURABLE.has(code) ? { code, message, class: 'other' } : undefined;
}

/** That a Machine which has never had a Node is about to be given up. One that has lost its Node may get it back. */
function lateError(machine: Machine, { provisionMs, seenMs }: GroupFacts): InstanceError | undefined {
  const isExpected = isBeingCreated(machine) || (phaseOf(machine) === 'Pending' && !showsNode(machine));
  if (!isExpected || provisionMs === undefined) return undefined;
  const patienceMs = provisionMs - Math.min(MARGIN.part * provisionMs, MARGIN.longestMs);
  if (seenMs(createdMsOf(machine)) < patienceMs) return undefined;
  const code = 'DeadlineExceeded' satisfies DriverCode;
  const why = machine.status?.lastOperation?.description ?? '';
  const message = `no Node has joined within ${formatDuration(patienceMs)}${why === '' ? '' : `: ${why}`}`;
  return { code, message: truncated(message), class: 'other' };
}
