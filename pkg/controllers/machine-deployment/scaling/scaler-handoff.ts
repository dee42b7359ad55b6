import {
  LAST_SCALER_CHANGE_ANNOTATION,
  MARKED_FOR_DELETION_TIME_ANNOTATION,
  PRIORITY_ANNOTATION,
  TRIGGER_DELETION_ANNOTATION,
} from '../../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { MachineDeployment } from '../../../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../../apis/machine/v1alpha1/machine-set.ts';
import { controllerOf, isBeingDeleted } from '../../../apis/meta.ts';
import { fromTimestamp, toTimestamp } from '../../../base/clock/clock.ts';
import { isPreservedFailed } from '../../replicas/machine-state.ts';
import { markedAtMs } from '../../replicas/victim-order.ts';

/** Marks are whole seconds. */
const SECOND_MS = 1_000;
/** How many Machines are marked at most in one pass: replicas may be raised again before the list is worked off. */
export const MARKS_A_PASS = 500;

export interface Choice {
  readonly machine: Machine;
  /** RFC 3339, as the autoscaler wrote it. */
  readonly time: string;
}

export interface Handoff {
  readonly choices: readonly Choice[];
  /** Annotations of the MachineDeployment that have to change; null removes one. Empty when the list is in order. */
  readonly annotations: Readonly<Record<string, string | null>>;
}

/** The entries of the autoscaler's list of Machines that are to go: `name~time`, or a name. */
export function listedIn({ metadata }: MachineDeployment): readonly string[] {
  const entries = (metadata.annotations?.[TRIGGER_DELETION_ANNOTATION] ?? '').split(',');
  return entries.map((entry) => entry.trim()).filter((entry) => entry !== '');
}

export function nameIn(entry: string): string {
  return entry.split('~')[0] ?? '';
}

/** Names of the Machines on the list, whether there are such or not. */
export function namesListed(deployment: MachineDeployment): ReadonlySet<string> {
  return new Set(listedIn(deployment).map(nameIn));
}

/**
 * Reads the list of Machines that an autoscaler wants gone: `name~time`, or a bare name from older ones, which is given the
 * time of the last change of replicas, or now. Entries that make no sense, or whose Machine is not one of `owned`, is on its
 * way out, or has failed and is preserved, are dropped from the list. What has failed otherwise stays: replaced as a failed one
 * it would cost a Machine that nobody wants any more, while another one goes for it. A Machine that is named twice is chosen once, by
 * the first entry: each choice costs a replica.
 */
export function readHandoff(
  deployment: MachineDeployment,
  owned: ReadonlyMap<string, Machine>,
  nowMs: number,
): Handoff {
  const text = deployment.metadata.annotations?.[TRIGGER_DELETION_ANNOTATION];
  if (text === undefined) return { choices: [], annotations: {} };
  const changed = deployment.metadata.annotations?.[LAST_SCALER_CHANGE_ANNOTATION];
  const scalerTime = fromTimestamp(changed) === undefined ? undefined : changed;
  const timeOfBare = scalerTime ?? toTimestamp(nowMs);

  const entries = listedIn(deployment);
  const hasBare = entries.some((entry) => !entry.includes('~'));
  const named = entries
    .map((entry) => (entry.includes('~') ? entry : `${entry}~${timeOfBare}`))
    .map((entry) => choiceOf(entry, owned))
    .filter((choice) => choice !== undefined);
  const choices = [...Map.groupBy(named, ({ machine }) => machine).values()].flatMap(([first]) => first ?? []);

  const list = choices.map(({ machine, time }) => `${machine.metadata.name}~${time}`).join(',');
  if (list !== '' && list === text) return { choices, annotations: {} };
  const isTimeMissing = hasBare && scalerTime === undefined && choices.length > 0;
  return {
    choices,
    annotations: {
      [TRIGGER_DELETION_ANNOTATION]: list === '' ? null : list,
      ...(isTimeMissing ? { [LAST_SCALER_CHANGE_ANNOTATION]: timeOfBare } : {}),
    },
  };
}

/** The marks that one pass writes, and whether they are all that are missing. */
export function marksDue(
  choices: readonly Choice[],
  sets: readonly MachineSet[],
): { readonly marks: readonly (Choice & { missing: Record<string, string> })[]; readonly isAll: boolean } {
  const due = choices
    .map((choice) => ({ ...choice, missing: missingScalerMarks(choice, setOf(choice.machine, sets)) }))
    .filter(({ missing }) => Object.keys(missing).length > 0);
  return { marks: due.slice(0, MARKS_A_PASS), isAll: due.length <= MARKS_A_PASS };
}

