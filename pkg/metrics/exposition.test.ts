import { describe, expect, test } from '@jest/globals';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';

import { expose, prefersOpenMetrics } from './exposition.ts';

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
  const registers = [registry];
  new Counter({ name: 'a_total', help: 'Says "a".', labelNames: ['of'], registers }).inc({ of: 'it' }, 2);
  new Counter({ name: 'b_joins', help: 'B.', registers }).inc();
  new Gauge({ name: 'c_items_total', help: 'C.', registers }).set(3);
  new Histogram({ name: 'd_seconds', help: 'D.', buckets: [1], registers }).observe(0.5);

  test('gets the text format 0.0.4', async () => {
    const { type, body } = await expose(registry, '*/*');

    expect(type).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(body).toBe(await registry.metrics());
    expect(body).toContain('# TYPE a_total counter\na_total{of="it"} 2\n');
  });

  test('gets OpenMetrics when it asks for it, with the same names of series, however often', async () => {
    await expose(registry, PROMETHEUS);
    const { type, body } = await expose(registry, PROMETHEUS);

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
