import { expect, test } from '@jest/globals';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';

import { createRegistry } from '../../base/metrics/registry.ts';
import { MergedMetrics, NAMED_CELLS } from './merged-metrics.ts';

const failures = { failed: () => undefined };
const breathe = (): Promise<void> => Promise.resolve();

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

  const text = await new MergedMetrics().text({ process, cells, failures, breathe });

  expect(text).toContain('a_total{of="it"} 1\n');
  expect(text).toContain('a_total{of="it",cell="ns"} 2\n');
  expect(text).toContain('b_timestamp_seconds{cell="ns"} 2\n');
});

test('beyond so many cells, the series of all others are one: of counts the sum, of states the worst, of moments the first', async () => {
  const cells = new Map(
    Array.from({ length: NAMED_CELLS + 3 }, (_, i) => [`ns-${String(i).padStart(3, '0')}`, registryOf(100 - i)]),
  );

  const text = await new MergedMetrics().text({ process: new Registry(), cells, failures, breathe });

  expect(text.match(/^a_total\{of="it",cell="ns-\d+"\} \d+$/gm)).toHaveLength(NAMED_CELLS);
  expect(text).toContain('a_total{of="it"} 147\n');
  expect(text).toContain('b_timestamp_seconds 48\n');
  expect(text).toContain('c_state 1\n');
});

test('what the process says of itself is not changed', async () => {
  const process = createRegistry();

  const text = await new MergedMetrics().text({ process, cells: new Map([['ns', registryOf(1)]]), failures, breathe });

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

  const text = await new MergedMetrics().text({
    process: new Registry(),
    cells,
    failures: { failed: (name) => void failed.push(name) },
    breathe,
  });

  expect(failed).toEqual(['a_total']);
  expect(text).toContain('a_total{of="it",cell="well"} 1\n');
});

test('the same series of cells without a label is one, in whatever order its labels were named', async () => {
  const counted = (labels: Readonly<Record<string, string>>): Registry => {
    const registry = new Registry();
    new Counter({ name: 'd_total', help: 'D.', labelNames: ['x', 'y'], registers: [registry] }).inc(labels, 1);
    return registry;
  };
  const named = Array.from({ length: NAMED_CELLS }, (_, i): [string, Registry] => [`a-${i}`, new Registry()]);
  const cells = new Map([...named, ['b-1', counted({ x: '1', y: '2' })], ['b-2', counted({ y: '2', x: '1' })]]);

  const text = await new MergedMetrics().text({ process: new Registry(), cells, failures, breathe });

  expect(text.match(/^d_total.*$/gm)).toEqual(['d_total{x="1",y="2"} 2']);
});

test('buckets of histograms are added up, each with its own name', async () => {
  const observed = (): Registry => {
    const registry = new Registry();
    new Histogram({ name: 'e_seconds', help: 'E.', buckets: [1, 2], registers: [registry] }).observe(1.5);
    return registry;
  };
  const names = Array.from({ length: NAMED_CELLS + 2 }, (_, i) => `ns-${String(i).padStart(3, '0')}`);

  const text = await new MergedMetrics().text({
    process: new Registry(),
    cells: new Map(names.map((name) => [name, observed()])),
    failures,
    breathe,
  });

  expect(text.match(/^e_seconds(?!.*cell=).*$/gm)).toEqual([
    'e_seconds_bucket{le="1"} 0',
    'e_seconds_bucket{le="2"} 2',
    'e_seconds_bucket{le="+Inf"} 2',
    'e_seconds_sum 3',
    'e_seconds_count 2',
  ]);
});

test('all series of a name follow its description, which is there once', async () => {
  const cells = new Map([
    ['x', registryOf(1)],
    ['y', registryOf(2)],
  ]);

  const text = await new MergedMetrics().text({ process: registryOf(3), cells, failures, breathe });

  expect(text.split('\n\n')[0]?.split('\n')).toEqual([
    '# HELP a_total A.',
    '# TYPE a_total counter',
    'a_total{of="it"} 3',
    'a_total{of="it",cell="x"} 1',
    'a_total{of="it",cell="y"} 2',
  ]);
});

