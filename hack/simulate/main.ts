import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { performance } from 'node:perf_hooks';

import { guardAgainstHost, withHost } from '../../test/simulation/world/host-guard.ts';
import { FAULT_KINDS, type FaultKind } from '../../test/simulation/world/faults.ts';
import { run, type RunResult } from '../../test/simulation/world/run.ts';
import type { ScriptLimits } from '../../test/simulation/world/script.ts';
import { WORLDS, type WorldName, worldNamed } from '../../test/simulation/worlds/worlds.ts';
import { shrink } from '../../test/simulation/world/shrink.ts';
import { flag, number, readOptions, text } from '../options.ts';
import { firstSeedOf, reportOf, worldOf } from './fresh.ts';
import { seekKnownDefects } from './known-defects.ts';
import { secondsToShrink } from './shrinking.ts';

/** Seeds that are run when nobody says how many. */
const SEEDS = 20;
/** In which a known defect has to be found. */
const SEEDS_OF_DEFECTS = 60;
const MINUTE_MS = 60_000;

const options = readOptions(
  'Lets pools of machines live and die in simulated worlds, one for each seed, and looks for broken promises.',
  {
    world: {
      placeholder: 'name',
      description: `the world to simulate: ${Object.keys(WORLDS).join(', ')}; machines by default, with --fresh all in turn`,
      parse: worldNamed,
      otherwise: undefined as WorldName | undefined,
    },
    seed: number('seed to run'),
    from: number('first of several seeds', 1),
    seeds: number('number of seeds; 20 without --minutes'),
    minutes: number('minutes to run seeds for'),
    fresh: flag(
      'run seeds derived from the current commit, in all worlds; findings are reported, but do not fail the run',
    ),
    phases: number('maximum number of phases with faults'),
    steps: number('maximum number of steps of a phase'),
    replicas: number('maximum number of replicas at the start'),
    without: text('kinds of faults to leave out, separated by commas', ''),
    shrink: number(
      'seconds for simplifying a seed with findings; 0: do not simplify it; 60 with --seed and without --trace, otherwise 0',
    ),
    lines: number('number of trace lines to show for a seed with findings', 100),
    trace: text('file to write the trace of --seed to'),
    knownDefects: flag('restore known defects one by one, and report how many seeds it takes to find each'),
    defects: text('with --known-defects: only defects whose names match this regular expression', ''),
  },
);

if (!options.knownDefects) guardAgainstHost();
// A world has no timers that would keep the process alive.
const keepAlive = setInterval(() => undefined, MINUTE_MS);
process.exitCode = (await (options.knownDefects ? knownDefects() : main())) ? 0 : 1;
clearInterval(keepAlive);

async function main(): Promise<boolean> {
  const startedMs = performance.now();
  const startedCPU = process.cpuUsage();
  const { seed, from, minutes, fresh } = options;
  const commit = presentCommit();
  const count = seed === undefined ? (options.seeds ?? (minutes === undefined ? SEEDS : Infinity)) : 1;
  const untilMs = minutes === undefined ? Infinity : startedMs + minutes * MINUTE_MS;
  const first = seed ?? (fresh ? firstSeedOf(commit) : from);
  const results: (RunResult & { readonly world: WorldName })[] = [];
  for (let next = first; next < first + count && performance.now() < untilMs; next++) {
    const world = options.world ?? (fresh ? worldOf(next) : 'machines');
    results.push({ ...(await runOne(next, world)), world });
  }
  // Of the processor: whatever else runs on this host.
  const { user, system } = process.cpuUsage(startedCPU);
  const spentMs = (user + system) / 1_000;
  const virtualMs = results.reduce((sum, result) => sum + result.virtualMs, 0);
  const found = results.filter(({ findings }) => findings.length > 0);
  console.log(
    `${results.length} seeds, ${found.length} with findings; ${((results.length * MINUTE_MS) / spentMs).toFixed(1)} seeds and ` +
      `${(virtualMs / MINUTE_MS / (spentMs / MINUTE_MS) / 60).toFixed(1)} virtual hours a minute of processor`,
  );
  if (!fresh) return found.length === 0;
  for (const line of reportOf(results, found, commit)) console.log(line);
  return true;
}

/** Whether all were found. */
async function knownDefects(): Promise<boolean> {
  const { from, seeds = SEEDS_OF_DEFECTS, minutes = 2, defects } = options;
  const pattern = new RegExp(defects);
  const limits = { from, seeds, ms: minutes * MINUTE_MS };
  const missed = await seekKnownDefects((name) => pattern.test(name), limits, console.log);
  console.log(missed.length === 0 ? 'all were found' : `not found: ${missed.join(', ')}`);
  return missed.length === 0;
}

async function runOne(seed: number, world: WorldName): Promise<RunResult> {
  const startedMs = performance.now();
  const result = await run(seed, { ...asTyped(), world, keepsTrace: options.trace !== undefined });
  const { findings, virtualMs, requests, vmsMade, deaths, digest } = result;
  const verdict = findings.length === 0 ? 'ok' : 'FAILED';
  console.log(
    `seed ${seed} of ${world}: ${verdict}; ${(virtualMs / MINUTE_MS).toFixed(0)} virtual minutes in ` +
      `${((performance.now() - startedMs) / 1_000).toFixed(1)} s, ${requests} requests, ${vmsMade} VMs, ${deaths} deaths; ` +
      `trace ${digest.slice(0, 12)}`,
  );
  const { trace } = options;
  if (trace !== undefined) withHost(() => writeFileSync(trace, `${result.trace.join('\n')}\n`));
  if (findings.length === 0) return result;
  const untilMs = performance.now() + secondsToShrink(options) * 1_000;
  const runWith = (simpler: ScriptLimits): Promise<RunResult> => run(seed, { ...simpler, world });
  const simpler = await shrink(result, { from: asTyped(), runWith, mayGoOn: () => performance.now() < untilMs });
  tell(simpler.result, { ...simpler.options, world });
  return result;
}

/** What the command line says of how seeds are run. */
function asTyped(): ScriptLimits {
  const { phases, steps, replicas, without } = options;
  const kinds = without === '' ? [] : without.split(',');
  const unknown = kinds.find((kind) => !(FAULT_KINDS as readonly string[]).includes(kind));
  if (unknown !== undefined) throw new Error(`${unknown} is no kind of faults: ${FAULT_KINDS.join(', ')}`);
  return { phases, steps, replicas, without: kinds as FaultKind[] };
}

function presentCommit(): string {
  const { stdout } = withHost(() => spawnSync('git', ['rev-parse', '--short=10', 'HEAD'], { encoding: 'utf8' }));
  return stdout.trim();
}

/** What was found, with all that it takes to see it again. */
function tell(
  { seed, findings, trace }: RunResult,
  { world, phases, steps, replicas, without = [] }: ScriptLimits,
): void {
  for (const finding of findings) console.log(`  ${finding}`);
  const limits = Object.entries({ world, phases, steps, replicas, without: without.join(',') || undefined }).flatMap(
    ([name, value]) => (value === undefined ? [] : [` --${name} ${value}`]),
  );
  console.log(
    `  see it again at commit ${presentCommit()}: npm run simulate -- --seed ${seed}${limits.join('')} --trace FILE`,
  );
  if (options.trace === undefined)
    for (const line of trace.slice(Math.max(0, trace.length - options.lines))) console.log(`    ${line.slice(0, 240)}`);
}
