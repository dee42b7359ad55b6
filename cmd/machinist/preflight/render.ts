import { counted, type Finding } from './findings.ts';

const LABELS = { ok: 'OK', warn: 'WARN', fail: 'FAIL' } as const;

/** Findings as a table for people, each with its remedy, and a last line that counts them. */
export function renderFindings(findings: readonly Finding[]): string {
  const width = Math.max(...findings.map(({ check }) => check.length), 0);
  const lines = findings.flatMap(({ check, status, detail, remedy }) => [
    `${LABELS[status].padEnd(4)}  ${check.padEnd(width)}  ${detail}`,
    ...(remedy === undefined ? [] : [`${' '.repeat(width + 8)}→ ${remedy}`]),
  ]);
  const { passed, warnings, failed } = countsOf(findings);
  return [...lines, `${passed} passed, ${counted(warnings, 'warning', 'warnings')}, ${failed} failed`].join('\n');
}

/** The same for programs. */
export function renderJSON(findings: readonly Finding[]): string {
  return JSON.stringify({ ...countsOf(findings), findings }, undefined, 2);
}

function countsOf(findings: readonly Finding[]): { passed: number; warnings: number; failed: number } {
  const count = (wanted: Finding['status']): number => findings.filter(({ status }) => status === wanted).length;
  return { passed: count('ok'), warnings: count('warn'), failed: count('fail') };
}
