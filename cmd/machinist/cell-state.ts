import type { CellsInProgress, CellState } from '../../pkg/health/work-in-progress.ts';

/** How a namespace is managed, as processes with cells say; undefined: none of them manages it. */
export function cellStateOf(told: readonly CellsInProgress[], namespace: string): CellState | undefined {
  const states = told.flatMap((one) => one.states).filter(({ cell }) => cell === namespace);
  // While it is handed over, two may speak.
  return states.find(({ state }) => state === 'running') ?? states[0];
}

/** What is wrong with a cell, in one line. */
export function troublesText({ troubles }: Pick<CellState, 'troubles'>): string {
  return troubles.map((trouble) => trouble.replace(/\.$/, '')).join('; ');
}
