import { type Check, type CheckResult, DEGRADED } from '../../health/checks.ts';
import { whyHeld } from '../../health/held-work.ts';
import { describeOutage } from '../../kube/gate/outage.ts';
import { CONTROL } from '../../kube/gate/gate.ts';
import type { Cells } from './cells.ts';
import type { RunningCell } from './running-cell.ts';
import type { Shards } from './shards.ts';

/** Longest list of cells that a page shows. */
const SHOWN = 20;

/** Readiness of a process with cells. What is wrong with one of them is shown and fails nothing: a restart would end the others. */
export function cellChecks(cells: Cells, shards: Shards): readonly Check[] {
  return [{ name: 'cells', check: () => cellsResult(cells, shards) }];
}

function cellsResult(cells: Cells, shards: Shards): CheckResult {
  const { running, taken } = cells;
  const wrong = [
    ...(shards.trouble === undefined ? [] : [shards.trouble]),
    ...[...cells.refused].map(([name, why]) => `cell ${name}: ${why}`),
    ...[...cells.clashes].map(([name, why]) => `cell ${name}: ${why}`),
    ...[...cells.outdated].map(([name, why]) => `cell ${name}: ${why}`),
    ...[...running].flatMap(([name, cell]) => {
      const why = taken.get(name);
      return (why === undefined ? troublesOf(cell) : [why]).map((one) => `cell ${name}: ${one}`);
    }),
  ];
  const counts = `${running.size - taken.size} cells running in ${shards.held.length} shards, ${shards.replicas} replicas`;
  const shown = wrong.slice(0, SHOWN);
  const more = wrong.length > SHOWN ? [`and ${wrong.length - SHOWN} more`] : [];
  const detail = [counts, ...shown, ...more].join('; ');
  return wrong.length === 0 ? { ok: true, detail } : { ...DEGRADED, detail };
}

/** What is wrong with a cell that runs. */
export function troublesOf({ outages, held, claimProblems, hasOwnControl }: RunningCell): readonly string[] {
  const outageTexts = outages
    .current()
    .filter(({ cluster }) => hasOwnControl || cluster !== CONTROL)
    .map((outage) => describeOutage(outage));
  // Both Leases of a cell wait for the same.
  const holds = new Set(held.list().map((one) => `work is held: ${whyHeld(one)}`));
  return [...outageTexts, ...holds, ...claimProblems];
}
