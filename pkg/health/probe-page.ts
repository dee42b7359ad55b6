import type { Checks, CheckResult } from './checks.ts';

/** What probes ask: whether the process lives, whether it is ready; `healthz` is the original's name of the first. */
export type ProbeName = 'livez' | 'healthz' | 'readyz';

type NamedResult = CheckResult & { readonly name: string };

/**
 * The answer of a probe, as kube-apiserver gives it: all checks, or the one that is `only` asked for. A line that begins with `[!]` passes, and
 * needs attention all the same. `verbose` lists them also when
 * they pass; each `exclude` takes one out of the verdict, and is told where there is none of that name and checks are listed.
 */
export function probePage(
  probe: ProbeName,
  checks: Checks,
  { only, query }: { readonly only: string | undefined; readonly query: URLSearchParams },
): { readonly status: 200 | 404 | 503; readonly body: string } {
  const all = checks.run().checks;
  const asked = only === undefined ? all : all.filter(({ name }) => name === only);
  if (asked.length === 0 && only !== undefined) return { status: 404, body: 'no such check\n' };
  const excluded = new Set(query.getAll('exclude'));
  const ok = asked.every((result) => result.ok || excluded.has(result.name));
  const unknown = [...excluded].filter((name) => !asked.some((result) => result.name === name));
  if (ok && !query.has('verbose')) return { status: 200, body: probe === 'healthz' ? 'OK' : 'ok' };
  const lines = [
    ...asked.map((result) => lineOf(result, excluded.has(result.name))),
    ...(unknown.length === 0
      ? []
      : [`warn: some health checks cannot be excluded: no matches for ${namesOf(unknown)}`]),
    `${probe} check ${ok ? 'passed' : 'failed'}`,
  ];
  return { status: ok ? 200 : 503, body: `${lines.join('\n')}\n` };
}

function lineOf({ name, ok, isDegraded = false, detail }: NamedResult, isExcluded: boolean): string {
  const more = detail === undefined ? '' : `: ${detail}`;
  if (isExcluded) return `[+] ${name} excluded: ${ok ? 'ok' : 'failed'}${more}`;
  if (!ok) return `[-] ${name} failed${more}`;
  return isDegraded ? `[!] ${name} degraded${more}` : `[+] ${name} ok${more}`;
}

/** What was asked for may be anything, of any length. */
function namesOf(unknown: readonly string[]): string {
  return unknown
    .map((name) => JSON.stringify(name))
    .join(',')
    .slice(0, 200);
}
