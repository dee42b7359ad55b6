import { expect, test } from '@jest/globals';
import { Counter, Gauge, Registry } from 'prom-client';

import { createRegistry } from '../../base/metrics/registry.ts';
import { mergedMetrics, NAMED_CELLS } from './merged-metrics.ts';

const failures = { failed: () => undefined };

function registryOf(count: number): Registry {
  const registry = new Registry();
  const registers = [registry];
  new Counter({ name: 'a_total', help: 'A.', labelNames: ['of'], registers }).inc({ of: 'it' }, count);
  new Gauge({ name: 'c_state', help: 'C.', registers }).set(1);
  new Gauge({ name: 'b_timestamp_seconds', help: 'B.', registers }).set(count);
  return registry;
}

test('series of cells have a label with its namespace, and those of the process have none', async () => {
  const process = registryOf(1);
  const cells = new Map([['ns', registryOf(2)]]);

  const text = await (await mergedMetrics(process, cells, failures)).metrics();

  expect(text).toContain('a_total{of="it"} 1\n');
  expect(text).toContain('a_total{of="it",cell="ns"} 2\n');
  expect(text).toContain('b_timestamp_seconds{cell="ns"} 2\n');
});

test('beyond so many cells, the series of all others are one: of counts the sum, of states the worst, of moments none', async () => {
  const cells = new Map(
    Array.from({ length: NAMED_CELLS + 3 }, (_, i) => [`ns-${String(i).padStart(3, '0')}`, registryOf(1)]),
  );

  const text = await (await mergedMetrics(new Registry(), cells, failures)).metrics();

  expect(text.match(/^a_total\{of="it",cell="ns-\d+"\} 1$/gm)).toHaveLength(NAMED_CELLS);
  expect(text).toContain('a_total{of="it",cell=""} 3\n');
  expect(text.match(/^b_timestamp_seconds/gm)).toHaveLength(NAMED_CELLS);
  expect(text).toContain('c_state{cell=""} 1\n');
});

test('what the process says of itself is not changed', async () => {
  const process = createRegistry();

  const text = await (await mergedMetrics(process, new Map([['ns', registryOf(1)]]), failures)).metrics();

  expect(text).toMatch(/^process_start_time_seconds \d+$/m);
  expect(text).toMatch(/^nodejs_version_info\{version="v[^}]*\} 1$/m);
});

test('a metric of one cell that cannot be read hides none of the others', async () => {
  const broken = new Registry();
  void new Gauge({
    name: 'a_total',
    help: 'A.',
    registers: [broken],
    collect() {
      throw new Error('no cache');
    },
  });
  const failed: string[] = [];
  const cells = new Map([
    ['broken', broken],
    ['well', registryOf(1)],
  ]);

  const text = await (
    await mergedMetrics(new Registry(), cells, { failed: (name) => void failed.push(name) })
  ).metrics();

  expect(failed).toEqual(['a_total']);
  expect(text).toContain('a_total{of="it",cell="well"} 1\n');
});
