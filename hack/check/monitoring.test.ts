import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

import { describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';

import { dashboardQueries } from '../../test/env/dashboard.ts';
import { describedMetrics } from '../generate/metrics-reference.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const read = (file: string): string => readFileSync(path.join(ROOT, file), 'utf8');

interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly for: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly runbook_url: string };
}

interface RuleTest {
  readonly name: string;
  readonly input_series: readonly { readonly series: string }[];
  readonly alert_rule_test: readonly { readonly alertname: string; readonly exp_alerts: readonly unknown[] }[];
}

const { groups } = parse(read('deploy/monitoring/alerts.yaml')) as { groups: { rules: Alert[] }[] };
const ALERTS = groups.flatMap(({ rules }) => rules);
const { tests: TESTS } = parse(read('deploy/monitoring/alerts.test.yaml')) as { tests: RuleTest[] };
const pagesIn = (folder: string): string[] => readdirSync(path.join(ROOT, folder)).map((file) => `${folder}/${file}`);
const PAGES = pagesIn('docs/runbooks');
const OPERATIONS = pagesIn('docs/operations');

/** Labels by the name of the metric; histograms also by the names of their series. */
const KNOWN = new Map(
  describedMetrics().flatMap(({ name, type, labelNames = [] }) => {
    const series = type === 'histogram' ? ['_bucket', '_sum', '_count'] : [''];
    return series.map((suffix) => [`${name}${suffix}`, new Set(labelNames)] as const);
  }),
);
/** What Prometheus adds, what it makes of histograms, and what a process with cells adds to the metrics of each. */
const ADDED = ['job', 'instance', 'le', 'cell'];
const METRIC = /\b(?:machinist|mcm|rest_client|process|nodejs)_\w+/g;

/** What a query, or a series, names that no process shows. */
function unknownIn(query: string): string[] {
  const bare = query.replaceAll(/"[^"]*"/g, '""');
  const metrics = [...bare.matchAll(METRIC)].map(([name]) => name);
  const allLabels = new Set(metrics.flatMap((name) => [...(KNOWN.get(name) ?? [])]));
  const matched = [...bare.matchAll(/(\w+)\{([^}]*)\}/g)].flatMap(([, name = '', matchers = '']) => {
    const labels = [...matchers.matchAll(/(\w+)\s*[=!]/g)].map(([, label = '']) => label);
    return labels.filter((label) => !ADDED.includes(label) && KNOWN.get(name)?.has(label) !== true);
  });
  const grouped = [...bare.matchAll(/\b(?:by|on|ignoring|without)\s*\(([^)]+)\)/g)].flatMap(([, labels = '']) =>
    labels.split(',').map((label) => label.trim()),
  );
  return [
    ...metrics.filter((name) => !KNOWN.has(name)),
    ...matched,
    ...grouped.filter((label) => !ADDED.includes(label) && !allLabels.has(label)),
  ];
}

/** `MachinistOrphanVMs` → `docs/runbooks/orphan-vms.md` */
function pageOf(alert: string): string {
  const words = alert.replace(/^Machinist/, '').replaceAll(/(?<=[a-z])(?=[A-Z])/g, '-');
  return `docs/runbooks/${words.toLowerCase()}.md`;
}

test.each([
  { query: 'max by (lease) (machinist_leader) == 0', unknown: [] },
  { query: 'rate(machinist_machine_join_duration_seconds_bucket{le="1",provider=~"a|b"}[5m])', unknown: [] },
  { query: 'machinist_leaders', unknown: ['machinist_leaders'] },
  { query: 'machinist_machine_join_duration_seconds', unknown: ['machinist_machine_join_duration_seconds'] },
  { query: 'machinist_leader{lock="a"}', unknown: ['lock'] },
  { query: 'sum by (lock) (machinist_leader)', unknown: ['lock'] },
])('$query names $unknown that no process shows', ({ query, unknown }) => {
  expect(unknownIn(query)).toEqual(unknown);
});

describe.each(ALERTS)('$alert', (rule) => {
  test('asks for metrics and labels that there are', () => {
    expect(unknownIn(rule.expr)).toEqual([]);
    expect(rule.expr).toMatch(METRIC);
  });

  test('says how bad it is, and has a page that says what it means, what to look at, what to do and when it ends', () => {
    const page = read(pageOf(rule.alert));

    expect(rule.annotations.runbook_url).toBe(pageOf(rule.alert));
    expect(['critical', 'warning']).toContain(rule.labels.severity);
    expect(page).toContain(`Alert \`${rule.alert}\`.`);
    expect(page.split('\n').filter((line) => line.startsWith('## '))).toEqual([
      '## What it means',
      '## What to check first',
      '## What to do',
      '## When it ends',
    ]);
  });

  test('has a page that fits a screen and begins with the commands to paste', () => {
    const page = read(pageOf(rule.alert));

    expect(page).toMatch(/^# .*\n\nAlert `\w+`\.\n\n```sh\n(?:(?:machinist|kubectl) .*\n)+```\n\n## What it means\n/);
    expect(page.split('\n').length).toBeLessThanOrEqual(45);
  });

  test('is tested to fire, and not to fire before', () => {
    const expected = TESTS.flatMap(({ alert_rule_test: looks }) => looks)
      .filter(({ alertname }) => alertname === rule.alert)
      .map(({ exp_alerts: alerts }) => alerts.length > 0);

    expect(new Set(expected)).toEqual(new Set([false, true]));
  });
});

test('there is no page and no test without an alert', () => {
  const names = ALERTS.map(({ alert }) => alert);

  expect(PAGES.toSorted()).toEqual(names.map(pageOf).toSorted());
  const tested = TESTS.flatMap(({ alert_rule_test: looks }) => looks.map(({ alertname }) => alertname));
  expect(tested.filter((name) => !names.includes(name))).toEqual([]);
});

test('what the tests of alerts feed in is what a process shows', () => {
  const series = TESTS.flatMap(({ input_series: inputs }) => inputs.map((input) => input.series));

  expect(series.filter((one) => !one.startsWith('up{')).flatMap(unknownIn)).toEqual([]);
});

test.each([...PAGES, ...OPERATIONS])('%s names metrics that there are', (page) => {
  // Of a histogram a page may name what it is, not only its series.
  const names = describedMetrics().map(({ name }) => name);
  const code = [...read(page).matchAll(/(?<!`)`([^`]+)`(?!`)/g)].map(([, text = '']) => text);

  const unknown = code.filter((text) => text.match(METRIC) !== null).flatMap(unknownIn);
  expect(unknown.filter((name) => !names.includes(name))).toEqual([]);
});

test.each(dashboardQueries({ job: '', cell: '', __rate_interval: '5m' }))(
  'panel "$panel" of the dashboard asks for metrics and labels that there are: $expression',
  ({ expression }) => {
    expect(unknownIn(expression)).toEqual([]);
    expect(expression).not.toContain('$');
  },
);
