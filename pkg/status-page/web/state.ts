import type { Changes, MachineView, Sections } from '../view.ts';

export interface PageState {
  readonly sections: Sections;
  readonly machines: ReadonlyMap<string, MachineView>;
  /** What the clock of the server is ahead of ours. */
  readonly aheadMs: number;
}

const NO_SECTIONS: Sections = {
  process: { identity: '', program: '', version: '', namespace: '', hasSynced: true, readsMachines: true },
  leaders: [],
  clusters: [],
  drivers: [],
  checks: [],
  alerts: [],
  fleets: [],
  drains: [],
  retries: [],
  exhausted: [],
  history: [],
};

/** Before anything has arrived. */
export const NOTHING_KNOWN: PageState = { sections: NO_SECTIONS, machines: new Map(), aheadMs: 0 };

/**
 * The state after changes that have arrived at `nowMs` of the browser's clock; the first of a connection have everything. A Machine that is as
 * it was stays the same object: its row is not made anew.
 */
export function withChanges(state: PageState, changes: Changes, isFirst: boolean, nowMs: number): PageState {
  const machines = new Map(isFirst ? [] : state.machines);
  for (const key of changes.gone) machines.delete(key);
  for (const machine of changes.machines) machines.set(machine.key, sameOr(state.machines.get(machine.key), machine));
  return {
    sections: { ...state.sections, ...changes.sections },
    machines: changes.machines.length + changes.gone.length === 0 && !isFirst ? state.machines : machines,
    aheadMs: Date.parse(changes.at) - nowMs,
  };
}

function sameOr(known: MachineView | undefined, machine: MachineView): MachineView {
  return known !== undefined && JSON.stringify(known) === JSON.stringify(machine) ? known : machine;
}

/** Whether none of the Leases of the process is its own, so that it does nothing. */
export function isStandby({ leaders }: Sections): boolean {
  return leaders.length > 0 && leaders.every(({ state }) => state !== 'leading' && state !== 'always');
}

/** Names of those who do what this process stands by for. */
export function holdersOf({ leaders }: Sections): readonly string[] {
  return [...new Set(leaders.flatMap(({ holder }) => holder ?? []))];
}
