import { expect, test } from '@jest/globals';

import type { BenchRun, Measurement } from './measurement.ts';
import { comparisonOf, detailsOf, needlessVMs, tableOf } from './report.ts';

const measurement = (change: Partial<Measurement> = {}): Measurement => ({
  scenario: 'create',
  machines: 10,
  seconds: 5,
  requests: { 'POST machines': 10, 'PATCH machines/status': 20 },
  passes: { machine: 60 },
  lateKeys: { machineset: 3 },
  vms: { created: 11, deleted: 0, neededCreated: 10, neededDeleted: 0 },
  loopDelayMs: 42.4,
  leaseGapMs: 2_100.4,
  processes: {
    manager: { cpuSeconds: 0.2, peakMB: 150.4, residentMB: 140 },
    'kube-apiserver': { cpuSeconds: 0.3, peakMB: 300, residentMB: 300 },
    etcd: { cpuSeconds: 0.1, peakMB: 50, residentMB: 50 },
  },
  ...change,
});
const run = (...measurements: Measurement[]): BenchRun => ({
  at: '2026-01-01T00:00:00Z',
  machines: 10,
  node: 'v24',
  cpus: 2,
  credentials: 'user',
  measurements,
});

test('the table says for each scenario what a machine costs, beside the ceiling and what was needless', () => {
  const [head = '', line = ''] = tableOf(run(measurement({ ceilingSeconds: 2 }))).split('\n');

  expect(head.trim().split(/ {2,}/)).toEqual([
    'scenario',
    'machines',
    'seconds',
    'ceiling',
    'requests each',
    'passes each',
    'VMs +/-',
    'needless',
    'waits > 1 s',
    'loop ms',
    'Lease ms',
    'manager CPU ms each',
    'API server CPU ms each',
    'manager MB',
    'driver MB',
  ]);
  expect(line.trim().split(/ {2,}/)).toEqual([
    'create',
    '10',
    '5.0',
    '2.5×',
    '3.0',
    '6.0',
    '11/0',
    '1',
    '3',
    '42',
    '2100',
    '20.0',
    '40.0',
    '150',
    '0',
  ]);
});

test('details name each kind of request, the most frequent first, and each process', () => {
  expect(
    detailsOf(measurement())
      .split('\n')
      .map((line) => line.trim()),
  ).toEqual([
    'create, 10 machines: 5.0 s',
    '20  PATCH machines/status (2.00 each)',
    '10  POST machines (1.00 each)',
    '60  passes of machine (6.00 each)',
    '3  keys of machineset that waited more than a second (0.30 each)',
    'manager: CPU 0.2 s, peak 150 MB, now 140 MB',
    'kube-apiserver: CPU 0.3 s, peak 300 MB, now 300 MB',
    'etcd: CPU 0.1 s, peak 50 MB, now 50 MB',
  ]);
});

test('a comparison gives ratios by machine, also between runs of different sizes', () => {
  const before = run(measurement(), measurement({ scenario: 'zero' }));
  const after = run(measurement({ machines: 20, seconds: 5, requests: { 'POST machines': 30 } }));

  expect(comparisonOf(before, after).split('\n').slice(1)).toEqual([
    'create: seconds ×0.50, requests ×0.50, manager CPU ×0.50, API server CPU ×0.50',
  ]);
  expect(comparisonOf(before, run(measurement({ scenario: 'roll' })))).toBe('the two runs have no scenario in common');
});

test.each([
  { created: 10, deleted: 0, neededCreated: 10, neededDeleted: 0, needless: 0 },
  { created: 12, deleted: 2, neededCreated: 10, neededDeleted: 0, needless: 4 },
  // Refused creations are no VMs too many.
  { created: 3, deleted: 0, neededCreated: 10, neededDeleted: 0, needless: 0 },
])(
  '$created VMs made and $deleted removed, $neededCreated and $neededDeleted needed: $needless needless',
  ({ needless, ...vms }) => {
    expect(needlessVMs(vms)).toBe(needless);
  },
);
