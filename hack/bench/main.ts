import { readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';

import { applyManifests, parseManifests } from '../control-plane/apply.ts';
import { number, readOptions, text } from '../options.ts';
import { type Bed, type Credentials, CELLS_FLAGS, DRIVER_IMAGE_FLAGS, MANIFEST_FLAGS, startBed } from './bed.ts';
import { describeFigure } from './cells/figures.ts';
import { measureCells } from './cells/run.ts';
import { ceilingOf } from './ceiling.ts';
import type { BenchRun, Measurement } from './measurement.ts';
import { measure, quiet } from './meter.ts';
import { comparisonOf, detailsOf, tableOf } from './report.ts';
import { SCENARIOS, type Scenario } from './scenarios.ts';
import { scale, WORKLOAD } from './workload.ts';

/** What is measured against what the API server can do at most. */
const WITH_CEILING = new Set(['create', 'roll', 'zero']);

const options = readOptions(
  'Measures what fleets cost: seconds, requests, passes, VMs, CPU and memory of each process.',
  {
    machines: number('machines', 500),
    scenarios: text(
      `scenarios, separated by commas:\n${SCENARIOS.map(({ name, description }) => `  ${name}: ${description}`).join('\n')}\n`,
      SCENARIOS.map(({ name }) => name).join(','),
    ),
    credentials: text(
      'credentials of the manager: service-account as in a cluster, or user as in the demo',
      'service-account',
    ),
    json: text('file to write the result to'),
    compare: text('file with an earlier result to compare with'),
    ceiling: number('1: also measure the maximum of the API server; 0: skip it', 1),
    built: text('folder with programs of `npm run build` to run; the sources by default'),
    managerFlags: text('Node flags of the manager; those of the manifests by default', MANIFEST_FLAGS),
    driverFlags: text('Node flags of the driver', DRIVER_IMAGE_FLAGS),
    logs: text('folder for logs; a new one by default'),
    cells: number(
      'measures one process with so many cells instead; of the options above, --json, --built, --manager-flags and --logs apply',
    ),
    cellMachines: number('machines of each cell', 10),
    realTargets: number('of the target clusters of cells, so many are real; the others are simulated', 2),
    churn: number('cells that come and go', 1_000),
    apart: number('cells that are also managed by a process each', 20),
    beside: number('machines that one cell creates and rolls out beside others', 0),
    waits: number('of single machines of those others, so many are measured at least', 50),
    rest: number('seconds for which nothing happens to the cells', 60),
    settle: number('seconds until cells have settled', 45),
  },
);
if (options.cells !== undefined) {
  await measureOfCells(options.cells);
  process.exit(0);
}
const earlier = options.compare === undefined ? undefined : readRun(options.compare);
const chosen = scenariosOf(options.scenarios);

const at = new Date().toISOString();
const measurements: Measurement[] = [];
await using bed = await startBed({
  built: options.built,
  logs: options.logs,
  credentials: credentialsOf(options.credentials),
  managerNodeFlags: flagsOf(options.managerFlags),
  driverNodeFlags: flagsOf(options.driverFlags),
});
await applyManifests(bed.api, parseManifests(WORKLOAD));
await scale(bed.api, 1);
await scale(bed.api, 0);
for (const scenario of chosen) {
  const measurement = await run(bed, scenario, options.machines);
  console.log(detailsOf(measurement));
  measurements.push(measurement);
}
const result: BenchRun = {
  at,
  machines: options.machines,
  node: process.version,
  cpus: availableParallelism(),
  credentials: options.credentials,
  measurements,
};
console.log(`\n${tableOf(result)}`);
if (earlier !== undefined) console.log(`\n${comparisonOf(earlier, result)}`);
if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(result, undefined, 2)}\n`);
console.log(`logs: ${bed.logs}`);

async function measureOfCells(cells: number): Promise<void> {
  const figures = await measureCells({
    cells,
    machines: options.cellMachines,
    realTargets: options.realTargets,
    churn: options.churn,
    apart: options.apart,
    beside: options.beside,
    waits: options.waits,
    restSeconds: options.rest,
    settleSeconds: options.settle,
    built: options.built,
    logs: options.logs,
    nodeFlags: flagsOf(options.managerFlags === MANIFEST_FLAGS ? CELLS_FLAGS : options.managerFlags),
    log: (one) => console.log(describeFigure(one)),
  });
  if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(figures, undefined, 2)}\n`);
}

async function run(on: Bed, scenario: Scenario, count: number): Promise<Measurement> {
  await scale(on.api, scenario.from === 'all' ? count : 0);
  await scenario.prepare?.(on, count);
  await quiet(on);
  const measurement = await measure(on, scenario, count);
  if (options.ceiling === 0 || !WITH_CEILING.has(scenario.name)) return measurement;
  return { ...measurement, ceilingSeconds: await ceilingOf(on.api, measurement) };
}

function flagsOf(flags: string): string[] {
  return flags.split(' ').filter((flag) => flag !== '');
}

function scenariosOf(typed: string): readonly Scenario[] {
  const names = typed.split(',');
  const unknown = names.filter((name) => !SCENARIOS.some((scenario) => scenario.name === name));
  if (unknown.length > 0)
    fail(`--scenarios: there is no ${unknown.join(', ')}; choose from ${SCENARIOS.map(({ name }) => name).join(', ')}`);
  return SCENARIOS.filter(({ name }) => names.includes(name));
}

function credentialsOf(typed: string): Credentials {
  if (typed === 'service-account' || typed === 'user') return typed;
  return fail(`--credentials: ${typed} is neither service-account nor user`);
}

function readRun(file: string): BenchRun {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as BenchRun; // written by --json
  } catch (err) {
    return fail(`--compare: ${file} cannot be read: ${String(err)}`);
  }
}

function fail(message: string): never {
  console.error(`error: ${message}`);
  process.exit(2);
}
