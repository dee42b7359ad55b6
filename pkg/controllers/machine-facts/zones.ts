import { phaseOf, vmClassNameOf } from '../../apis/machine/v1alpha1/defaults.ts';
import { FORCE_DRAIN_LABEL, ZONE_LABEL } from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineClass } from '../../apis/machine/v1alpha1/machine-class.ts';
import { isBeingDeleted } from '../../apis/meta.ts';
import type { Lister } from '../../kube/cache/lister.ts';
import { fromTimestamp, MINUTE_MS } from '../../base/clock/clock.ts';
import { isUnderMaintenance } from './maintenance.ts';
import { isHealthy } from './node-health.ts';
import { watchedConditionsOf, type MachineSettings } from './settings.ts';
import type { Targets } from '../../kube/targets/targets.ts';

/** Of fewer machines nobody can tell whether the fault is the zone's or theirs. */
const MIN_MACHINES = 3;
/** So many machines of a zone that become unhealthy together share a cause. */
export const BURST_MACHINES = 3;
/** Machines that become unhealthy within this time have probably done so for one reason. */
const BURST_MS = 5 * MINUTE_MS;

/** Phases of an update in place, until the machine is Running again or Failed. */
const UPDATING: readonly string[] = ['InPlaceUpdating', 'InPlaceUpdateSuccessful', 'InPlaceUpdateFailed'];
/** Phases of machines that have joined: only those can tell of their zone. */
const JOINED: ReadonlySet<string> = new Set(['Running', 'Unknown', ...UPDATING]);

/** Machines that can fail together: those of one zone of one provider whose Nodes are in one target cluster. */
export interface Zone {
  /** Target cluster; empty without one. */
  readonly cluster: string;
  /** That of the class; empty when there is none. */
  readonly provider: string;
  /** Empty when nobody knows it: such machines of one provider count as one zone. */
  readonly name: string;
}

export interface ZonesDeps {
  readonly machines: Pick<Lister<Machine>, 'list'>;
  readonly classes: Pick<Lister<MachineClass>, 'get' | 'list'>;
  readonly targets: Pick<Targets, 'of'>;
  readonly settings: Pick<MachineSettings, 'zoneUnhealthyThreshold' | 'nodeConditions'>;
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

/** What a machine tells of its zone. */
interface Member {
  readonly machine: Machine;
  readonly zone: Zone;
  readonly key: string;
  readonly isEvidence: boolean;
  /** Of one that is Unknown. */
  readonly unknownSinceMs: number | undefined;
  /** Counts as Unknown, together with any: since when it is unhealthy is not recorded any more. */
  readonly isRepaired: boolean;
}

interface KnownZone {
  readonly state: ZoneState;
  readonly members: readonly Member[];
}

/**
 * The zones of a fleet. Each machine that waits asks for them every few seconds, and mostly nothing has changed since: the zones are counted anew
 * when a machine or a class has changed, and of the machines only those are looked at that have.
 */
export class Zones {
  readonly #deps: ZonesDeps;
  /** What the rest was found out from: a list is the same array until something changes. */
  #machines: readonly Machine[] | undefined;
  #classes: readonly MachineClass[] | undefined;
  #members = new WeakMap<Machine, Member>();
  #zones: ReadonlyMap<string, KnownZone> = new Map();

  constructor(deps: ZonesDeps) {
    this.#deps = deps;
  }

  /**
   * Which zones are stopped: a zone of 3 machines or more, of which `zoneUnhealthyThreshold` (a share) or more are Unknown, at least half of
   * those since one and the same 5 minutes; with threshold 1 none. Machines that come, go or are in maintenance have no share, but are some of the 3
   * where at least two became Unknown together: that one of three is taken out tells nothing of the other two. A machine whose Node is unhealthy in an
   * update that label `force-drain` let begin counts as Unknown: else the first ones that are repaired so would have the others replaced. That is a fault of the zone or of the
   * way to it, not of the machines, and new machines would not help. The decision follows from what is recorded alone, so that it outlives any process;
   * it ends when the share has fallen. Zones in which no machine has joined are left out.
   */
  states(): ZoneState[] {
    return [...this.#known().values()].map(({ state }) => state).filter(({ machines }) => machines > 0);
  }

  /** The machine's zone, if it is one of which no machine is replaced just now. */
  stoppedZoneOf(machine: Machine): Zone | undefined {
    const state = this.#of(machine).known?.state;
    return state?.isStopped === true ? state.zone : undefined;
  }

  /**
   * The machine's zone, and how many machines of it are Unknown since about the same time as this one, or lost, itself included. More than
   * BURST_MACHINES are not counted.
   */
  unhealthyTogether(machine: Machine, isLost?: (other: Machine) => boolean): { key: string; together: number } {
    const { key, known } = this.#of(machine);
    const sinceMs = unhealthySinceMs(machine);
    let together = 1;
    for (const { machine: other, unknownSinceMs = Infinity, isRepaired } of known?.members ?? []) {
      const isTogether = isRepaired || Math.abs(unknownSinceMs - sinceMs) <= BURST_MS || isLost?.(other) === true;
      if (isTogether && other.metadata.uid !== machine.metadata.uid) together++;
      if (together === BURST_MACHINES) break;
    }
    return { key, together };
  }

  #of(machine: Machine): { readonly key: string; readonly known: KnownZone | undefined } {
    const zones = this.#known();
    const { key } = this.#memberOf(machine);
    return { key, known: zones.get(key) };
  }