function choiceOf(entry: string, owned: ReadonlyMap<string, Machine>): Choice | undefined {
  const [name = '', time, ...rest] = entry.split('~');
  const machine = owned.get(name);
  if (time === undefined || rest.length > 0 || fromTimestamp(time) === undefined || machine === undefined) {
    return undefined;
  }
  return isBeingDeleted(machine) || isPreservedFailed(machine) ? undefined : { machine, time };
}

/**
 * The marks that a chosen Machine lacks. A mark of this very choice stays, and only the priority is restored, which a machine
 * controller overwrites when the Node joins. An earlier one, left over or of the same second as a change that the set knows, is
 * moved behind that change: the set would let the Machine go before it has shrunk, and make another in its place.
 */
export function missingScalerMarks({ machine, time }: Choice, set: MachineSet | undefined): Record<string, string> {
  const annotations = machine.metadata.annotations ?? {};
  const hasPriority = annotations[PRIORITY_ANNOTATION] === '1';
  const [markedMs, timeMs] = [markedAtMs(machine), fromTimestamp(time) ?? 0];
  const isMarked = markedMs !== undefined && (hasPriority || markedMs >= timeMs);
  if (isMarked) return hasPriority ? {} : { [PRIORITY_ANNOTATION]: '1' };

  const knownMs = (set && scalerTimeMsOf(set)) ?? -Infinity;
  const mark = timeMs > knownMs ? time : toTimestamp(knownMs + SECOND_MS);
  return { ...(hasPriority ? {} : { [PRIORITY_ANNOTATION]: '1' }), [MARKED_FOR_DELETION_TIME_ANNOTATION]: mark };
}

/**
 * Machines with a mark that no list explains any more and that their set was not told of: the choice was taken back in between. A
 * priority without a time is somebody else's; a mark that the set knows is being obeyed.
 */
export function strayMarks(
  owned: readonly Machine[],
  choices: readonly Choice[],
  sets: readonly MachineSet[],
): readonly Machine[] {
  const chosen = new Set(choices.map(({ machine }) => machine.metadata.name));
  return owned.filter((machine) => {
    const { name, annotations } = machine.metadata;
    const markedMs = markedAtMs(machine);
    if (markedMs === undefined || annotations?.[PRIORITY_ANNOTATION] !== '1') return false;
    if (isBeingDeleted(machine) || chosen.has(name)) return false;
    const set = setOf(machine, sets);
    return set !== undefined && markedMs > (scalerTimeMsOf(set) ?? -Infinity);
  });
}

export function chosenIn(deployment: MachineDeployment, owned: readonly Machine[], nowMs: number): readonly Choice[] {
  if (deployment.metadata.annotations?.[TRIGGER_DELETION_ANNOTATION] === undefined) return [];
  const byName = new Map(owned.map((machine) => [machine.metadata.name, machine]));
  return readHandoff(deployment, byName, nowMs).choices;
}

/**
 * The chosen Machines of `set` that it does not know of: those marked later than the autoscaler's change that it was told of.
 * One write tells it of them and makes it smaller by as many, so a repetition finds none.
 */
export function unacknowledged(set: MachineSet, choices: readonly Choice[]): readonly Choice[] {
  const knownMs = scalerTimeMsOf(set) ?? -Infinity;
  return choices.filter(({ machine }) => {
    if (controllerOf(machine)?.uid !== set.metadata.uid) return false;
    const markedMs = markedAtMs(machine);
    return markedMs !== undefined && markedMs > knownMs;
  });
}

/** The time of the change that tells a set of its `untold` Machines: the latest of what it knows, the change, and their marks. */
export function scalerTimeFor(
  deployment: MachineDeployment,
  set: MachineSet,
  untold: readonly Choice[],
): string | undefined {
  const texts = [
    set.metadata.annotations?.[LAST_SCALER_CHANGE_ANNOTATION],
    deployment.metadata.annotations?.[LAST_SCALER_CHANGE_ANNOTATION],
    ...untold.map(({ machine }) => machine.metadata.annotations?.[MARKED_FOR_DELETION_TIME_ANNOTATION]),
  ];
  let latest: { text: string; atMs: number } | undefined;
  for (const text of texts) {
    const atMs = fromTimestamp(text);
    if (text !== undefined && atMs !== undefined && atMs > (latest?.atMs ?? -Infinity)) latest = { text, atMs };
  }
  return latest?.text;
}

function scalerTimeMsOf({ metadata }: MachineSet): number | undefined {
  return fromTimestamp(metadata.annotations?.[LAST_SCALER_CHANGE_ANNOTATION]);
}

function setOf(machine: Machine, sets: readonly MachineSet[]): MachineSet | undefined {
  const uid = controllerOf(machine)?.uid;
  return sets.find((set) => set.metadata.uid === uid);
}
