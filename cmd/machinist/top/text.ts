import { styleText } from 'node:util';

import stringWidth from 'string-width';

/** How a part of a line is painted where colours are wanted; what it means is said by its text as well. */
export type Tone = 'title' | 'ok' | 'progressing' | 'attention' | 'dim' | 'selected';

export interface Segment {
  readonly text: string;
  readonly tone?: Tone | undefined;
}

/** A line of the screen. */
export type Line = readonly Segment[];

const STYLES = {
  title: 'bold',
  ok: 'green',
  progressing: 'yellow',
  attention: 'red',
  dim: 'dim',
  selected: 'inverse',
} as const satisfies Record<Tone, string>;

const ELLIPSIS = '…';
const PLAIN = /^[\x20-\x7E]*$/;
/** What would move the cursor, or turn text round: names and messages come from outside. */
const UNSAFE = /[\p{Cc}\p{Zl}\p{Zp}\u200E\u200F\u202A-\u202E\u2066-\u2069]+/gu;
const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' });

/** The columns that a text takes. */
export function widthOf(text: string): number {
  return PLAIN.test(text) ? text.length : stringWidth(text);
}

/** A text of one line without control characters. */
export function cleaned(text: string): string {
  return PLAIN.test(text) ? text : text.replaceAll(UNSAFE, ' ');
}

/** As much of a text as `width` columns hold; what is left out is shown by an ellipsis. */
export function cut(text: string, width: number): string {
  if (width <= 0) return '';
  if (widthOf(text) <= width) return text;
  return `${startOf(text, width - 1)}${ELLIPSIS}`;
}

/** A text that takes exactly `width` columns. */
export function padded(text: string, width: number, side: 'left' | 'right' = 'left'): string {
  const shown = cut(text, width);
  const space = ' '.repeat(Math.max(0, width - widthOf(shown)));
  return side === 'left' ? `${shown}${space}` : `${space}${shown}`;
}

/**
 * A text in lines of at most `width` columns, broken at spaces where there are any. Continued lines begin with `indent`, where there is room
 * for it. However long the text is, each of its characters is measured once.
 */
export function wrapped(text: string, width: number, indent = ''): readonly string[] {
  if (PLAIN.test(text) && text.length <= width) return [text];
  const pieces = Array.from(graphemes.segment(text), ({ segment }) => segment);
  const widths = pieces.map(widthOf);
  const margin = widthOf(indent) < width ? indent : '';
  const lines: string[] = [];
  let before = '';
  let from = 0;
  for (;;) {
    let end = from;
    let used = widthOf(before);
    while (end < pieces.length && used + (widths[end] ?? 0) <= width) used += widths[end++] ?? 0;
    if (end === pieces.length) return [...lines, `${before}${pieces.slice(from).join('')}`];
    // On the first line a label is not left alone.
    const space = lastSpace(pieces, lines.length === 0 ? indent.length : from, end);
    const isAfterWord = pieces.slice(from, space).some((piece) => !isBlank(piece));
    // At least one character moves on, however narrow the screen.
    const next = isAfterWord ? space : Math.max(end, from + 1);
    lines.push(`${before}${pieces.slice(from, next).join('')}`.trimEnd());
    from = next;
    while (isBlank(pieces[from])) from++;
    if (from === pieces.length) return lines;
    before = margin;
  }
}

/** From `end` back to `least`, without it; then 0. */
function lastSpace(pieces: readonly string[], least: number, end: number): number {
  let at = end;
  while (at > least && pieces[at] !== ' ') at--;
  return at > least ? at : 0;
}

function isBlank(piece: string | undefined): boolean {
  return piece?.trim() === '';
}

/** As much of a line as `width` columns hold. */
export function fitted(line: Line, width: number): Line {
  let left = width;
  return line.flatMap(({ text, tone }) => {
    if (left <= 0) return [];
    const shown = cut(text, left);
    left -= widthOf(shown);
    return [{ text: shown, tone }];
  });
}

/** A line as it is written to a terminal. */
export function painted(line: Line, hasColour: boolean): string {
  return line
    .map(({ text, tone }) =>
      tone === undefined || !hasColour || text === '' ? text : styleText(STYLES[tone], text, { validateStream: false }),
    )
    .join('');
}

export function plain(line: Line): string {
  return line.map(({ text }) => text).join('');
}

function startOf(text: string, width: number): string {
  if (PLAIN.test(text)) return text.slice(0, Math.max(0, width));
  let used = 0;
  let end = 0;
  for (const { segment, index } of graphemes.segment(text)) {
    used += stringWidth(segment);
    if (used > width) break;
    end = index + segment.length;
  }
  return text.slice(0, end);
}
