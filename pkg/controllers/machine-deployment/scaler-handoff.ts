import { phaseOf } from '../../apis/machine/v1alpha1/defaults.ts';
import {
  LAST_SCALER_CHANGE_ANNOTATION,
  MARKED_FOR_DELETION_TIME_ANNOTATION,
  PRIORITY_ANNOTATION,
  TRIGGER_DELETION_ANNOTATION,
} from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import { isBeingDeleted } from '../../apis/meta.ts';
import { fromTimestamp, toTimestamp } from '../../clock/clock.ts';
import { isNotFound } from '../../kube/errors.ts';
import { mergePatch, mergePatchIfUnchanged } from '../../kube/patch.ts';
import { machineDeployments, machines } from '../../kube/resource.ts';
import { atOnce } from '../machine-set/at-once.ts';
import type { MachineDeploymentParts } from './parts.ts';

/** How many Machines are marked at once. */
const PATCHES_AT_ONCE = 20;

/** A Machine that the autoscaler has chosen, and when. */
export interface Choice {
  readonly machine: Machine;
  /** RFC 3339, as the autoscaler wrote it. */
  readonly time: string;
}

/** What follows from the autoscaler's list. */
export interface Handoff {
  readonly choices: readonly Choice[];
  /** Annotations of the MachineDeployment that have to change; null removes one. Empty when the list is in order. */
  readonly annotations: Readonly<Record<string, string | null>>;
}

/**
 * Reads the list of Machines that an autoscaler wants gone: `name~time`, or a bare name from older ones, which is given the
 * time of the last change of replicas, or now. Entries that make no sense, or whose Machine is not one of `owned`, is on its
 * way out or has failed, are dropped from the list.
 */
export function readHandoff(
  deployment: MachineDeployment,
  owned: ReadonlyMap<string, Machine>,
  nowMs: number,
): Handoff {
  const text = deployment.metadata.annotations?.[TRIGGER_DELETION_ANNOTATION];
  if (text === undefined) return { choices: [], annotations: {} };
  const scalerTime = deployment.metadata.annotations?.[LAST_SCALER_CHANGE_ANNOTATION];
  const timeOfBare = scalerTime ?? toTimestamp(nowMs);

  const entries = text.split(',').map((entry) => entry.trim());
  const hasBare = entries.some((entry) => entry !== '' && !entry.includes('~'));
  const choices = entries
    .map((entry) => (entry.includes('~') ? entry : `${entry}~${timeOfBare}`))
    .map((entry) => choiceOf(entry, owned))
    .filter((choice) => choice !== undefined);

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

/**
 * Marks the Machines that the autoscaler has chosen, so that they are the first to go when the set shrinks, and tidies the
 * list. Returns the MachineDeployment as it is then. The first error is thrown: no set may shrink before its victims are
 * marked.
 */
export async function takeHandoff(
  { writer }: Pick<MachineDeploymentParts, 'writer'>,
  deployment: MachineDeployment,
  owned: readonly Machine[],
  nowMs: number,
  signal: AbortSignal,
): Promise<MachineDeployment> {
  const byName = new Map(owned.map((machine) => [machine.metadata.name, machine]));
  const { choices, annotations } = readHandoff(deployment, byName, nowMs);
  let current = deployment;
  if (Object.keys(annotations).length > 0) {
    const { namespace, name } = deployment.metadata;
    const patch = mergePatchIfUnchanged(deployment, { metadata: { annotations } });
    current = await writer.patch('change', machineDeployments, { namespace: namespace ?? '', name }, patch, { signal });
  }
  const marks = choices
    .map((choice) => ({ ...choice, missing: missingMarks(choice) }))
    .filter(({ missing }) => Object.keys(missing).length > 0);
  await atOnce(PATCHES_AT_ONCE, marks, async ({ machine, missing }) => {
    const { namespace, name } = machine.metadata;
    try {
      const patch = mergePatch(machine, { metadata: { annotations: missing } });
      await writer.patch('change', machines, { namespace: namespace ?? '', name }, patch, { signal });
    } catch (err) {
      if (!isNotFound(err)) throw err;
    }
  });
  return current;
}

function choiceOf(entry: string, owned: ReadonlyMap<string, Machine>): Choice | undefined {
  const [name = '', time, ...rest] = entry.split('~');
  const machine = owned.get(name);
  if (time === undefined || rest.length > 0 || fromTimestamp(time) === undefined || machine === undefined) {
    return undefined;
  }
  return isBeingDeleted(machine) || phaseOf(machine) === 'Failed' ? undefined : { machine, time };
}

function missingMarks({ machine, time }: Choice): Record<string, string> {
  const annotations = machine.metadata.annotations ?? {};
  const isMarked = (annotations[MARKED_FOR_DELETION_TIME_ANNOTATION] ?? '') !== '';
  return {
    ...(annotations[PRIORITY_ANNOTATION] === '1' ? {} : { [PRIORITY_ANNOTATION]: '1' }),
    ...(isMarked ? {} : { [MARKED_FOR_DELETION_TIME_ANNOTATION]: time }),
  };
}
