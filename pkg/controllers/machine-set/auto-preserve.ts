import { refOf } from '../../apis/meta.ts';
import { autoPreserveMaxOf } from '../../apis/machine/v1alpha1/defaults.ts';
import { PRESERVE_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import type { Node } from '../../apis/wire.ts';
import { fromTimestamp } from '../../clock/clock.ts';
import { isConflict, isNotFound } from '../../kube/errors.ts';
import { mergePatchIfUnchanged } from '../../kube/patch.ts';
import { machines } from '../../kube/resource.ts';
import { requestedPreservation } from '../machines/preserve-value.ts';
import { atOnce } from '../replicas/at-once.ts';
import { isFailed, isTerminating, preservedUntilMs } from '../replicas/machine-state.ts';
import type { MachineSetDeps } from './deps.ts';

/** Value of the preservation annotation for Machines that nobody asked to preserve. */
const AUTO = 'auto-preserved';
const PATCHES_AT_ONCE = 20;

/** The Node of a Machine: undefined when it names none, `missing` when the one that it names cannot be found. */
export type NodeOf = (machine: Machine) => Node | 'missing' | undefined;

/** Which Machines become, or cease to be, preserved without being asked for. */
export interface AutoPreservation {
  readonly preserve: readonly Machine[];
  readonly release: readonly Machine[];
}

/**
 * Uses the room that a set grants to failed Machines: the newest undecided ones are preserved as long as there is room; when
 * there are more than allowed, the oldest are released. Undecided is a Machine for which nobody said anything, on it or on its
 * Node, and that was not preserved before: one whose time is over is replaced, and leaves its place to others.
 */
export function autoPreservation(machinesOfSet: readonly Machine[], allowed: number, nodeOf: NodeOf): AutoPreservation {
  const staying = machinesOfSet.filter((machine) => !isTerminating(machine));
  const preserved = staying.filter((machine) => machine.metadata.annotations?.[PRESERVE_ANNOTATION] === AUTO);
  const room = allowed - preserved.length;
  if (room < 0) return { preserve: [], release: preserved.toSorted(byAge).slice(0, -room) };

  const undecided = staying.filter(
    (machine) =>
      isFailed(machine) &&
      preservedUntilMs(machine) === undefined &&
      requestedPreservation(machine, nodeOf(machine)) === '',
  );
  return { preserve: undecided.toSorted(byAge).toReversed().slice(0, room), release: [] };
}

/**
 * Writes what `autoPreservation` decides for the claimed Machines of `set`; the machine controller does the rest. A Machine that
 * changed meanwhile is decided anew when that is seen.
 */
export async function preserveFailed(
  { writer }: Pick<MachineSetDeps, 'writer'>,
  set: MachineSet,
  claimed: readonly Machine[],
  nodeOf: NodeOf,
  signal: AbortSignal,
): Promise<void> {
  const { preserve, release } = autoPreservation(claimed, autoPreserveMaxOf(set), nodeOf);
  const changes = [
    ...preserve.map((machine) => ({ machine, value: AUTO })),
    ...release.map((machine) => ({ machine, value: null })),
  ];
  await atOnce(PATCHES_AT_ONCE, changes, async ({ machine, value }) => {
    const patch = mergePatchIfUnchanged(machine, { metadata: { annotations: { [PRESERVE_ANNOTATION]: value } } });
    try {
      await writer.patch('change', machines, refOf(machine), patch, { signal });
    } catch (err) {
      if (!isNotFound(err) && !isConflict(err)) throw err;
    }
  });
}

function byAge(a: Machine, b: Machine): number {
  const difference =
    (fromTimestamp(a.metadata.creationTimestamp) ?? 0) - (fromTimestamp(b.metadata.creationTimestamp) ?? 0);
  return difference === 0 ? (a.metadata.name < b.metadata.name ? -1 : 1) : difference;
}
