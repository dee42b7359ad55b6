import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';

import { ApiError } from './errors.ts';
import { jsonLines } from './watch.ts';

async function* stream(chunks: readonly Uint8Array[], end?: Error): AsyncGenerator<Uint8Array> {
  yield* chunks;
  if (end !== undefined) throw end;
}

async function collect(lines: AsyncIterable<unknown>): Promise<unknown[]> {
  const values: unknown[] = [];
  for await (const value of lines) values.push(value);
  return values;
}

function cut(bytes: Uint8Array, at: readonly number[]): Uint8Array[] {
  const ends = [...at.map((n) => n % (bytes.length + 1)), bytes.length].toSorted((a, b) => a - b);
  return ends.map((end, i) => bytes.subarray(ends[i - 1] ?? 0, end));
}

describe('jsonLines', () => {
  test('yields the same values however the bytes are cut into chunks', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.jsonValue(), { maxLength: 6 }),
        fc.array(fc.nat(), { maxLength: 8 }),
        async (values, at) => {
          const normal = JSON.parse(JSON.stringify([...values, 'ünïcödé 🜁'])) as unknown[];
          const bytes = Buffer.from(normal.map((value) => `${JSON.stringify(value)}\n`).join(''));

          expect(await collect(jsonLines(stream(cut(bytes, at))))).toEqual(normal);
        },
      ),
    );
  });

  test('drops the rest of a line that a broken connection cut off', async () => {
    const bytes = Buffer.from('{"a":1}\n{"a":');

    expect(await collect(jsonLines(stream([bytes])))).toEqual([{ a: 1 }]);
  });

  test('skips empty lines', async () => {
    expect(await collect(jsonLines(stream([Buffer.from('\n1\n\n2\n')])))).toEqual([1, 2]);
  });

  test('reports a broken stream as Unreachable', async () => {
    const broken = collect(jsonLines(stream([], new Error('reset'))));

    await expect(broken).rejects.toThrow(ApiError);
    await expect(broken).rejects.toMatchObject({ code: 0, reason: 'Unreachable' });
  });

  test('reports an abort by its reason', async () => {
    const reason = new Error('stop');
    const aborted = collect(jsonLines(stream([], new Error('aborted')), AbortSignal.abort(reason)));

    await expect(aborted).rejects.toBe(reason);
  });
});

test('a line without an end is not read any further than the largest object is long', async () => {
  let chunks = 0;
  const chunk = Buffer.alloc(1024 * 1024, 'x');
  async function* endless(): AsyncGenerator<Uint8Array> {
    yield Buffer.from('{"type":"BOOKMARK"}\n{"type":"');
    for (;;) {
      chunks += 1;
      yield await Promise.resolve(chunk);
    }
  }

  await expect(collect(jsonLines(endless()))).rejects.toMatchObject({ reason: 'Unreachable' });
  expect(chunks).toBe(16);
});
