import { cleaned, type Line, padded, type Segment, type Tone, widthOf } from './text.ts';

/** A column of a table. */
export interface Column<Row> {
  readonly title: string;
  readonly value: (row: Row) => string;
  readonly tone?: ((row: Row) => Tone | undefined) | undefined;
  /** It is at least so wide, or left out, and at most. */
  readonly least: number;
  readonly most: number;
  readonly side?: 'left' | 'right';
  /** Left out where not all columns fit, the lowest first; undefined: never. */
  readonly dispensable?: number;
}

const GAP = 2;
/** Columns so narrow are marks. */
const MARK = 2;
/** A column that is always there makes others go only up to this width. */
const LONGEST = 44;

/** A line of titles, and one for each row, none of them wider than `width`. Columns get what they need, the last one what is left. */
export function tableLines<Row>(columns: readonly Column<Row>[], rows: readonly Row[], width: number): readonly Line[] {
  const cells = rows.map((row) => columns.map(({ value }) => cleaned(value(row))));
  const natural = columns.map(({ title, least, most }, i) => {
    const longest = cells.reduce((longestYet, row) => Math.max(longestYet, widthOf(row[i] ?? '')), widthOf(title));
    return Math.max(least, Math.min(longest, Math.max(most, widthOf(title))));
  });
  const measured = columns.map(({ least, most, dispensable }, i) => ({
    least,
    natural: natural[i] ?? least,
    gap: most <= MARK ? 1 : GAP,
    dispensable,
    isOpen: most === Infinity,
  }));
  const shown = columnsThatFit(measured, width);
  const widths = shareOut(
    shown.flatMap((i) => measured[i] ?? []),
    width,
  );
  const lineOf = (texts: readonly string[], tones: (i: number) => Tone | undefined): Line =>
    shown.flatMap((i, position): Segment[] => {
      const isLast = position === shown.length - 1;
      const cell = padded(texts[i] ?? '', widths[position] ?? 0, columns[i]?.side);
      const gap = isLast ? 0 : (measured[i]?.gap ?? GAP);
      return [
        { text: isLast ? cell.trimEnd() : cell, tone: tones(i) },
        ...(gap === 0 ? [] : [{ text: ' '.repeat(gap) }]),
      ];
    });
  return [
    lineOf(
      columns.map(({ title }) => title),
      () => undefined,
    ),
    ...rows.map((row, r) => lineOf(cells[r] ?? [], (i) => columns[i]?.tone?.(row))),
  ];
}

interface Measured {
  readonly least: number;
  readonly natural: number;
  /** Between it and the next one: a mark needs less. */
  readonly gap: number;
  readonly dispensable: number | undefined;
  /** It takes all that is left. */
  readonly isOpen: boolean;
}

/** What a column has before there is anything to share out: one that is always there as much as it needs. */
function wanted({ least, natural, dispensable, isOpen }: Measured): number {
  return dispensable === undefined && !isOpen ? Math.max(least, Math.min(natural, LONGEST)) : least;
}

function columnsThatFit(columns: readonly Measured[], width: number): readonly number[] {
  const shown = columns.map((_column, i) => i);
  const need = (): number => sum(shown.flatMap((i) => columns[i] ?? []).map((one) => wanted(one) + one.gap)) - GAP;
  const order = shown
    .filter((i) => columns[i]?.dispensable !== undefined)
    .toSorted((a, b) => (columns[a]?.dispensable ?? 0) - (columns[b]?.dispensable ?? 0));
  for (const i of order) {
    if (need() <= width) break;
    shown.splice(shown.indexOf(i), 1);
  }
  return shown;
}

/** What is left after everybody has got the least is given to those that are always there, then to the others, and to the open ones last. */
function shareOut(columns: readonly Measured[], width: number): readonly number[] {
  let left = width - sum(columns.map(({ least, gap }) => least + gap)) + GAP;
  const widths = columns.map(({ least }) => least);
  const give = (isMeant: (column: Measured) => boolean): void => {
    for (const [i, column] of columns.entries()) {
      if (!isMeant(column)) continue;
      const more = Math.max(0, Math.min(left, column.natural - (widths[i] ?? 0)));
      left -= more;
      widths[i] = (widths[i] ?? 0) + more;
    }
  };
  give(({ dispensable, isOpen }) => dispensable === undefined && !isOpen);
  give(({ isOpen }) => !isOpen);
  give(() => true);
  return widths;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}
