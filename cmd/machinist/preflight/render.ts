import { paint } from '../../paint.ts';
import { counted } from './findings.ts';

const LABELS = { ok: 'OK', warn: 'WARN', fail: 'FAIL' } as const;
const COLOURS = { ok: 'green', warn: 'yellow', fail: 'red' } as const;

/** One thing that was checked, of whatever command. */
interface CheckedThing {
  readonly check: string;
  readonly status: 'ok' | 'warn' | 'fail';
  readonly detail: string;
  readonly remedy?: string;
}

/** Findings as a table for people, each with its remedy, and a last line that counts them. */
export function renderFindings(
  findings: readonly CheckedThing[],
  { hasColour = false }: { readonly hasColour?: boolean } = {},
): string {
  const width = Math.max(...findings.map(({ check }) => check.length), 0);
  const label = (status: CheckedThing['status']): string => {
    const text = LABELS[status].padEnd(4);
    return hasColour ? paint(COLOURS[status], text) : text;
  };
  const lines = findings.flatMap(({ check, status, detail, remedy }) => [
    `${label(status)}  ${check.padEnd(width)}  ${detail}`,
    ...(remedy === undefined ? [] : [`${' '.repeat(width + 8)}→ ${remedy}`]),
  ]);
  const { passed, warnings, failed } = withCounts(findings);
  return [...lines, `${passed} passed, ${counted(warnings, 'warning', 'warnings')}, ${failed} failed`].join('\n');
}

/** The same for programs. */
export function renderJSON(findings: readonly CheckedThing[]): string {
  return JSON.stringify(withCounts(findings), undefined, 2);
}

export function withCounts<T extends CheckedThing>(
  findings: readonly T[],
): { passed: number; warnings: number; failed: number; findings: readonly T[] } {
  const count = (wanted: CheckedThing['status']): number => findings.filter(({ status }) => status === wanted).length;
  return { passed: count('ok'), warnings: count('warn'), failed: count('fail'), findings };
}