test('what a process and cells without a label of their own count alike is one series', async () => {
  const names = Array.from({ length: NAMED_CELLS + 2 }, (_, i) => `ns-${String(i).padStart(3, '0')}`);

  const text = await new MergedMetrics().text({
    process: registryOf(5),
    cells: new Map(names.map((name) => [name, registryOf(1)])),
    failures,
    breathe,
  });

  expect(text.match(/^a_total(?!.*cell=).*$/gm)).toEqual(['a_total{of="it"} 7']);
  expect(text.match(/^b_timestamp_seconds(?!.*cell=).*$/gm)).toEqual(['b_timestamp_seconds 1']);
  expect(text.match(/^# TYPE a_total/gm)).toHaveLength(1);
});

test('a cell that ends during a scrape is no failure', async () => {
  const [first, second] = [registryOf(1), registryOf(2)];
  const failed: string[] = [];
  const read = second.getMetricsAsArray();
  second.getMetricsAsArray = () => (second.clear(), read);

  const text = await new MergedMetrics().text({
    process: new Registry(),
    cells: new Map([
      ['a', first],
      ['b', second],
    ]),
    failures: { failed: (name) => void failed.push(name) },
    breathe,
  });

  expect(failed).toEqual([]);
  expect(text).toContain('cell="a"');
});

test('counts of cells without a label never fall: not when one ends, and not when others come that are before it by name', async () => {
  const merged = new MergedMetrics();
  const names = Array.from({ length: NAMED_CELLS + 2 }, (_, i) => `ns-${String(i).padStart(3, '0')}`);
  const cells = new Map(names.map((name) => [name, registryOf(1)]));
  const scrape = async (): Promise<readonly (string | undefined)[]> => {
    const text = await merged.text({ process: new Registry(), cells, failures, breathe });
    return [/^a_total\{of="it"\} (\d+)$/m.exec(text)?.[1], /^b_timestamp_seconds (\d+)$/m.exec(text)?.[1]];
  };
  const end = async (name: string): Promise<void> => {
    await merged.ended(name, cells.get(name) ?? new Registry());
    cells.delete(name);
  };

  expect(await scrape()).toEqual(['2', '1']);
  await end('ns-051');
  expect(await scrape()).toEqual(['2', '1']);
  cells.set('a', registryOf(5));
  expect(await scrape()).toEqual(['7', '1']);
  await end('ns-000');
  expect(await scrape()).toEqual(['7', '1']);
  cells.set('b', registryOf(9));
  expect(await scrape()).toEqual(['7', '1']);
});

test('of series that no cell has any more, nothing is retained', async () => {
  const merged = new MergedMetrics();
  const names = Array.from({ length: NAMED_CELLS + 1 }, (_, i) => `ns-${String(i).padStart(3, '0')}`);
  const cells = new Map(names.map((name) => [name, new Registry()]));
  const last = names.at(-1) ?? '';
  cells.set(last, registryOf(3));
  const scrape = async (): Promise<string> => await merged.text({ process: new Registry(), cells, failures, breathe });

  expect(await scrape()).toContain('a_total{of="it"} 3\n');
  await merged.ended(last, cells.get(last) ?? new Registry());
  cells.delete(last);
  expect(await scrape()).not.toContain('a_total');
  cells.set(last, registryOf(1));
  expect(await scrape()).toContain('a_total{of="it"} 1\n');
});

test('a cell that ends while it is scraped is counted once', async () => {
  const merged = new MergedMetrics();
  const names = Array.from({ length: NAMED_CELLS + 20 }, (_, i) => `ns-${String(i).padStart(3, '0')}`);
  const cells = new Map(names.map((name) => [name, registryOf(1)]));
  const ended: Promise<void>[] = [];
  const text = async (whenRead: () => void): Promise<string | undefined> => {
    const scraped = { process: new Registry(), cells, failures, breathe: async () => whenRead() };
    return /^a_total\{of="it"\} (\d+)$/m.exec(await merged.text(scraped))?.[1];
  };
  const endAll = (): void => {
    for (const name of names.slice(NAMED_CELLS, NAMED_CELLS + 8)) {
      const registry = cells.get(name);
      if (registry !== undefined) ended.push(merged.ended(name, registry));
    }
  };

  expect(await text(() => undefined)).toBe('20');
  expect(await text(endAll)).toBe('20');
  await Promise.all(ended);
  for (const name of names.slice(NAMED_CELLS, NAMED_CELLS + 8)) cells.delete(name);
  expect(await text(() => undefined)).toBe('20');
});
