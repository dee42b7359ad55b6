import { sumOf, type BenchRun, type Measurement, type ProcessCost } from './measurement.ts';

/** Column heads, and what stands below them for one scenario. */
const COLUMNS: readonly (readonly [string, (one: Measurement) => string])[] = [
  ['scenario', ({ scenario }) => scenario],
  ['machines', ({ machines }) => String(machines)],
  ['seconds', ({ seconds }) => seconds.toFixed(1)],
  [
    'ceiling',
    ({ seconds, ceilingSeconds }) => (ceilingSeconds === undefined ? '' : `${(seconds / ceilingSeconds).toFixed(1)}×`),
  ],
  ['requests each', (one) => each(one, sumOf(one.requests), 1)],
  ['passes each', (one) => each(one, sumOf(one.passes), 1)],
  ['VMs +/-', ({ vms }) => `${vms.created}/${vms.deleted}`],
  ['needless', ({ vms }) => String(needlessVMs(vms))],
  ['waits > 1 s', ({ lateKeys }) => String(sumOf(lateKeys))],
  ['loop ms', ({ loopDelayMs }) => loopDelayMs.toFixed(0)],
  ['Lease ms', ({ leaseGapMs }) => leaseGapMs.toFixed(0)],
  ['manager CPU ms each', (one) => each(one, 1_000 * cpuOf(one, 'manager'), 1)],
  ['API server CPU ms each', (one) => each(one, 1_000 * (cpuOf(one, 'kube-apiserver') + cpuOf(one, 'etcd')), 1)],
  ['manager MB', ({ processes }) => (processes['manager']?.peakMB ?? 0).toFixed(0)],
  ['driver MB', ({ processes }) => (processes['driver']?.peakMB ?? 0).toFixed(0)],
];

/** VMs beyond those that were needed. */
export function needlessVMs({ created, deleted, neededCreated, neededDeleted }: Measurement['vms']): number {
  return Math.max(0, created - neededCreated) + Math.max(0, deleted - neededDeleted);
}

/** The run as a table, a line a scenario. */
export function tableOf({ measurements }: BenchRun): string {
  const rows = [COLUMNS.map(([head]) => head), ...measurements.map((one) => COLUMNS.map(([, text]) => text(one)))];
  const widths = COLUMNS.map((_, at) => Math.max(...rows.map((row) => row[at]?.length ?? 0)));
  const line = (row: readonly string[]): string =>
    row.map((text, at) => (at === 0 ? text.padEnd(widths[at] ?? 0) : text.padStart(widths[at] ?? 0))).join('  ');
  return rows.map(line).join('\n');
}

/** One scenario with each kind of request and each process. */
export function detailsOf(one: Measurement): string {
  const listed = (counts: Readonly<Record<string, number>>, what: (key: string) => string): string[] =>
    Object.entries(counts)
      .toSorted(([, a], [, b]) => b - a)
      .map(([key, count]) => `  ${String(count).padStart(7)}  ${what(key)} (${each(one, count, 2)} each)`);
  const used = ([name, { cpuSeconds, peakMB, residentMB }]: [string, ProcessCost]): string =>
    `  ${name}: CPU ${cpuSeconds.toFixed(1)} s, peak ${peakMB.toFixed(0)} MB, now ${residentMB.toFixed(0)} MB`;
  return [
    `${one.scenario}, ${one.machines} machines: ${one.seconds.toFixed(1)} s`,
    ...listed(one.requests, (key) => key),
    ...listed(one.passes, (key) => `passes of ${key}`),
    ...listed(one.lateKeys, (key) => `keys of ${key} that waited more than a second`),
    ...Object.entries(one.processes).map(used),
  ].join('\n');
}

/** What changed from an earlier run to a later one, by scenario: ratios, below 1 is less. */
export function comparisonOf(before: BenchRun, after: BenchRun): string {
  const lines = after.measurements.flatMap((now) => {
    const then = before.measurements.find(({ scenario }) => scenario === now.scenario);
    if (then === undefined) return [];
    const ratio = (value: (one: Measurement) => number): string =>
      ratioOf(value(then) / then.machines, value(now) / now.machines);
    const parts = [
      `seconds ${ratio(({ seconds }) => seconds)}`,
      `requests ${ratio(({ requests }) => sumOf(requests))}`,
      `manager CPU ${ratio((one) => cpuOf(one, 'manager'))}`,
      `API server CPU ${ratio((one) => cpuOf(one, 'kube-apiserver') + cpuOf(one, 'etcd'))}`,
    ];
    return [`${now.scenario}: ${parts.join(', ')}`];
  });
  if (lines.length === 0) return 'the two runs have no scenario in common';
  return [`a machine costs, against ${before.at} with ${before.machines} machines:`, ...lines].join('\n');
}

function ratioOf(before: number, after: number): string {
  return before === 0 ? (after === 0 ? '×1.00' : 'new') : `×${(after / before).toFixed(2)}`;
}

function cpuOf({ processes }: Measurement, name: string): number {
  return processes[name]?.cpuSeconds ?? 0;
}

function each({ machines }: Measurement, count: number, digits: number): string {
  return (count / Math.max(1, machines)).toFixed(digits);
}
