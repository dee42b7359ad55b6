import { execFileSync } from 'node:child_process';
import path from 'node:path';

import { number, readOptions, text } from '../options.ts';
import { runHigherLevel } from './higher.ts';
import { MUTATIONS } from './list.ts';
import { levelOf, type Mutation } from './mutation.ts';
import { sampleOf } from './sample.ts';
import { Scratch } from './scratch.ts';
import { runUnitLevel } from './unit.ts';
import { sumUp, type Verdict } from './verdict.ts';

/**
 * `npm run mutations [-- options]`: changes the source in small ways, in a copy, and says which changes no test notices. Exit
 * code 1 when one survives that list/ does not explain. See docs/development/mutations.md.
 */
const root = path.resolve(import.meta.dirname, '../..');

const options = readOptions('Changes the source in small ways, in a copy, and says which changes no test notices.', {
  level: text('unit, integration or faults; all of them otherwise'),
  sample: number('only so many, of the unit level'),
  seed: text('what a sample is chosen by; the present commit otherwise'),
  match: text('only rows whose file or reason contains this', ''),
});

function chosen(): readonly Mutation[] {
  const { level, match, sample } = options;
  const isAsked = (one: Mutation): boolean => `${one.file} ${one.why}`.includes(match);
  const asked = MUTATIONS.filter((one) => isAsked(one) && (level === undefined || levelOf(one) === level));
  if (sample === undefined) return asked;
  const seed = options.seed ?? commit();
  console.log(`# a sample of the unit level: --sample ${sample} --seed ${seed}`);
  const sampled = asked.filter((one) => levelOf(one) === 'unit' && one.survives === undefined);
  return sampleOf(sampled, sample, seed);
}

/** Another sample with each commit, the same again for one commit. */
function commit(): string {
  try {
    return execFileSync('git', ['rev-parse', '--short=12', 'HEAD'], { cwd: root, encoding: 'utf8' }).trim();
  } catch {
    return new Date().toISOString().slice(0, 10); // no checkout of git, only its files
  }
}

function tell({ mutation, kind, detail }: Verdict): void {
  console.log(`${kind.padEnd(8)} ${mutation.file}: ${mutation.why}${detail === '' ? '' : ` [${detail}]`}`);
}

async function main(): Promise<number> {
  const stopping = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stopping.abort());
  const mutations = chosen();
  const [unit, higher] = [true, false].map((is) => mutations.filter((one) => (levelOf(one) === 'unit') === is));
  using scratch = new Scratch(root);
  const verdicts: Verdict[] = [];
  if (unit !== undefined && unit.length > 0)
    verdicts.push(...(await unitVerdicts(scratch.root, unit, stopping.signal)));
  verdicts.push(...(await runHigherLevel(scratch.root, higher ?? [], stopping.signal, tell)));

  const { killed, explained, complaints, unknown } = sumUp(verdicts);
  if (complaints.length + unknown.length > 0) console.log(`\n${[...unknown, ...complaints].join('\n')}`);
  const share = ((100 * killed) / Math.max(1, verdicts.length)).toFixed(1);
  console.log(
    `\n${verdicts.length} mutations: ${killed} killed (${share} %), ${explained} explained, ${unknown.length} without a verdict, ${complaints.length} to look at`,
  );
  // A busy machine is no fault of the tests, which are run for themselves beside a sample.
  const mayBeUnknown = options.sample !== undefined && unknown.length < verdicts.length;
  return verdicts.length > 0 && complaints.length === 0 && (unknown.length === 0 || mayBeUnknown) ? 0 : 1;
}

/** What survives is tried once more: a property that is checked with random values may have missed it. */
async function unitVerdicts(
  scratch: string,
  mutations: readonly Mutation[],
  signal: AbortSignal,
): Promise<readonly Verdict[]> {
  const first = await runUnitLevel(scratch, mutations, signal, tell);
  const survivors = first.filter(({ kind, mutation }) => kind === 'survived' && mutation.survives === undefined);
  if (survivors.length === 0 || signal.aborted) return first;
  console.log(`# once more: ${survivors.length} that survived`);
  const survived = survivors.map(({ mutation }) => mutation);
  const second = await runUnitLevel(scratch, survived, signal, tell);
  return first.map(
    (verdict) => second.find(({ kind, mutation }) => kind === 'killed' && mutation === verdict.mutation) ?? verdict,
  );
}

process.exitCode = await main();
