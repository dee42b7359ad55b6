import { LAST_APPLIED_CAPACITY_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import type { MachineClass } from '../../../apis/machine/v1alpha1/machine-class.ts';
import { quantitiesEqual } from '../../../apis/quantity.ts';
import type { Node } from '../../../apis/wire.ts';
import { isObject } from '../../../apis/members.ts';

type Quantities = Readonly<Record<string, string | number>>;

export interface CapacityChange {
  /** Members of `status.capacity`; null removes one. Written before the record, so that a lost write is made up for. */
  readonly capacity: Readonly<Record<string, string | null>> | undefined;
  /** New value of the record of what was applied; null removes it, undefined leaves it. */
  readonly record: string | null | undefined;
}

/**
 * What must change so that a Node shows its class's virtual capacity: extended resources that no device plugin reports. Three-way,
 * as for the node template: what was applied before and is wanted no more goes, what others set stays; quantities are compared
 * by value. Undefined when nothing must. A class without nodeTemplate asks for nothing and takes nothing away.
 */
export function capacityChange(machineClass: MachineClass | undefined, node: Node): CapacityChange | undefined {
  if (machineClass?.nodeTemplate === undefined) return undefined;
  const wanted: Quantities = machineClass.nodeTemplate.virtualCapacity ?? {};
  const text = node.metadata.annotations?.[LAST_APPLIED_CAPACITY_ANNOTATION];
  const applied = parse(text);
  const capacity = membersToChange(wanted, applied ?? {}, node.status?.capacity ?? {});
  const record = recordFor(wanted, text, applied);
  return capacity === undefined && record === undefined ? undefined : { capacity, record };
}

function membersToChange(wanted: Quantities, applied: Quantities, current: Quantities): CapacityChange['capacity'] {
  const change: Record<string, string | null> = {};
  for (const [name, quantity] of Object.entries(wanted)) {
    const now = current[name];
    if (now === undefined || !quantitiesEqual(now, quantity)) change[name] = String(quantity);
  }
  for (const name of Object.keys(applied)) {
    if (wanted[name] === undefined && current[name] !== undefined) change[name] = null;
  }
  return Object.keys(change).length === 0 ? undefined : change;
}

function recordFor(
  wanted: Quantities,
  text: string | undefined,
  applied: Quantities | undefined,
): string | null | undefined {
  if (Object.keys(wanted).length === 0) return text === undefined ? undefined : null;
  return applied !== undefined && areEqual(wanted, applied) ? undefined : recordOf(wanted);
}

function areEqual(a: Quantities, b: Quantities): boolean {
  const names = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...names].every((name) => {
    const [left, right] = [a[name], b[name]];
    return left !== undefined && right !== undefined && quantitiesEqual(left, right);
  });
}

/** A resource list as Go writes it: members in order, quantities as text. */
function recordOf(quantities: Quantities): string {
  const members = Object.entries(quantities).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify(Object.fromEntries(members.map(([name, quantity]) => [name, String(quantity)])));
}

/** Undefined for an absent record, and for one that nobody can read: it is written anew then, and nothing removed. */
function parse(record: string | undefined): Quantities | undefined {
  if (record === undefined) return undefined;
  try {
    const parsed: unknown = JSON.parse(record);
    return isObject(parsed) ? (parsed as Quantities) : undefined;
  } catch {
    return undefined;
  }
}
