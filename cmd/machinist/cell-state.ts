import type { CellsInProgress, CellState } from '../../pkg/health/work-in-progress.ts';

/** How a namespace is managed, as processes with cells say; undefined: none of them manages it. */
export function cellStateOf(told: readonly CellsInProgress[], namespace: string): CellState | undefined {
  const states = told.flatMap((one) => one.states).filter(({ cell }) => cell === namespace);
  // While it is handed over, two may speak.
  return states.find(({ state }) => state === 'running') ?? states[0];
}

/** Whether a process says that a namespace has Machines and is no cell of it, and none that it is one. */
export function isNoCell(told: readonly CellsInProgress[], namespace: string): boolean {
  return told.some(({ others = [] }) => others.includes(namespace)) && cellStateOf(told, namespace) === undefined;
}

/** What is wrong with a cell, in one line. */
export function troublesText({ troubles }: Pick<CellState, 'troubles'>): string {
  return troubles.map((trouble) => trouble.replace(/\.$/, '')).join('; ');
}
