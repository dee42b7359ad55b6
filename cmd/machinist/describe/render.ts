import { ageOf, conditionLines, eventLines, fieldLines } from './layout.ts';
import type { Description } from './description.ts';

/** A description as text, in the layout of `kubectl describe`. Ages count to `nowMs`. */
export function render(description: Description, nowMs: number): string {
  return [
    ...fields(description, nowMs),
    ...conditionLines('Conditions', description.conditions, nowMs),
    ...conditionLines('Node Conditions', description.nodeConditions, nowMs),
    ...eventLines(description.events, nowMs),
  ].join('\n');
}

function fields(description: Description, nowMs: number): readonly string[] {
  const { lastOperation, since } = description;
  const { type = '', state = '', errorCode, at } = lastOperation ?? {};
  const code = errorCode === undefined ? '' : `, ${errorCode}`;
  return fieldLines([
    ['Name', description.name],
    ['Namespace', description.namespace],
    ['Owner', description.owner],
    ['Class', description.machineClass],
    ['VM', description.providerID],
    ['Node', description.node],
    ['Phase', description.phase === '' ? '<none>' : description.phase],
    ['Reason', description.reason],
    ['Message', description.message],
    ['Waiting For', description.waitingFor ?? '<nothing>'],
    ['Since', since === undefined ? undefined : `${since} (${ageOf(since, nowMs)})`],
    ['Next', description.nextStep],
    ['Deletion', description.deletionTimestamp],
    ['Last Operation', lastOperation === undefined ? undefined : `${type} ${state}${code} (${ageOf(at, nowMs)} ago)`],
  ]);
}
