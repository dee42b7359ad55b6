import type { Machine } from '../../../pkg/apis/machine/v1alpha1/machine.ts';
import type { MachineDeployment } from '../../../pkg/apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../../pkg/apis/machine/v1alpha1/machine-set.ts';
import { controllerOf } from '../../../pkg/apis/meta.ts';
import { fromTimestamp } from '../../../pkg/base/clock/clock.ts';
import { explain } from '../../../pkg/controllers/machine/explain/explain.ts';

/** Shorter deletions are not reported. */
const USUAL_MS = 10_000;
/** Number of deletions that are named. */
const NAMED = 3;

/** The Machines of the MachineSets of a MachineDeployment. */
export function ownedBy(
  { metadata: { uid } }: MachineDeployment,
  sets: readonly MachineSet[],
  machines: readonly Machine[],
): readonly Machine[] {
  const own = new Set(sets.filter((set) => controllerOf(set)?.uid === uid).map((set) => set.metadata.uid));
  return machines.filter((machine) => own.has(controllerOf(machine)?.uid ?? ''));
}

/** The deletions of machines that block a rollout, with what each waits for, one in a line, the oldest first. */
export function describeBlockingDeletions(machines: readonly Machine[], nowMs: number): readonly string[] {
  const slow = machines.flatMap((machine) => {
    const sinceMs = fromTimestamp(machine.metadata.deletionTimestamp);
    return sinceMs !== undefined && nowMs - sinceMs >= USUAL_MS ? [{ machine, sinceMs }] : [];
  });
  const ordered = slow.toSorted((a, b) => a.sinceMs - b.sinceMs || (nameOf(a.machine) < nameOf(b.machine) ? -1 : 1));
  const lines = ordered.slice(0, NAMED).map(({ machine }) => {
    const { message } = explain(machine, nowMs);
    return `Machine ${nameOf(machine)} is being deleted: ${message.replaceAll(/\s+/g, ' ')}`;
  });
  const more = ordered.length - lines.length;
  return more > 0 ? [...lines, `${more} more machines are being deleted`] : lines;
}

const nameOf = ({ metadata }: Machine): string => metadata.name;
