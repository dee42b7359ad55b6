import { expect, test } from '@jest/globals';

import { isConformant, lineOf, waitingLine, type Report, reportJSON, reportJUnit, summaryOf } from './report.ts';
import { RULES } from './rules/index.ts';
import type { RuleResult } from './verify.ts';

const rule = (name: string) => ({
  name,
  sentence: 'Repeating it must never make a second VM.',
  run: () => Promise.resolve(),
});
const passed: RuleResult = { rule: rule('one'), outcome: 'passed', ms: 12, left: [] };
const failed: RuleResult = {
  rule: rule('two'),
  outcome: 'failed',
  reason: 'made <b> & "c"\u0000',
  ms: 3,
  left: ['VM x'],
};
const absent: RuleResult = {
  rule: rule('three'),
  outcome: 'not applicable',
  reason: '--bad-class is not set',
  ms: 0,
  left: [],
};
const report = (...results: RuleResult[]): Report => ({
  driver: 'd',
  address: 'unix:///d',
  results,
  isInterrupted: false,
});

test('a rule that failed says why, what the contract says, and what is left', () => {
  expect([passed, failed, absent].map(lineOf)).toEqual([
    'PASS  one                              12 ms',
    [
      'FAIL  two                              made <b> & "c"\u0000',
      '      contract: Repeating it must never make a second VM.',
      '      LEFT: VM x',
    ].join('\n'),
    'n/a   three                            --bad-class is not set',
  ]);
  expect(summaryOf(report(passed, failed, absent)).split('\n')).toEqual([
    'Find these VMs at the provider, by provider ID, by name, or by the tags that the driver sets, and delete them:',
    '      VM x',
    '1 passed, 1 failed, 1 not applicable, 1 VM may remain',
  ]);
  expect(summaryOf(report({ ...failed, left: ['x', 'y'] }))).toMatch(/, 2 VMs may remain$/);
});

test.each([
  {
    isRemoving: false,
    leftMs: 594_600,
    says: '      waiting, for up to 9m55s (--rule-timeout): driver d: CreateMachine …',
  },
  {
    isRemoving: true,
    leftMs: -1,
    says: '      cleaning up, without a retry (--rule-timeout): driver d: CreateMachine …',
  },
])('a rule that takes long says what it waits for: $says', ({ says, ...at }) => {
  expect(waitingLine({ driver: 'd', latest: 'CreateMachine …', ...at })).toBe(says);
});

test('there is room for every name', () => {
  const columns = RULES.map((one) => lineOf({ ...passed, rule: one }).indexOf('  12 ms'));

  expect(new Set(columns).size).toBe(1);
});

test('is JSON', () => {
  expect(JSON.parse(reportJSON(report(passed, failed, absent)))).toEqual({
    driver: 'd',
    address: 'unix:///d',
    passed: 1,
    failed: 1,
    notApplicable: 1,
    left: 1,
    interrupted: false,
    rules: [
      { name: 'one', outcome: 'passed', contract: passed.rule.sentence, ms: 12, left: [] },
      { name: 'two', outcome: 'failed', contract: passed.rule.sentence, reason: failed.reason, ms: 3, left: ['VM x'] },
      {
        name: 'three',
        outcome: 'not applicable',
        contract: passed.rule.sentence,
        reason: absent.reason,
        ms: 0,
        left: [],
      },
    ],
  });
});

test('is XML of JUnit, whatever the driver said', () => {
  expect(reportJUnit(report(passed, failed, absent)).split('\n')).toEqual([
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<testsuite name="machinist driver verify" tests="3" failures="1" skipped="1">',
    '  <testcase classname="d" name="one" time="0.012"/>',
    '  <testcase classname="d" name="two" time="0.003">',
    '    <failure message="made &lt;b&gt; &amp; &quot;c&quot;">contract: Repeating it must never make a second VM.</failure>',
    '    <system-err>VM x</system-err>',
    '  </testcase>',
    '  <testcase classname="d" name="three" time="0">',
    '    <skipped message="--bad-class is not set"/>',
    '  </testcase>',
    '</testsuite>',
  ]);
});

test.each([
  { what: 'every rule that applies', of: report(passed, absent), kept: true },
  { what: 'not one', of: report(passed, { ...failed, left: [] }), kept: false },
  { what: 'every rule, but something is left', of: report({ ...passed, left: ['VM x'] }), kept: false },
  { what: 'every rule until it was interrupted', of: { ...report(passed), isInterrupted: true }, kept: false },
])('a driver that keeps $what is kept to the contract: $kept', ({ of, kept }) => {
  expect(isConformant(of)).toBe(kept);
});

test('a driver that does not answer any more is told of, for people and programs, and has not kept the contract', () => {
  const ended = { ...report(passed), end: 'GetCapabilities was not answered' };

  expect(summaryOf(ended)).toMatch(/^The driver no longer responds: GetCapabilities was not answered\n1 passed/);
  expect(JSON.parse(reportJSON(ended))).toMatchObject({ end: 'GetCapabilities was not answered' });
  expect([isConformant(report(passed)), isConformant(ended)]).toEqual([true, false]);
});
