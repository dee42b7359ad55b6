import { ageOf } from '../../../pkg/fleet/age.ts';
import type { Attention } from '../../../pkg/fleet/attention.ts';
import { type Detail, detailsOf, reasonOf, statusOf } from '../../../pkg/fleet/node-texts.ts';
import type { TreeNode } from '../../../pkg/fleet/tree.ts';
import { paint } from '../../paint.ts';
import { wrapped } from '../../wrapped.ts';

export interface TreeLayout {
  /** Of the terminal; undefined for no limit. */
  readonly columns: number | undefined;
  readonly hasColour: boolean;
  /** Objects of several namespaces are shown, each below its own. */
  readonly allNamespaces: boolean;
}

const HEADER = ['NAME', 'STATUS', 'AGE', 'REASON', 'NODE', 'VM'] as const;
/** Columns that are left out, from the last one on, where they do not fit. */
const DISPENSABLE = 2;
/** A text is not broken into shorter lines. */
const NARROWEST = 30;
const MARKS: Readonly<Record<Attention, string>> = { ok: '', progressing: '· ', attention: '! ' };
const COLOURS = { ok: 'green', progressing: 'yellow', attention: 'red' } as const;

interface Row {
  readonly attention: Attention;
  readonly cells: readonly string[];
  /** What stands before the lines below the row. */
  readonly indent: string;
  readonly details: readonly Detail[];
}

/** The tree as text, a line for each object, below it what holds it up. Ages count to `nowMs`. */
export function renderTree(roots: readonly TreeNode[], nowMs: number, layout: TreeLayout): readonly string[] {
  const rows = layout.allNamespaces ? byNamespace(roots, nowMs) : roots.flatMap((root) => rowsOf(root, nowMs, '', ''));
  const table = [HEADER, ...rows.map(({ cells }) => cells)];
  const widths = HEADER.map((_title, i) => Math.max(...table.map((cells) => cells[i]?.length ?? 0)));
  const shown = columnsThatFit(widths, layout.columns);
  const line = (cells: readonly string[], inColour?: (cell: string) => string): string =>
    shown
      .map((i) => {
        const cell = (cells[i] ?? '').padEnd(widths[i] ?? 0);
        return i === 1 && inColour !== undefined ? inColour(cell) : cell;
      })
      .join('  ')
      .trimEnd();
  const painter = (attention: Attention) => (text: string) =>
    layout.hasColour && text.trim() !== '' ? paint(COLOURS[attention], text) : text;
  return [
    line(HEADER),
    ...rows.flatMap(({ cells, attention, indent, details }) => [
      line(cells, painter(attention)),
      ...details.flatMap((detail) =>
        wrapped(`${MARKS[detail.attention]}${detail.text}`, widthBeside(indent, layout.columns), 2).map(
          (text) => `${indent}${detail.attention === 'attention' ? painter('attention')(text) : text}`,
        ),
      ),
    ]),
  ];
}

function byNamespace(roots: readonly TreeNode[], nowMs: number): Row[] {
  return [...Map.groupBy(roots, ({ namespace }) => namespace)]
    .toSorted(([a], [b]) => a.localeCompare(b))
    .flatMap(([namespace, own]) => [
      { attention: 'ok', cells: [`Namespace/${namespace}`], indent: '', details: [] },
      ...own.flatMap((root, i) => branch(root, nowMs, '', i === own.length - 1)),
    ]);
}

function branch(node: TreeNode, nowMs: number, above: string, isLast: boolean): Row[] {
  return rowsOf(node, nowMs, `${above}${isLast ? '└─' : '├─'}`, `${above}${isLast ? '  ' : '│ '}`);
}

function rowsOf(node: TreeNode, nowMs: number, before: string, below: string): Row[] {
  const { kind, name, revision, created, attention, children } = node;
  const title = kind === 'MachineSet' && revision !== undefined ? `${name} (revision ${revision})` : name;
  const cells = [
    `${before}${kind}/${title}`,
    statusOf(node),
    ageOf(created, nowMs),
    reasonOf(node, nowMs),
    node.node ?? '',
    node.providerID ?? '',
  ];
  return [
    { attention, cells, indent: `${below}${children.length > 0 ? '│ ' : '  '}`, details: detailsOf(node, nowMs) },
    ...children.flatMap((child, i) => branch(child, nowMs, below, i === children.length - 1)),
  ];
}

function columnsThatFit(widths: readonly number[], columns: number | undefined): number[] {
  const all = widths.map((_width, i) => i);
  for (let left = 0; left < DISPENSABLE; left++) {
    const shown = all.slice(0, all.length - left);
    const width = shown.reduce((sum, i) => sum + (widths[i] ?? 0) + 2, -2);
    if (columns === undefined || width <= columns) return shown;
  }
  return all.slice(0, all.length - DISPENSABLE);
}

/** The columns that are left beside the indentation. */
function widthBeside(indent: string, columns: number | undefined): number | undefined {
  return columns === undefined ? undefined : Math.max(columns - indent.length, NARROWEST);
}
