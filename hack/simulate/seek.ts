/*
 * Runs seeds until one shows something that must not be, with the defect that the environment names put into the source. Started by
 * known-defects.ts; what it has found is written to standard output as JSON.
 */
import { DEFECT_VARIABLE, putIn, type SourceChange } from './put-in.ts';

/** What came of it. */
export interface Sought {
  /** How many there were until it was found, and how many of these were run because they may show it. */
  readonly seeds: number;
  readonly runs: number;
  /** Time of the processor. */
  readonly ms: number;
  readonly found?: { readonly seed: number; readonly what: string };
}

const change = JSON.parse(process.env[DEFECT_VARIABLE] ?? '') as SourceChange;
putIn(change);
// Only now, since with it comes what is changed.
const { run } = await import('../../test/simulation/world/run.ts');
const { scriptOf } = await import('../../test/simulation/world/script.ts');
const { KNOWN_DEFECTS } = await import('../../test/simulation/known-defects/defects.ts');
const { guardAgainstHost } = await import('../../test/simulation/world/host-guard.ts');

const [from = 1, most = 1, limitMs = Infinity] = process.argv.slice(2).map(Number);
const keepAlive = setInterval(() => undefined, 60_000);
const started = process.cpuUsage();
guardAgainstHost();
console.log(JSON.stringify(await seek()));
clearInterval(keepAlive);

async function seek(): Promise<Sought> {
  const { world, mayShow = () => true, shows = /./ } = KNOWN_DEFECTS.find(({ name }) => name === change.name) ?? {};
  const isMeant = (finding: string): boolean => shows.test(finding.replace(/^\d+ s: /, ''));
  let runs = 0;
  for (let seed = from; ; seed++) {
    if (!mayShow(scriptOf(seed, { world }))) continue;
    runs += 1;
    const { findings } = await run(seed, { world, endsWithFinding: true });
    const { user, system } = process.cpuUsage(started);
    const sought = { seeds: seed - from + 1, runs, ms: (user + system) / 1_000 };
    const what = findings.find(isMeant);
    if (what !== undefined) return { ...sought, found: { seed, what } };
    if (runs >= most || sought.ms > limitMs) return sought;
  }
}
