import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';

import type { LastOperation } from '../../apis/machine/v1alpha1/machine.ts';
import { isSimilar, likeness } from './similar.ts';

const NOW_MS = Date.parse('2026-01-01T01:00:00Z');
const ERROR = 'Cloud provider message - machine codes error: code = [Internal] message = [request 1a2b3c failed]';

function operation(change: Partial<LastOperation>): LastOperation {
  return {
    type: 'Create',
    state: 'Failed',
    errorCode: 'Internal',
    description: ERROR,
    lastUpdateTime: '2026-01-01T00:59:00Z',
    ...change,
  };
}

describe('similar operations', () => {
  test.each([
    { what: 'the same', change: {}, similar: true },
    { what: 'another request id', change: { description: ERROR.replace('1a2b3c', '9x8y7z') }, similar: true },
    { what: 'another beginning', change: { description: `twice: ${ERROR}` }, similar: true },
    { what: 'half of it', change: { description: ERROR.slice(40) }, similar: false },
    { what: 'another text', change: { description: 'quota of 3 exceeded' }, similar: false },
    { what: 'another code', change: { errorCode: 'Aborted' }, similar: false },
    { what: 'another state', change: { state: 'Processing' }, similar: false },
    { what: 'another type', change: { type: 'Delete' }, similar: false },
  ])('$what: $similar', ({ change, similar }) => {
    expect(isSimilar(operation({}), operation(change as Partial<LastOperation>), NOW_MS)).toBe(similar);
  });

  test('may be long: what they begin and end with costs nothing', () => {
    const [left, right] = ['1a2b3c', '9x8y7z'].map((id) => 'a'.repeat(200_000) + id + 'b'.repeat(200_000));

    expect(isSimilar(operation({ description: left ?? '' }), operation({ description: right ?? '' }), NOW_MS)).toBe(
      true,
    );
  });

  test('may differ in everything and be long: the work does not grow with the square of their length', () => {
    const [left, right] = ['ab', 'cd'].map((letters) => letters.repeat(30_000));

    expect(isSimilar(operation({ description: left ?? '' }), operation({ description: right ?? '' }), NOW_MS)).toBe(
      false,
    );
  });

  test('are written again after 30 minutes', () => {
    const old = operation({ lastUpdateTime: '2026-01-01T00:29:59Z' });

    expect(isSimilar(old, operation({}), NOW_MS)).toBe(false);
  });

  test('need a first one', () => {
    expect(isSimilar(undefined, operation({}), NOW_MS)).toBe(false);
  });

  test('count bytes, not characters', () => {
    // 3 of 4 characters are equal, but only 3 of 6 bytes on average.
    const left = operation({ description: 'aaa\u{1F600}' });
    const right = operation({ description: 'aaa' });

    expect(isSimilar(left, right, NOW_MS)).toBe(false);
  });
});

describe('the likeness of two texts', () => {
  test('is what the whole table says', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b', 'é'), maxLength: 40 });

    fc.assert(
      fc.property(text, fc.nat(40), fc.nat(12), text, (a, at, gone, instead) => {
        const b = a.slice(0, at) + instead.slice(0, 12) + a.slice(at + gone);
        const [left, right] = [Buffer.from(a), Buffer.from(b)];
        const limit = ((left.length + right.length) / 2) * 0.25;
        expect(likeness(a, b).isAlike).toBe(a === b || edits(left, right) < limit);
      }),
      { numRuns: 500 },
    );
  });

  test.each([
    { what: 'that differ near both ends', of: ['x', 'y'].map((end) => end + 'abcdefgh'.repeat(124) + end) },
    { what: 'that differ everywhere', of: ['ab', 'ba'].map((letters) => letters.repeat(500)) },
    {
      what: 'of characters that take three bytes',
      of: ['甲', '乙'].map((end) => end + '机器无法创建'.repeat(160) + end),
    },
    { what: 'of which one is longer', of: [`x${'abcd'.repeat(200)}x`, `y${'abcd'.repeat(240)}y`] },
  ])('of texts $what takes no more work than a quarter of the table', ({ of: [a = '', b = ''] }) => {
    expect(likeness(a, b).work).toBeGreaterThan(0);
    expect(likeness(a, b).work).toBeLessThanOrEqual(1_024 * 257);
  });
});

/** The Levenshtein distance, by the book. */
function edits(a: Uint8Array, b: Uint8Array): number {
  let row = Array.from({ length: b.length + 1 }, (_unused, j) => j);
  for (const [i, byte] of a.entries()) {
    const below = [i + 1];
    for (const [j, other] of b.entries()) {
      below.push(Math.min((row[j] ?? 0) + (byte === other ? 0 : 1), (row[j + 1] ?? 0) + 1, (below[j] ?? 0) + 1));
    }
    row = below;
  }
  return row[b.length] ?? 0;
}