  #known(): ReadonlyMap<string, KnownZone> {
    const { machines: fleet, classes, settings } = this.#deps;
    const seen = { machines: fleet.list(), classes: classes.list() };
    if (seen.machines === this.#machines && seen.classes === this.#classes) return this.#zones;
    if (seen.classes !== this.#classes) this.#members = new WeakMap();
    this.#machines = seen.machines;
    this.#classes = seen.classes;
    const zones = new Map<string, [Member, ...Member[]]>();
    for (const machine of seen.machines) {
      const member = this.#memberOf(machine);
      const members = zones.get(member.key);
      if (members === undefined) zones.set(member.key, [member]);
      else members.push(member);
    }
    const { zoneUnhealthyThreshold } = settings;
    this.#zones = new Map(
      [...zones].map(([key, members]) => [key, { state: zoneState(members, zoneUnhealthyThreshold), members }]),
    );
    return this.#zones;
  }

  #memberOf(machine: Machine): Member {
    const known = this.#members.get(machine);
    if (known !== undefined) return known;
    const zone = zoneOf(this.#deps, machine);
    const member = {
      machine,
      zone,
      key: keyOfZone(zone),
      isEvidence: JOINED.has(phaseOf(machine)) && isJudged(machine),
      unknownSinceMs: isUnhealthy(machine) ? unhealthySinceMs(machine) : undefined,
      isRepaired: isBeingRepaired(machine, this.#deps.settings),
    };
    this.#members.set(machine, member);
    return member;
  }
}

/** Phases of machines that are replaced unless they are well within their health timeout. */
export const HEALTH_LIMITED: ReadonlySet<string> = new Set([
  'Unknown',
  'InPlaceUpdateSuccessful',
  'InPlaceUpdateFailed',
]);

/** Whether a machine may need to be replaced: it is unhealthy, or is not well after an update in place. */
export function isUnwell(machine: Machine): boolean {
  return HEALTH_LIMITED.has(phaseOf(machine)) && isJudged(machine);
}

/** Whether a machine counts as unhealthy among others of its zone: what comes of an update in place tells nothing of it. */
export function isUnhealthy(machine: Machine): boolean {
  return phaseOf(machine) === 'Unknown' && isJudged(machine);
}

/** Whether an update that was forced is to make its Node healthy. One that was healthy before, and restarts for its update, is not told apart. */
function isBeingRepaired(machine: Machine, settings: ZonesDeps['settings']): boolean {
  return (
    UPDATING.includes(phaseOf(machine)) &&
    machine.metadata.labels?.[FORCE_DRAIN_LABEL] === 'True' &&
    isJudged(machine) &&
    !isHealthy(machine.status?.conditions ?? [], watchedConditionsOf(machine, settings))
  );
}

/** One in maintenance may be down on purpose. */
function isJudged(machine: Machine): boolean {
  return !isBeingDeleted(machine) && !isUnderMaintenance(machine);
}

function keyOfZone({ cluster, provider, name }: Zone): string {
  return JSON.stringify([cluster, provider, name]);
}

/** The zone of a machine. Its name is from its node template, else from the class that its VM was requested with. */
function zoneOf({ classes, targets }: ZonesDeps, machine: Machine): Zone {
  const { metadata, spec } = machine;
  const machineClass = classes.get(`${metadata.namespace ?? ''}/${vmClassNameOf(machine)}`);
  return {
    cluster: targets.of(machine)?.cluster ?? '',
    provider: machineClass?.provider ?? '',
    name: spec?.nodeTemplate?.metadata?.labels?.[ZONE_LABEL] ?? machineClass?.nodeTemplate?.zone ?? '',
  };
}

function unhealthySinceMs({ status }: Machine): number {
  return fromTimestamp(status?.currentStatus?.lastUpdateTime) ?? 0;
}

function zoneState(members: readonly [Member, ...Member[]], threshold: number): ZoneState {
  const [{ zone }] = members;
  const machines = members.filter(({ isEvidence }) => isEvidence).length;
  const sinceMs = members.map(({ unknownSinceMs }) => unknownSinceMs).filter((ms) => ms !== undefined);
  const repaired = members.filter(({ isRepaired }) => isRepaired).length;
  const unknown = sinceMs.length + repaired;
  const together = largestBurst(sinceMs) + repaired;
  // One alone is its own fault, whoever else comes or goes.
  const canTell = (together > 1 ? members.length : machines) >= MIN_MACHINES;
  const isStopped = threshold < 1 && canTell && unknown >= Math.max(1, threshold * machines) && 2 * together >= unknown;
  return { zone, machines, unknown, isStopped };
}

/** The greatest number of machines that became Unknown within one window. */
function largestBurst(unknownSinceMs: readonly number[]): number {
  const sinceMs = unknownSinceMs.toSorted((a, b) => a - b);
  let largest = 0;
  let first = 0;
  for (const [last, endMs] of sinceMs.entries()) {
    while (endMs - (sinceMs[first] ?? endMs) > BURST_MS) first++;
    largest = Math.max(largest, last - first + 1);
  }
  return largest;
}
