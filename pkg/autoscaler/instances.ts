import type { NodeOfMachine } from '../controllers/machine-deployment/node-marks/node-marker.ts';
import type { Machine } from '../apis/machine/v1alpha1/machine.ts';
import { phaseOf } from '../apis/machine/v1alpha1/defaults.ts';
import { fromTimestamp } from '../base/clock/clock.ts';
import { isFailed, isPreserved, isTerminating } from '../controllers/replicas/machine-state.ts';
import type { DriverCode } from '../driver/error.ts';
import { truncated } from '../kube/events/combined-message.ts';
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
  readonly machines: readonly NodeOfMachine[];
  /** Names of Machines that an autoscaler has chosen to go. */
  readonly chosen: ReadonlySet<string>;
  /** Names for so many replicas without a Machine. */
  readonly places: (count: number) => readonly string[];
  readonly nowMs: number;
}

/**
 * More places than anybody waits for. A size is what somebody typed, up to 2,147,483,647: as many places would be more than fits into memory,
 * and into the 4 MiB that a client of gRPC takes.
 */
export const MOST_PLACES = 10_000;

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
 * | has no Node, ResourceExhausted, and can be deleted | placeholder       | creating | out-of-resources: others are tried now |
 * | has no Node, a failure that lasts, can be deleted  | placeholder       | creating | other: others are tried now            |
 * | is going, chosen to go, or failed and not preserved| as above          | deleting |                                        |
 * | does not exist yet                                 | of its place      | creating |                                        |
 */
export function instancesOf(facts: GroupFacts): readonly Instance[] {
  const { id, replicas, machines, places } = facts;
  const staying = machines.filter(({ machine }) => !isLeaving(machine, facts)).length;
  const count = Math.min(Math.max(0, replicas - staying), MOST_PLACES);
  const missing = places(count).map((place): Instance => ({ id: missingPlaceholder(id, place), state: 'creating' }));
  const errors = reportedErrors(facts);
  return [...machines.flatMap((each) => instanceOf(each, facts, errors)), ...missing];
}

/**
 * Errors of the Machines that an autoscaler can delete, by name: of as many as the group is above its minimum, the youngest. It expects no
 * Node of an instance with an error, and deletes it. Where that is refused, as at the minimum, the size remains unexplained: it lowers the
 * size, and when that is refused too, its loop ends for all groups. Without an error it waits, and leaves what does not come as it is.
 */
function reportedErrors(facts: GroupFacts): ReadonlyMap<string, InstanceError> {
  const { replicas, min, machines, nowMs } = facts;
  const failed = machines.flatMap(({ machine, node }) => {
    const error = creationError(machine);
    const isKept = node !== undefined || isLeaving(machine, facts) || isPreserved(machine, nowMs);
    if (isKept || error === undefined) return [];
    const { name, creationTimestamp } = machine.metadata;
    return [{ name, createdMs: fromTimestamp(creationTimestamp) ?? 0, error }];
  });
  const youngest = failed.toSorted((a, b) => b.createdMs - a.createdMs || (a.name < b.name ? -1 : 1));
  return new Map(youngest.slice(0, Math.max(0, replicas - min)).map(({ name, error }) => [name, error]));
}

/** Whether a Machine counts for no replica any more, or will not for long. */
function isLeaving(machine: Machine, { chosen, nowMs }: Pick<GroupFacts, 'chosen' | 'nowMs'>): boolean {
  if (isTerminating(machine) || chosen.has(machine.metadata.name)) return true;
  return isFailed(machine) && !isPreserved(machine, nowMs);
}

function instanceOf(
  { machine, node }: NodeOfMachine,
  facts: GroupFacts,
  errors: ReadonlyMap<string, InstanceError>,
): Instance[] {
  const id = node === undefined ? placeholderOf(machine.metadata.name) : (node.spec?.providerID ?? '');
  if (id === '') return [];
  if (isLeaving(machine, facts)) return [{ id, state: 'deleting' }];
  if (node !== undefined) return [{ id, state: 'running' }];
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
