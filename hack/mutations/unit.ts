import { mkdtempSync } from 'node:fs';
import path from 'node:path';

import { runProjects, type FileResult } from './jest.ts';
import { measureReach, type Reach } from './reach.ts';
import type { Trial } from './trial.ts';
import type { Verdict } from './verdict.ts';

/** How many tests have been tried after each wave: most mutants are noticed by the nearest. */
const WAVES = [1, 4, 64];
/** Jest reads its projects before it begins with the first. Each run of so many goes through all waves. */
const TRIALS_A_RUN = 400;

/** Which tests may notice a change, the likeliest first. */
type Candidates = (trial: Trial) => readonly string[];

/**
 * Tries each trial with the unit tests that run the code which it changes, many in one jest, each as a project of its own, in the copy at
 * `root`. What the time was too short for is `untried`.
 */
export async function runUnitLevel(
  root: string,
  trials: readonly Trial[],
  candidatesOf: Candidates,
  signal: AbortSignal,
  tell: (verdict: Verdict) => void,
): Promise<readonly Verdict[]> {
  const files = [...new Set(trials.map(({ file }) => file))];
  const candidates = new Map(trials.map((trial) => [trial, candidatesOf(trial)]));
  const reach = await measureReach(root, [...new Set([...candidates.values()].flat())], files, signal);
  const level = new UnitLevel(root, signal, tell);
  const reached: Reached[] = [];
  // What was ended before all tests had been run says nothing about what they reach.
  for (const [trial, all] of signal.aborted ? [] : candidates) {
    const tests = testsFor(trial, all, reach);
    if (tests.length > 0) reached.push({ trial, tests });
    else level.end(unreached(trial, all, reach));
  }
  for (let i = 0; i < reached.length; i += TRIALS_A_RUN) await level.run(reached.slice(i, i + TRIALS_A_RUN));
  return trials.map((trial) => level.verdictOn(trial));
}

function testsFor(
  { file, edit, at = edit.start }: Trial,
  candidates: readonly string[],
  reach: Reach,
): readonly string[] {
  return candidates.filter((test) => !reach.failing.has(test) && reach.has(test, file, at));
}

function unreached(trial: Trial, candidates: readonly string[], reach: Reach): Verdict {
  const failing = candidates.find((test) => reach.failing.has(test));
  if (failing === undefined) return { trial, kind: 'unreached', detail: '' };
  const detail = `${failing} fails without any change: ${reach.failing.get(failing) ?? ''}`;
  return { trial, kind: 'broken', detail };
}

/** A trial with the tests that run what it changes. */
interface Reached {
  readonly trial: Trial;
  readonly tests: readonly string[];
}

class UnitLevel {
  readonly #root: string;
  readonly #signal: AbortSignal;
  readonly #tell: (verdict: Verdict) => void;
  readonly #verdicts = new Map<Trial, Verdict>();

  constructor(root: string, signal: AbortSignal, tell: (verdict: Verdict) => void) {
    this.#root = root;
    this.#signal = signal;
    this.#tell = tell;
  }

  end(verdict: Verdict): void {
    this.#verdicts.set(verdict.trial, verdict);
    this.#tell(verdict);
  }

  verdictOn(trial: Trial): Verdict {
    return this.#verdicts.get(trial) ?? { trial, kind: 'untried', detail: '' };
  }

  async run(all: readonly Reached[]): Promise<void> {
    let from = 0;
    for (const to of WAVES) {
      const wave = all
        .filter(({ trial, tests }) => !this.#verdicts.has(trial) && tests.length > from)
        .map(({ trial, tests }) => ({
          trial,
          tests: tests.slice(from, to),
          isLast: tests.length <= to || to === WAVES.at(-1),
        }));
      await this.#runAll(wave);
      from = to;
    }
  }

  /** All of them in one jest, and what is left in another when one without an end has ended it. */
  async #runAll(wave: readonly (Reached & { readonly isLast: boolean })[]): Promise<void> {
    let left = wave;
    while (left.length > 0 && !this.#signal.aborted) {
      const failed = mkdtempSync(path.join(this.#root, '.failed-'));
      const running = left;
      const projects = running.map(({ trial: { file, edit }, tests }, i) => ({
        name: String(i),
        tests,
        change: { file, edit: { start: edit.start, end: edit.end, text: edit.text } },
        environment: { failed: path.join(failed, String(i)) },
      }));
      const ended = new Map<string, FileResult[]>();
      const { endless } = await runProjects(this.#root, projects, this.#signal, (result) => {
        const sofar = [...(ended.get(result.project) ?? []), result];
        ended.set(result.project, sofar);
        const one = running[Number(result.project)];
        if (one !== undefined && sofar.length === one.tests.length) this.#settle(one, sofar);
      });
      for (const project of endless) {
        const trial = running[Number(project)]?.trial;
        if (trial !== undefined) this.end({ trial, kind: 'killed', detail: 'its tests have no end' });
      }
      left = running.filter(({ trial, tests }, i) => {
        return !this.#verdicts.has(trial) && (ended.get(String(i)) ?? []).length < tests.length;
      });
      if (left.length === running.length && !this.#signal.aborted) throw new Error('jest has run no test to its end');
    }
  }

  #settle({ trial, isLast }: Reached & { readonly isLast: boolean }, results: readonly FileResult[]): void {
    const test = results.flatMap(({ failed }) => failed)[0];
    const error = results.find((result) => result.error !== undefined)?.error;
    if (test !== undefined) this.end({ trial, kind: 'killed', detail: test });
    else if (error !== undefined) this.end({ trial, kind: 'killed', detail: error.trim().split('\n').at(-1) ?? '' });
    else if (isLast) this.end({ trial, kind: 'survived', detail: '' });
  }
}
