import { formatDuration } from '../../apis/duration.ts';
import { shortText } from '../../apis/short-text.ts';
import type { Rule } from './rule.ts';
import type { RuleResult } from './verify.ts';

export interface Report {
  readonly driver: string;
  readonly address: string;
  readonly results: readonly RuleResult[];
  /** It was ended before all rules had been tried. */
  readonly isInterrupted: boolean;
  /** Why no further rule was tried: the driver does not answer any more. */
  readonly end?: string | undefined;
}

const LABELS = { passed: 'PASS', failed: 'FAIL', 'not applicable': 'n/a' } as const;

/** Whether the driver kept every rule that applied, all of them were tried, and nothing was left behind. */
export function isConformant({ results, isInterrupted, end }: Report): boolean {
  return (
    !isInterrupted &&
    end === undefined &&
    results.every(({ outcome, left }) => outcome !== 'failed' && left.length === 0)
  );
}

/** One rule for people: how it ended, and of one that failed why, and what the contract says. */
export function lineOf({ rule, outcome, reason, ms, left }: RuleResult): string {
  const told = outcome === 'passed' ? `${ms} ms` : (reason ?? '');
  const contract = outcome === 'failed' ? [`${INDENT}contract: ${rule.sentence}`] : [];
  const first = `${LABELS[outcome].padEnd(4)}  ${rule.name.padEnd(WIDTH)}  ${told}`;
  return [first, ...contract, ...left.map((one) => `${INDENT}LEFT: ${one}`)].join('\n');
}

/** A rule that begins. */
export function startLine({ name }: Rule): string {
  return `RUN   ${name}`;
}

/** A rule that takes long: what it waits for, and for how long at most. */
export function waitingLine({ driver, latest, isRemoving, leftMs }: RuleWait): string {
  const what = isRemoving ? 'cleaning up' : 'waiting';
  const leftS = Math.round(leftMs / 1_000);
  const howLong = leftS > 0 ? `for up to ${formatDuration(leftS * 1_000)}` : 'without a retry';
  return `${INDENT}${what}, ${howLong} (--rule-timeout): driver ${driver}: ${shortText(latest, LONGEST)}`;
}

export interface RuleWait {
  readonly driver: string;
  readonly latest: string;
  /** The rule has ended, and its VMs are deleted. */
  readonly isRemoving: boolean;
  readonly leftMs: number;
}

/** Longest words of a driver in a line that will be repeated. */
const LONGEST = 500;
/** Room for the longest name of a rule. */
const WIDTH = 31;
const INDENT = ' '.repeat(6);

/** The last lines for people: why it ended early, what may be left and where, and the counts. */
export function summaryOf(report: Report): string {
  const { results, end } = report;
  const left = results.flatMap((one) => one.left);
  return [
    ...(end === undefined ? [] : [`The driver no longer responds: ${end}`]),
    ...(left.length === 0 ? [] : [HOW_TO_FIND, ...left.map((one) => `${INDENT}${one}`)]),
    countsLine(report),
  ].join('\n');
}

const HOW_TO_FIND =
  'Find these VMs at the provider, by provider ID, by name, or by the tags that the driver sets, and delete them:';

function countsLine(report: Report): string {
  const { passed, failed, notApplicable, left } = countsOf(report);
  const ends = report.isInterrupted ? ['interrupted'] : [];
  const leftovers = left === 0 ? [] : [`${left} ${left === 1 ? 'VM' : 'VMs'} may remain`];
  return [`${passed} passed`, `${failed} failed`, `${notApplicable} not applicable`, ...leftovers, ...ends].join(', ');
}

/** All of it for programs. */
export function reportJSON(report: Report): string {
  const { driver, address, results, isInterrupted, end } = report;
  const { passed, failed, notApplicable, left: leftVMs } = countsOf(report);
  const rules = results.map(({ rule, outcome, reason, ms, left }) => ({
    name: rule.name,
    outcome,
    contract: rule.sentence,
    ...(reason === undefined ? {} : { reason }),
    ms,
    left,
  }));
  return JSON.stringify(
    {
      driver,
      address,
      passed,
      failed,
      notApplicable,
      left: leftVMs,
      interrupted: isInterrupted,
      ...(end !== undefined && { end }),
      rules,
    },
    undefined,
    2,
  );
}

/** All of it as JUnit's XML, which most CI systems show. */
export function reportJUnit(report: Report): string {
  const { failed, notApplicable } = countsOf(report);
  const cases = report.results.map(({ rule, outcome, reason = '', ms, left }) => {
    const inner = [
      ...(outcome === 'failed'
        ? [`    <failure message="${xml(reason)}">contract: ${xml(rule.sentence)}</failure>`]
        : []),
      ...(outcome === 'not applicable' ? [`    <skipped message="${xml(reason)}"/>`] : []),
      ...(left.length > 0 ? [`    <system-err>${xml(left.join('\n'))}</system-err>`] : []),
    ];
    const open = `  <testcase classname="${xml(report.driver)}" name="${xml(rule.name)}" time="${ms / 1_000}"`;
    return inner.length === 0 ? `${open}/>` : [`${open}>`, ...inner, '  </testcase>'].join('\n');
  });
  const counts = `tests="${report.results.length}" failures="${failed}" skipped="${notApplicable}"`;
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuite name="machinist driver verify" ${counts}>`,
    ...cases,
    '</testsuite>',
  ].join('\n');
}

function countsOf({ results }: Report): { passed: number; failed: number; notApplicable: number; left: number } {
  const count = (wanted: RuleResult['outcome']): number => results.filter(({ outcome }) => outcome === wanted).length;
  return {
    passed: count('passed'),
    failed: count('failed'),
    notApplicable: count('not applicable'),
    left: results.flatMap(({ left }) => left).length,
  };
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  '\n': '&#10;',
};

/** A driver's words may hold anything; what XML cannot hold at all is left out. */
function xml(text: string): string {
  return text.replaceAll(/[^\P{Cc}\t\n]|[\uFFFE\uFFFF]/gu, '').replaceAll(/[&<>"\n]/g, (sign) => ENTITIES[sign] ?? '');
}
