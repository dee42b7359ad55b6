import { autoPreserveMaxOf } from '../../apis/machine/v1alpha1/defaults.ts';
import { PRESERVE_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { fromTimestamp } from '../../clock/clock.ts';
import { isConflict, isNotFound } from '../../kube/errors.ts';
import { mergePatch } from '../../kube/patch.ts';
import { machines } from '../../kube/resource.ts';
import { atOnce } from './at-once.ts';
import { isFailed } from './machine-state.ts';
import type { MachineSetParts } from './parts.ts';

/** Value of the preservation annotation for Machines that nobody asked to preserve. */
const AUTO = 'auto-preserved';
/** Somebody has decided already, one way or the other. */
const DECIDED: ReadonlySet<string> = new Set(['now', 'when-failed', AUTO, 'false']);
/** How many Machines are patched at once. */
const PATCHES_AT_ONCE = 20;

/** Which Machines become, or cease to be, preserved without being asked for. */
export interface AutoPreservation {
  readonly preserve: readonly Machine[];
  readonly release: readonly Machine[];
}

/**
 * Uses the room that a set grants to failed Machines: the newest undecided ones are preserved as long as there is room; when
 * there are more than allowed, the oldest are released.
 */
export function autoPreservation(machinesOfSet: readonly Machine[], allowed: number): AutoPreservation {
  const preserved = machinesOfSet.filter((machine) => valueOf(machine) === AUTO);
  const room = allowed - preserved.length;
  if (room < 0) return { preserve: [], release: preserved.toSorted(byAge).slice(0, -room) };

  const undecided = machinesOfSet.filter((machine) => isFailed(machine) && !DECIDED.has(valueOf(machine)));
  return { preserve: undecided.toSorted(byAge).toReversed().slice(0, room), release: [] };
}

/** Writes what `autoPreservation` decides for the claimed Machines of `set`; the machine controller does the rest. */
export async function preserveFailed(
  { writer }: Pick<MachineSetParts, 'writer'>,
  set: MachineSet,
  claimed: readonly Machine[],
  signal: AbortSignal,
): Promise<void> {
  const { preserve, release } = autoPreservation(claimed, autoPreserveMaxOf(set));
  const changes = [
    ...preserve.map((machine) => ({ machine, value: AUTO })),
    ...release.map((machine) => ({ machine, value: null })),
  ];
  await atOnce(PATCHES_AT_ONCE, changes, async ({ machine, value }) => {
    const { namespace, name } = machine.metadata;
    const patch = mergePatch(machine, { metadata: { annotations: { [PRESERVE_ANNOTATION]: value } } });
    try {
      await writer.patch('change', machines, { namespace: namespace ?? '', name }, patch, { signal });
    } catch (err) {
      if (!isNotFound(err) && !isConflict(err)) throw err; // another Machine of that name is none of ours
    }
  });
}

function valueOf({ metadata }: Machine): string {
  return metadata.annotations?.[PRESERVE_ANNOTATION] ?? '';
}

function byAge(a: Machine, b: Machine): number {
  const difference =
    (fromTimestamp(a.metadata.creationTimestamp) ?? 0) - (fromTimestamp(b.metadata.creationTimestamp) ?? 0);
  return difference === 0 ? (a.metadata.name < b.metadata.name ? -1 : 1) : difference;
}
