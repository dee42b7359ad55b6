import { describe, expect, test } from '@jest/globals';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';

import { silentLogger, type LogFields } from '../log/logger.ts';
import { expose, metricsText, prefersOpenMetrics } from './exposition.ts';
import { metricFailures } from './metric-failures.ts';

const PROMETHEUS =
  'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2';

test.each([
  { accept: '', wanted: false },
  { accept: '*/*', wanted: false },
  { accept: 'text/html,application/xhtml+xml,*/*;q=0.8', wanted: false },
  { accept: 'application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily', wanted: false },
  { accept: 'application/json', wanted: false },
  { accept: 'application/openmetrics-text', wanted: true },
  { accept: 'Application/OpenMetrics-Text; version=1.0.0', wanted: true },
  { accept: 'application/openmetrics-text;q=0', wanted: false },
  { accept: 'application/openmetrics-text;q=oops', wanted: false },
  { accept: 'application/openmetrics-text;q=0.2,text/plain', wanted: false },
  { accept: PROMETHEUS, wanted: true },
])('"$accept" asks for OpenMetrics: $wanted', ({ accept, wanted }) => {
  expect(prefersOpenMetrics(accept)).toBe(wanted);
});

describe('a scrape', () => {
  const registry = new Registry();
  const failures = { failed: () => undefined };
  const registers = [registry];
  new Counter({ name: 'a_total', help: 'Says "a".', labelNames: ['of'], registers }).inc({ of: 'it' }, 2);
  new Counter({ name: 'b_joins', help: 'B.', registers }).inc();
  new Gauge({ name: 'c_items_total', help: 'C.', registers }).set(3);
  new Histogram({ name: 'd_seconds', help: 'D.', buckets: [1], registers }).observe(0.5);

  test('gets the text format 0.0.4', async () => {
    const { type, body } = expose(await metricsText(registry, failures), '*/*');

    expect(type).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(body).toBe(await registry.metrics());
    expect(body).toContain('# TYPE a_total counter\na_total{of="it"} 2\n');
  });

  test('gets OpenMetrics when it asks for it, with the same names of series, however often', async () => {
    expose(await metricsText(registry, failures), PROMETHEUS);
    const { type, body } = expose(await metricsText(registry, failures), PROMETHEUS);

    expect(type).toBe('application/openmetrics-text; version=1.0.0; charset=utf-8');
    expect(body.split('\n')).toEqual([
      '# HELP a Says \\"a\\".',
      '# TYPE a counter',
      'a_total{of="it"} 2',
      '# HELP b_joins B.',
      '# TYPE b_joins unknown',
      'b_joins 1',
      '# HELP c_items_total C.',
      '# TYPE c_items_total gauge',
      'c_items_total 3',
      '# HELP d_seconds D.',
      '# TYPE d_seconds histogram',
      'd_seconds_bucket{le="1"} 1',
      'd_seconds_bucket{le="+Inf"} 1',
      'd_seconds_sum 0.5',
      'd_seconds_count 1',
      '# EOF',
      '',
    ]);
  });
});

test('a metric that cannot be read is left out, and told once in the log and each time in a counter', async () => {
  const registry = new Registry();
  const warned: unknown[] = [];
  const warn = (fields: LogFields, message: string): void => void warned.push([message, fields['metric']]);
  const failures = metricFailures(registry, { ...silentLogger, warn });
  const registers = [registry];
  new Gauge({ name: 'before', help: 'Before.', registers }).set(1);
  void new Gauge({
    name: 'broken',
    help: 'Broken.',
    registers,
    collect() {
      this.set(7);
      throw new Error('no cache');
    },
  });
  new Gauge({ name: 'after', help: 'After.', registers }).set(2);

  for (let scrapes = 0; scrapes < 3; scrapes++) expose(await metricsText(registry, failures));
  const { body } = expose(await metricsText(registry, failures));

  expect(body.split('\n')).toEqual(
    expect.arrayContaining(['before 1', 'after 2', 'machinist_scrape_failures_total{metric="broken"} 3']),
  );
  expect(body).not.toContain('# TYPE broken');
  expect(warned).toEqual([['could not read a metric; omitting it', 'broken']]);
});
