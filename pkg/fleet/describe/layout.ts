import { ageOf } from '../age.ts';
import type { DescribedExplanation } from './described-explanation.ts';
import type { DescribedCondition, DescribedEvent } from './described.ts';

export type Field = readonly [label: string, value: string | undefined];

/** Labels and values, as lines; those without a value are left out. */
export function fieldLines(rows: readonly Field[]): readonly string[] {
  const shown = rows.filter(([, value]) => value !== undefined);
  const width = Math.max(...shown.map(([label]) => label.length)) + 3;
  return shown.map(([label, value = '']) => `${`${label}:`.padEnd(width)}${onOneLine(value)}`);
}

/** Where an object stands. Ages count to `nowMs`. */
export function explanationFields(
  { reason, message, waitingFor, since, nextStep }: DescribedExplanation,
  nowMs: number,
): Field[] {
  return [
    ['Reason', reason],
    ['Message', message],
    ['Waiting For', waitingFor ?? '<nothing>'],
    ['Since', since === undefined ? undefined : `${since} (${ageOf(since, nowMs)})`],
    ['Next', nextStep],
  ];
}

/** Conditions as a table. Ages count to `nowMs`. */
export function conditionLines(
  title: string,
  conditions: readonly DescribedCondition[],
  nowMs: number,
): readonly string[] {
  const header = ['Type', 'Status', 'Age', 'Reason', 'Message'];
  return tableLines(
    title,
    header,
    conditions.map((one) => conditionRow(one, nowMs)),
  );
}

/** Events as a table. Ages count to `nowMs`. */
export function eventLines(events: readonly DescribedEvent[], nowMs: number): readonly string[] {
  const header = ['Type', 'Reason', 'Age', 'From', 'Message'];
  return tableLines(
    'Events',
    header,
    events.map((event) => eventRow(event, nowMs)),
  );
}

/** A table below its title. */
export function tableLines(
  title: string,
  header: readonly string[],
  rows: readonly (readonly string[])[],
): readonly string[] {
  const wide = `${title}:`;
  if (rows.length === 0) return [`${wide}  <none>`];
  const rules = header.map((cell) => '-'.repeat(cell.length));
  const table = [header, rules, ...rows];
  return [wide, ...alignedLines(table).map((line) => `  ${line}`)];
}

/** Rows with as many cells as the first, each column as wide as its longest cell. */
export function alignedLines(cells: readonly (readonly string[])[]): readonly string[] {
  const rows = cells.map((row) => row.map(onOneLine));
  const widths = rows[0]?.map((_cell, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0))) ?? [];
  return rows.map((row) =>
    row
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

function conditionRow({ type, status, since, reason = '', message = '' }: DescribedCondition, nowMs: number): string[] {
  return [type, status, ageOf(since, nowMs), reason, message];
}

function eventRow({ type, reason, first, last, from, message, count }: DescribedEvent, nowMs: number): string[] {
  const age = count > 1 ? `${ageOf(last, nowMs)} (x${count} over ${ageOf(first, nowMs)})` : ageOf(last, nowMs);
  return [type, reason, age, from, message];
}

/** Some messages are lists, of one line for each item. */
function onOneLine(text: string): string {
  return text.replaceAll(/\s*[\r\n]\s*/g, ' ');
}
