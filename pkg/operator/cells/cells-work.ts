import type { CellState, WorkInProgress } from '../../health/work-in-progress.ts';
import type { CellsConfig } from '../config/cells.ts';
import type { Cells } from './cells.ts';
import { troublesOf } from './checks.ts';
import type { Shards } from './shards.ts';

/** What a process does about the Machines of all its cells, and how these are. Machines and classes are named with their namespace. */
export function cellsWork(
  { running, refused, taken, outdated, clashes }: Pick<Cells, 'running' | 'refused' | 'taken' | 'outdated' | 'clashes'>,
  { held }: Pick<Shards, 'held'>,
  { selector, names, shards }: Pick<CellsConfig, 'selector' | 'names' | 'shards'>,
  others: readonly string[],
): WorkInProgress {
  const works = [...running.values()].flatMap((cell) => cell.workInProgress ?? []);
  const states: readonly CellState[] = [
    ...[...running].map(([cell, one]) => {
      const why = taken.get(cell);
      if (why !== undefined) return { cell, state: 'refused' as const, troubles: [why] };
      const unused = outdated.get(cell);
      const outcome = unused === undefined ? [] : [`${unused} What was valid before stays in use.`];
      const clash = clashes.get(cell);
      const troubles = [...troublesOf(one), ...outcome, ...(clash === undefined ? [] : [clash])];
      return { cell, state: 'running' as const, troubles };
    }),
    ...[...refused].map(([cell, why]) => ({ cell, state: 'refused' as const, troubles: [why] })),
  ];
  return {
    activities: works.flatMap(({ activities }) => activities),
    retries: works.flatMap(({ retries }) => retries),
    exhausted: works.flatMap(({ exhausted }) => exhausted),
    drains: works.flatMap(({ drains }) => drains),
    deadlines: works.flatMap(({ deadlines = [] }) => deadlines),
    cells: {
      selector,
      ...(names && { names }),
      shards,
      held: held.map(({ index }) => index).toSorted((a, b) => a - b),
      states: states.toSorted((a, b) => (a.cell < b.cell ? -1 : 1)),
      others,
    },
  };
}
