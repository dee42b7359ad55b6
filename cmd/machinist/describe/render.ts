import { ageOf, conditionLines, eventLines, explanationFields, fieldLines } from './layout.ts';
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
    ['Phase', description.phase === '' ? '<none>' : description.phase],
    ...explanationFields(description, nowMs),
    ['Deletion', description.deletionTimestamp],
    ['Last Operation', lastOperation === undefined ? undefined : `${type} ${state}${code} (${ageOf(at, nowMs)} ago)`],
  ]);
}
