import { fromTimestamp } from '../../../pkg/base/clock/clock.ts';
import { ageOf } from '../../../pkg/fleet/age.ts';
import { humanDuration } from '../../../pkg/fleet/human-duration.ts';
import type { MachineWork } from '../../../pkg/fleet/machine-work.ts';
import {
  conditionLines,
  eventLines,
  explanationFields,
  type Field,
  fieldLines,
} from '../../../pkg/fleet/describe/layout.ts';
import { cellText } from './described-cell.ts';
import type { Description } from './description.ts';

/** A description as text, in the layout of `kubectl describe`. Ages count to `nowMs`. */
export function renderDescription(description: Description, nowMs: number): string {
  return [
    ...fields(description, nowMs),
    ...conditionLines('Conditions', description.conditions, nowMs),
    ...conditionLines('Node Conditions', description.nodeConditions, nowMs),
    ...eventLines(description.events, nowMs),
  ].join('\n');
}

function fields(description: Description, nowMs: number): readonly string[] {
  const { lastOperation } = description;
  const { type = '', state = '', errorCode, at } = lastOperation ?? {};
  const code = errorCode === undefined ? '' : `, ${errorCode}`;
  return fieldLines([
    ['Name', description.name],
    ['Namespace', description.namespace],
    ['Owner', description.owner],
    ['Class', description.machineClass],
    ['VM', description.providerID],
    ['Node', description.node],
    ['Cell', cellText(description.cell)],
    ['Phase', description.phase === '' ? '<none>' : description.phase],
    ...explanationFields(description, nowMs),
    ...workFields(description.work, nowMs),
    ['Deletion', description.deletionTimestamp],
    ['Last Operation', lastOperation === undefined ? undefined : `${type} ${state}${code} (${ageOf(at, nowMs)} ago)`],
  ]);
}

function workFields({ running = [], nextAttempt, failure }: Partial<MachineWork> = {}, nowMs: number): Field[] {
  const now = running.map(({ activity, since, isQueued }) =>
    isQueued ? `${activity}, queued ${ageOf(since, nowMs)} ago` : `${activity}, started ${ageOf(since, nowMs)} ago`,
  );
  return [
    ['In Progress', now.length === 0 ? undefined : now.join('; ')],
    ['Next Attempt', nextAttempt === undefined ? undefined : nextAttemptText(nextAttempt, nowMs)],
    [
      'Fails At',
      failure === undefined ? undefined : `${failure.at} (${whenText(failure.at, nowMs)}; ${failure.timeout} timeout)`,
    ],
  ];
}

function nextAttemptText(
  { of, at, attempt, waitsForClass }: NonNullable<MachineWork['nextAttempt']>,
  nowMs: number,
): string {
  const shared = waitsForClass === undefined ? '' : `; all Machines of MachineClass ${waitsForClass} wait`;
  return `${at} (${whenText(at, nowMs)}; ${of}, attempt ${attempt}${shared})`;
}

function whenText(at: string, nowMs: number): string {
  const inMs = (fromTimestamp(at) ?? nowMs) - nowMs;
  return inMs > 0 ? `in ${humanDuration(inMs)}` : 'now';
}
