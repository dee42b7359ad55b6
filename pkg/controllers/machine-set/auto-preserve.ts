import { refOf } from '../../apis/meta.ts';
import { autoPreserveMaxOf } from '../../apis/machine/v1alpha1/defaults.ts';
import { PRESERVE_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { fromTimestamp } from '../../base/clock/clock.ts';
import { isConflict, isNotFound } from '../../kube/client/errors.ts';
import { mergePatchIfUnchanged } from '../../kube/client/patch.ts';
import { machines } from '../../kube/client/resource.ts';
import { requestedPreservation } from '../machine-facts/preserve-value.ts';
import { isFailed, isTerminating } from '../replicas/machine-state.ts';
import { next } from '../../work/reconcile/result.ts';
import { isRolling } from './creation-room.ts';
import type { Collaborators, SetStep } from './step.ts';
import { nodeOf } from './preservation.ts';
import { preservedUntilMs } from '../machine-facts/preserved.ts';

const AUTO = 'auto-preserved';
/** When to decide again of Machines that have changed while they were to be marked. */
const CHANGED_CHECK_MS = 1_000;

/**
 * Uses the room that a set grants to failed Machines: the newest undecided ones are preserved as long as there is room; when
 * there are more than allowed, the oldest are released. Undecided is a Machine for which nobody said anything, on it or on its
 * Node, and that was not preserved before: one whose time is over is replaced, and leaves its place to others.
 *
 * A rollout preserves none of its own accord: a failed Machine that stays takes the place of one that the rollout needs to go on.
 */
export function autoPreservation(
  machinesOfSet: readonly Machine[],
  { allowed, isRollout }: { readonly allowed: number; readonly isRollout: boolean },
  nodeOfMachine: (machine: Machine) => ReturnType<typeof nodeOf>,
): { readonly preserve: readonly Machine[]; readonly release: readonly Machine[] } {
  const staying = machinesOfSet.filter((machine) => !isTerminating(machine));
  const preserved = staying.filter((machine) => machine.metadata.annotations?.[PRESERVE_ANNOTATION] === AUTO);
  const room = allowed - preserved.length;
  if (room < 0) return { preserve: [], release: preserved.toSorted(byAge).slice(0, -room) };
  if (isRollout) return { preserve: [], release: [] };

  const undecided = staying.filter(
    (machine) =>
      isFailed(machine) &&
      preservedUntilMs(machine) === undefined &&
      requestedPreservation(machine, nodeOfMachine(machine)) === '',
  );
  return { preserve: undecided.toSorted(byAge).toReversed().slice(0, room), release: [] };
}

/**
 * Writes what `autoPreservation` decides; the machine controller does the rest. A Machine that changed meanwhile stays
 * until it is decided anew; one that may not be marked stays all the same.
 */
export const autoPreserve = (
  deps: Pick<Collaborators, 'machines' | 'machineSets' | 'machineDeployments' | 'writer' | 'targets' | 'preservations'>,
): SetStep => ({
  name: 'auto-preserve',
  async run(pass) {
    const { key, object: set, machines: ofSet, notes, signal } = pass;
    const limits = { allowed: autoPreserveMaxOf(set), isRollout: isRolling(deps, set) };
    const { preserve, release } = autoPreservation(ofSet, limits, (machine) => nodeOf(deps, machine));
    // The next step may see them as they are now, and would delete them.
    const changed = new Set<string>();
    const mark = async (machine: Machine, value: string | null): Promise<void> => {
      const patch = mergePatchIfUnchanged(machine, { metadata: { annotations: { [PRESERVE_ANNOTATION]: value } } });
      try {
        await deps.writer.patch('change', machines, refOf(machine), patch, { signal });
      } catch (err) {
        if (!isNotFound(err) && !isConflict(err)) throw err;
        if (isConflict(err)) changed.add(machine.metadata.uid);
      }
    };
    const unpreserved = await deps.preservations.each(key, preserve, (machine) => mark(machine, AUTO));
    const unreleased = await deps.preservations.each(key, release, (machine) => mark(machine, null));
    pass.unpreserved = new Set([...changed, ...unpreserved.objects.map(({ metadata }) => metadata.uid)]);
    if (changed.size > 0) notes.alsoAfter(CHANGED_CHECK_MS, 'failed machines that have changed meanwhile');
    pass.refusal ??= unpreserved.text ?? unreleased.text;
    return next;
  },
});

function byAge(a: Machine, b: Machine): number {
  const difference =
    (fromTimestamp(a.metadata.creationTimestamp) ?? 0) - (fromTimestamp(b.metadata.creationTimestamp) ?? 0);
  return difference === 0 ? (a.metadata.name < b.metadata.name ? -1 : 1) : difference;
}
