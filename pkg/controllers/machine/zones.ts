import { ZONE_LABEL } from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineClass } from '../../apis/machine/v1alpha1/machine-class.ts';
import { isBeingDeleted } from '../../apis/meta.ts';
import type { Lister } from '../../cache/lister.ts';
import { fromTimestamp, MINUTE_MS } from '../../clock/clock.ts';
import { phaseOf } from '../machines/status.ts';

/** Of fewer machines nobody can tell whether the fault is the zone's or theirs. */
const LEAST_MACHINES = 3;
/** Machines that become unhealthy within this time have probably done so for one reason. */
const BURST_MS = 5 * MINUTE_MS;

/** Phases of machines that have joined: only those can tell of their zone. */
const JOINED: ReadonlySet<string> = new Set([
  'Running',
  'Unknown',
  'InPlaceUpdating',
  'InPlaceUpdateSuccessful',
  'InPlaceUpdateFailed',
]);

/** One zone, and how its machines do. */
export interface ZoneState {
  /** Empty for machines of which nobody knows the zone: they count as one zone. */
  readonly zone: string;
  /** Machines that have joined and are not being deleted. */
  readonly machines: number;
  /** Those of them whose Node is not healthy. */
  readonly unknown: number;
  /** Whether none of its machines may be replaced for bad health. */
  readonly isStopped: boolean;
}

/** The zone of a machine: from its node template, else from its class. Empty when neither tells. */
export function zoneOf({ spec }: Pick<Machine, 'spec'>, machineClass: MachineClass | undefined): string {
  return spec?.nodeTemplate?.metadata?.labels?.[ZONE_LABEL] ?? machineClass?.nodeTemplate?.zone ?? '';
}

/**
 * Which zones are stopped: a zone of 3 machines or more, of which `threshold` (a share) or more are Unknown, at least half of
 * those since one and the same 5 minutes; with threshold 1 none. That is a fault of the zone or of the way to it, not of the
 * machines, and new machines would not help. The decision follows from what is recorded alone, so that it outlives any process;
 * it ends when the share has fallen. Zones in the order in which machines name them.
 */
export function zoneStates(
  machines: readonly Machine[],
  zoneOfMachine: (machine: Machine) => string,
  threshold: number,
): ZoneState[] {
  const zones = new Map<string, Machine[]>();
  for (const machine of machines) {
    if (isBeingDeleted(machine) || !JOINED.has(phaseOf(machine))) continue;
    const zone = zoneOfMachine(machine);
    const known = zones.get(zone);
    if (known === undefined) zones.set(zone, [machine]);
    else known.push(machine);
  }
  return [...zones].map(([zone, joined]) => stateOf(zone, joined, threshold));
}

/** The zones of all cached machines. */
export function zonesOf(machines: Lister<Machine>, classes: Lister<MachineClass>, threshold: number): ZoneState[] {
  return zoneStates(machines.list(), (machine) => zoneIn(classes, machine), threshold);
}

/** The zone of a machine whose class is cached, or not. */
export function zoneIn(classes: Lister<MachineClass>, { metadata, spec }: Machine): string {
  return zoneOf({ spec }, classes.get(`${metadata.namespace ?? ''}/${spec?.class?.name ?? ''}`));
}

/** How many machines of `zone` are Unknown since about the same time as this one, itself included. */
export function unhealthyTogether(
  machine: Machine,
  machines: readonly Machine[],
  zoneOfMachine: (machine: Machine) => string,
): number {
  const zone = zoneOfMachine(machine);
  const sinceMs = unhealthySinceMs(machine);
  const others = machines.filter(
    (other) =>
      other.metadata.uid !== machine.metadata.uid &&
      phaseOf(other) === 'Unknown' &&
      !isBeingDeleted(other) &&
      Math.abs(unhealthySinceMs(other) - sinceMs) <= BURST_MS &&
      zoneOfMachine(other) === zone,
  );
  return others.length + 1;
}

function unhealthySinceMs({ status }: Machine): number {
  return fromTimestamp(status?.currentStatus?.lastUpdateTime) ?? 0;
}

function stateOf(zone: string, joined: readonly Machine[], threshold: number): ZoneState {
  const unknown = joined.filter((machine) => phaseOf(machine) === 'Unknown');
  const isStopped =
    threshold < 1 &&
    joined.length >= LEAST_MACHINES &&
    unknown.length >= Math.max(1, threshold * joined.length) &&
    2 * largestBurst(unknown) >= unknown.length;
  return { zone, machines: joined.length, unknown: unknown.length, isStopped };
}

/** The greatest number of machines that became Unknown within one window. */
function largestBurst(unknown: readonly Machine[]): number {
  const sinceMs = unknown.map(unhealthySinceMs).toSorted((a, b) => a - b);
  let largest = 0;
  let first = 0;
  for (const [last, endMs] of sinceMs.entries()) {
    while (endMs - (sinceMs[first] ?? endMs) > BURST_MS) first++;
    largest = Math.max(largest, last - first + 1);
  }
  return largest;
}
