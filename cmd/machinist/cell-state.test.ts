import { expect, test } from '@jest/globals';

import type { CellsInProgress } from '../../pkg/health/work-in-progress.ts';
import { isNoCell } from './cell-state.ts';

const NAME = 'cell-a';

/** What a process says that manages these namespaces, of which others with Machines are none of its cells. */
function told(cells: readonly string[], others?: readonly string[]): CellsInProgress {
  const states = cells.map((cell) => ({ cell, state: 'running' as const, troubles: [] }));
  return { selector: 'managed', shards: 4, held: [0, 1, 2, 3], states, ...(others && { others }) };
}

test.each([
  { what: 'that a process says is none', processes: [told([], [NAME])], want: true },
  { what: 'of which it does not speak: it may be about to begin', processes: [told([], ['cell-b'])], want: false },
  { what: 'that is managed', processes: [told([NAME], [])], want: false },
  { what: 'that has just lost its label', processes: [told([], [NAME]), told([NAME])], want: false },
  { what: 'of an older process', processes: [told([])], want: false },
  { what: 'of a manager without cells', processes: [], want: false },
])('a namespace $what is no cell: $want', ({ processes, want }) => {
  expect(isNoCell(processes, NAME)).toBe(want);
});
