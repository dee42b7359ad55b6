import { fromTimestamp } from '../../../pkg/clock/clock.ts';
import { humanDuration } from './human-duration.ts';
import type { DescribedCondition, DescribedEvent, Description } from './description.ts';

/** A description as text, in the layout of `kubectl describe`. Ages count to `nowMs`. */
export function render(description: Description, nowMs: number): string {
  const { conditions, nodeConditions, events } = description;
  return [
    ...fields(description, nowMs),
    ...section(
      'Conditions',
      ['Type', 'Status', 'Age', 'Reason', 'Message'],
      conditions.map((c) => conditionRow(c, nowMs)),
    ),
    ...section(
      'Node Conditions',
      ['Type', 'Status', 'Age', 'Reason', 'Message'],
      nodeConditions.map((c) => conditionRow(c, nowMs)),
    ),
    ...section(
      'Events',
      ['Type', 'Reason', 'Age', 'From', 'Message'],
      events.map((event) => eventRow(event, nowMs)),
    ),
  ].join('\n');
}

function fields(description: Description, nowMs: number): string[] {
  const { lastOperation, since } = description;
  const { type = '', state = '', errorCode, at } = lastOperation ?? {};
  const code = errorCode === undefined ? '' : `, ${errorCode}`;
  const rows: [string, string | undefined][] = [
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
  ];
  const shown = rows.filter(([, value]) => value !== undefined);
  const width = Math.max(...shown.map(([label]) => label.length)) + 3;
  return shown.map(([label, value]) => `${`${label}:`.padEnd(width)}${value ?? ''}`);
}

function section(title: string, header: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const wide = `${title}:`;
  if (rows.length === 0) return [`${wide}  <none>`];
  const rules = header.map((cell) => '-'.repeat(cell.length));
  const table = [header, rules, ...rows];
  const widths = header.map((_cell, i) => Math.max(...table.map((row) => row[i]?.length ?? 0)));
  const line = (row: readonly string[]): string =>
    `  ${row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join('  ')}`.trimEnd();
  return [wide, ...table.map(line)];
}

function conditionRow({ type, status, since, reason = '', message = '' }: DescribedCondition, nowMs: number): string[] {
  return [type, status, ageOf(since, nowMs), reason, message];
}

function eventRow({ type, reason, first, last, from, message, count }: DescribedEvent, nowMs: number): string[] {
  const age = count > 1 ? `${ageOf(last, nowMs)} (x${count} over ${ageOf(first, nowMs)})` : ageOf(last, nowMs);
  return [type, reason, age, from, message];
}

function ageOf(timestamp: string | undefined, nowMs: number): string {
  const sinceMs = fromTimestamp(timestamp);
  return sinceMs === undefined ? '<unknown>' : humanDuration(Math.max(0, nowMs - sinceMs));
}
