import type { CellState, WorkInProgress } from '../../../pkg/health/work-in-progress.ts';
import { cellStateOf, isNoCell, troublesText } from '../cell-state.ts';

/** What is wrong with the cell that the namespace of an object is. */
export type DescribedCell = Pick<CellState, 'state' | 'troubles'>;

/** Nothing of a cell that is well, nor where no process said how it is. */
export function describedCell(
  works: readonly WorkInProgress[],
  namespace: string | undefined,
): { readonly cell?: DescribedCell } {
  const told = works.flatMap(({ cells = [] }) => cells);
  if (namespace !== undefined && isNoCell(told, namespace)) {
    return { cell: { state: 'refused', troubles: ['its namespace is not a cell of this manager'] } };
  }
  const { state, troubles = [] } = cellStateOf(told, namespace ?? '') ?? {};
  return state === undefined || troubles.length === 0 ? {} : { cell: { state, troubles } };
}

/** The same as a field. */
export function cellText(cell: DescribedCell | undefined): string | undefined {
  if (cell === undefined) return undefined;
  const why = troublesText(cell);
  return cell.state === 'refused' ? `not managed: ${why}` : why;
}
