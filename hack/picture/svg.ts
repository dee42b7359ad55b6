/** A character on a terminal, as it looks. */
export interface Cell {
  readonly text: string;
  /** Of the palette of eight; undefined for the default. */
  readonly colour?: number;
  readonly isBold: boolean;
  readonly isDim: boolean;
  readonly isInverse: boolean;
}

const CELL = { width: 8.4, height: 18 };
const MARGIN = 14;
const BACKGROUND = '#0d1117';
const FOREGROUND = '#d0d7de';
const PALETTE = ['#484f58', '#ff7b72', '#3fb950', '#d29922', '#58a6ff', '#bc8cff', '#39c5cf', '#d0d7de'];

/** A picture of a screen, with text that can be read and selected. */
export function svgOf(
  lines: readonly (readonly Cell[])[],
  { columns, rows }: { columns: number; rows: number },
): string {
  const [width, height] = [columns * CELL.width + 2 * MARGIN, rows * CELL.height + 2 * MARGIN];
  const drawn = lines.flatMap((cells, row) => runsOf(cells).flatMap((run) => drawnRun(run, row)));
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="machinist top">`,
    `<rect width="100%" height="100%" rx="8" fill="${BACKGROUND}"/>`,
    `<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="14" fill="${FOREGROUND}" style="white-space: pre" xml:space="preserve">`,
    ...drawn,
    '</g>',
    '</svg>',
    '',
  ].join('\n');
}

interface Run {
  readonly column: number;
  readonly cells: Cell[];
}

/** Neighbours that look the same. */
function runsOf(cells: readonly Cell[]): readonly Run[] {
  const runs: Run[] = [];
  for (const [column, cell] of cells.entries()) {
    const last = runs.at(-1);
    if (last !== undefined && styleOf(last.cells[0]) === styleOf(cell)) last.cells.push(cell);
    else runs.push({ column, cells: [cell] });
  }
  return runs;
}

function styleOf(cell: Cell | undefined): string {
  return JSON.stringify([cell?.colour, cell?.isBold, cell?.isDim, cell?.isInverse]);
}

function textOf({ cells }: Run): string {
  return cells.map(({ text }) => (text === '' ? ' ' : text)).join('');
}

function drawnRun(run: Run, row: number): string[] {
  const { column, cells } = run;
  const [{ colour, isBold, isDim, isInverse } = { isBold: false, isDim: false, isInverse: false, colour: undefined }] =
    cells;
  const own = colour === undefined ? FOREGROUND : (PALETTE[colour] ?? FOREGROUND);
  const x = round(MARGIN + column * CELL.width);
  const y = MARGIN + row * CELL.height;
  const width = round(cells.length * CELL.width);
  const style = [
    isInverse ? ` fill="${BACKGROUND}"` : own === FOREGROUND ? '' : ` fill="${own}"`,
    isBold ? ' font-weight="bold"' : '',
    isDim ? ' opacity="0.65"' : '',
  ].join('');
  // Words that are far apart are placed each for itself, because programs collapse spaces.
  const words = [...textOf(run).matchAll(/\S+(?: \S+)*/g)].map(({ 0: text, index }) => {
    const at = round(x + index * CELL.width);
    return `<text x="${at}" y="${y + 14}" textLength="${round(text.length * CELL.width)}"${style}>${escaped(text)}</text>`;
  });
  return isInverse
    ? [`<rect x="${x}" y="${y}" width="${width}" height="${CELL.height}" fill="${own}"/>`, ...words]
    : words;
}

const round = (value: number): number => Math.round(value * 10) / 10;

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
