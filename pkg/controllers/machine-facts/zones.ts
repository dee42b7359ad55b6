import { phaseOf, vmClassNameOf } from '../../apis/machine/v1alpha1/defaults.ts';
import { ZONE_LABEL } from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineClass } from '../../apis/machine/v1alpha1/machine-class.ts';
import { isBeingDeleted } from '../../apis/meta.ts';
import type { Lister } from '../../kube/cache/lister.ts';
import { fromTimestamp, MINUTE_MS } from '../../base/clock/clock.ts';
import { isUnderMaintenance } from './maintenance.ts';
import type { Targets } from '../../kube/targets/targets.ts';

/** Of fewer machines nobody can tell whether the fault is the zone's or theirs. */
const MIN_MACHINES = 3;
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

/** Machines that can fail together: those of one zone of one provider whose Nodes are in one target cluster. */
export interface Zone {
  /** Target cluster; empty without one. */
  readonly cluster: string;
  /** That of the class; empty when there is none. */
  readonly provider: string;
  /** Empty when nobody knows it: such machines of one provider count as one zone. */
  readonly name: string;
}

export interface ZoneDeps {
  readonly classes: Pick<Lister<MachineClass>, 'get'>;
  readonly targets: Pick<Targets, 'of'>;
}

export interface ZoneState {
  readonly zone: Zone;
  /** Machines that have joined, are not being deleted and not in maintenance. */
  readonly machines: number;
  /** Those of them whose Node is not healthy. */
  readonly unknown: number;
  /** Whether none of its machines may be replaced for bad health. */
  readonly isStopped: boolean;
}

/** The zone of a machine. Its name is from its node template, else from the class that its VM was requested with. */
export function zoneOf({ classes, targets }: ZoneDeps, machine: Machine): Zone {
  const { metadata, spec } = machine;
  const machineClass = classes.get(`${metadata.namespace ?? ''}/${vmClassNameOf(machine)}`);
  return {
    cluster: targets.of(machine)?.cluster ?? '',
    provider: machineClass?.provider ?? '',
    name: spec?.nodeTemplate?.metadata?.labels?.[ZONE_LABEL] ?? machineClass?.nodeTemplate?.zone ?? '',
  };
}

export function keyOfZone({ cluster, provider, name }: Zone): string {
  return JSON.stringify([cluster, provider, name]);
}

/**
 * Which zones are stopped: a zone of 3 machines or more, of which `threshold` (a share) or more are Unknown, at least half of
 * those since one and the same 5 minutes; with threshold 1 none. That is a fault of the zone or of the way to it, not of the
 * machines, and new machines would not help. The decision follows from what is recorded alone, so that it outlives any process;
 * it ends when the share has fallen. Zones in the order in which machines name them.
 */
export function zoneStates(deps: ZoneDeps, machines: readonly Machine[], threshold: number): ZoneState[] {
  const zones = new Map<string, { zone: Zone; joined: Machine[] }>();
  for (const machine of machines) {
    if (!isEvidenceOfZone(machine)) continue;
    const zone = zoneOf(deps, machine);
    const known = zones.get(keyOfZone(zone));
    if (known === undefined) zones.set(keyOfZone(zone), { zone, joined: [machine] });
    else known.joined.push(machine);
  }
  return [...zones.values()].map(({ zone, joined }) => stateOf(zone, joined, threshold));
}

/** How many machines of its zone are Unknown since about the same time as this one, or lost, itself included. */
export function unhealthyTogether(
  deps: ZoneDeps,
  machine: Machine,
  machines: readonly Machine[],
  isLost: (other: Machine) => boolean = () => false,
): number {
  const key = keyOfZone(zoneOf(deps, machine));
  const sinceMs = unhealthySinceMs(machine);
  const isUnknownToo = (other: Machine): boolean =>
    phaseOf(other) === 'Unknown' && isEvidenceOfZone(other) && Math.abs(unhealthySinceMs(other) - sinceMs) <= BURST_MS;
  const others = machines.filter(
    (other) =>
      other.metadata.uid !== machine.metadata.uid &&
      (isUnknownToo(other) || isLost(other)) &&
      keyOfZone(zoneOf(deps, other)) === key,
  );
  return others.length + 1;
}

/** One in maintenance may be down on purpose. */
function isEvidenceOfZone(machine: Machine): boolean {
  return JOINED.has(phaseOf(machine)) && !isBeingDeleted(machine) && !isUnderMaintenance(machine);
}

function unhealthySinceMs({ status }: Machine): number {
  return fromTimestamp(status?.currentStatus?.lastUpdateTime) ?? 0;
}

function stateOf(zone: Zone, joined: readonly Machine[], threshold: number): ZoneState {
  const unknown = joined.filter((machine) => phaseOf(machine) === 'Unknown');
  const isStopped =
    threshold < 1 &&
    joined.length >= MIN_MACHINES &&
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
