import { FAULT_KINDS } from './faults.ts';
import type { RunResult } from './run.ts';
import type { ScriptLimits } from './script.ts';

const MOST = { phases: 3, steps: 20, replicas: 8 };

/**
 * Makes a seed that was found wanting with these limits simpler, as long as it shows something of the same kind: fewer phases, machines and kinds of faults, and
 * a shorter trouble. Ends when nothing helps any more, or `mayGoOn` says so.
 */
export async function shrink(
  found: RunResult,
  {
    from = {},
    runWith,
    mayGoOn,
  }: {
    readonly from?: ScriptLimits;
    readonly runWith: (options: ScriptLimits) => Promise<RunResult>;
    readonly mayGoOn: () => boolean;
  },
): Promise<{ readonly options: ScriptLimits; readonly result: RunResult }> {
  const kinds = new Set(found.findings.map(kindOf));
  let best: { options: ScriptLimits; result: RunResult } = { options: from, result: found };
  for (let hasHelped = true; hasHelped;) {
    hasHelped = false;
    for (const options of simplerThan(best.options)) {
      if (!mayGoOn()) return best;
      const result = await runWith(options);
      if (!result.findings.some((finding) => kinds.has(kindOf(finding)))) continue;
      best = { options, result };
      hasHelped = true;
      break;
    }
  }
  return best;
}

/** The most that may be left out comes first. */
function* simplerThan(options: ScriptLimits): Generator<ScriptLimits> {
  const { without = [] } = options;
  for (const name of ['phases', 'steps', 'replicas'] as const) {
    const present = options[name] ?? MOST[name];
    for (const fewer of new Set([1, Math.floor(present / 2), present - 1])) {
      if (fewer >= 1 && fewer < present) yield { ...options, [name]: fewer };
    }
  }
  for (const kind of FAULT_KINDS) if (!without.includes(kind)) yield { ...options, without: [...without, kind] };
}

/** What was found, without the names and numbers of the one case. */
export function kindOf(finding: string): string {
  return finding
    .replace(/^\d+ s: /, '')
    .replaceAll(/\b(pool-|i-|bootstrap-token-)[\w-]+|\d+/g, '#')
    .slice(0, 60);
}
