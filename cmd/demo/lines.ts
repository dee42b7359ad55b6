import { performance } from 'node:perf_hooks';

import { printable } from '../printable.ts';
import { indentOf, wrapped } from '../wrapped.ts';

/** Deeper than this is a column of descriptions, not an indentation. */
const COLUMN = 20;
const COMMAND = /^( {2}\S.*?) {2,}(\S.*)$/;
/** A description below its command, where there is no room beside it. */
const BELOW = ' '.repeat(6);
const startedMs = performance.now();

/** The width of a terminal; undefined where no person reads, so that what is printed stays as it is. */
function columns(): number | undefined {
  const { isTTY, columns: width } = process.stdout;
  return isTTY && width > 0 ? width : undefined;
}

/** What was printed while another program has the terminal. */
let held: string[] | undefined;

/** Keeps what `print` prints, because another program has the terminal. */
export function holdLines(): void {
  held = [];
}

/** Prints what was kept. */
export function releaseLines(): void {
  const kept = held ?? [];
  held = undefined;
  for (const text of kept) console.log(text);
}

/** Prints a line with the time since the start. */
export function print(line: string): void {
  const text = withTime(line).join('\n');
  if (held === undefined) console.log(text);
  else held.push(text);
}

/** Prints a line that `endLine` ends. */
export function beginLine(line: string): void {
  process.stdout.write(withTime(line).join('\n'));
}

export function endLine(rest: string): void {
  process.stdout.write(` ${rest}\n`);
}

/** Prints a text of commands with descriptions, in one column where there is no room for two. */
export function printText(text: string): void {
  console.log(fitted(text, columns()));
}

/** Prints sentences in lines that fit. */
export function printParagraph(text: string): void {
  console.log(wrapped(text, columns(), 0).join('\n'));
}

function withTime(unsafe: string): readonly string[] {
  const line = printable(unsafe);
  const time = `${((performance.now() - startedMs) / 1000).toFixed(1).padStart(6)} s  `;
  return line
    .split('\n')
    .flatMap((one, i) => wrapped(`${i === 0 ? time : ''}${one}`, columns(), time.length + indentOf(one) + 2));
}

/** A list of commands, each with its description beside or below it, in lines of that width. A command that is broken can still be pasted. */
export function fitted(text: string, width: number | undefined): string {
  const lines = text.split('\n');
  if (width === undefined || lines.every((line) => line.length <= width)) return text;
  const narrow: string[] = [];
  let description: string | undefined;
  const endDescription = (): void => {
    if (description !== undefined) narrow.push(...wrapped(`${BELOW}${description}`, width, BELOW.length));
    description = undefined;
  };
  for (const line of lines) {
    if (indentOf(line) >= COLUMN) {
      description = description === undefined ? line.trim() : `${description} ${line.trim()}`;
      continue;
    }
    endDescription();
    const [, command = line, beside] = COMMAND.exec(line) ?? [];
    narrow.push(...(line.startsWith('  ') ? brokenCommand(command, width) : wrapped(line, width, 0)));
    description = beside;
  }
  endDescription();
  return narrow.join('\n');
}

/** In lines that a shell reads as one. Within quotes nothing is broken. */
function brokenCommand(command: string, width: number): readonly string[] {
  const hidden = '\0';
  const guarded = command.replaceAll(/'[^']*'/g, (quoted) => quoted.replaceAll(' ', hidden));
  return wrapped(guarded, width, BELOW.length, ' \\').map((line) => line.replaceAll(hidden, ' '));
}
