import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';

import type { LastOperation } from '../../apis/machine/v1alpha1/machine.ts';
import { isSimilar } from './status.ts';

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
    { what: 'another beginning', change: { description: `twice: ${ERROR}` }, similar: false },
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

  test.each([
    ['providerSpec.color: unknown field', 'providerSpec.size: unknown field'],
    ['VM vm-1 (spec.providerID) belongs to Machine pool-a: correct the field', 'no VM with ID vm-1 (spec.providerID)'],
    ['VM vm-1 belongs to Machine pool-a-x7k2p', 'VM vm-1 belongs to Machine pool-b-x7k2p'],
    ['network net-a not found', 'network net-b not found'],
    ['access denied', 'access is denied'],
  ])('are not of different words: %s, %s', (before, after) => {
    const of = (words: string): LastOperation =>
      operation({
        description: `Cloud provider message - machine codes error: code = [Internal] message = [${words}]`,
      });

    expect(isSimilar(of(before), of(after), NOW_MS)).toBe(false);
    expect(isSimilar(of(after), of(before), NOW_MS)).toBe(false);
  });

  const hex = (length: number) =>
    fc.string({
      unit: fc.constantFrom(...'0 1 2 3 4 5 6 7 8 9 a b c d e f'.split(' ')),
      minLength: length,
      maxLength: length,
    });
  const base62 = fc.string({ unit: fc.constantFrom(...'0 9 a z A Z 5 m Q'.split(' ')), minLength: 20, maxLength: 40 });
  const words = fc.array(fc.constantFrom('server', 'pool-a', 'not', 'ready:', 'quota', 'i-1', '"x"'), { maxLength: 6 });

  test.each<{ what: string; id: fc.Arbitrary<string>; around: readonly [string, string] }>([
    { what: 'a UUID', id: fc.uuid(), around: ['', ''] },
    { what: 'a UUID of OpenStack', id: fc.uuid().map((id) => `req-${id}`), around: ['(HTTP 500) (Request-ID: ', ')'] },
    { what: 'a UUID in capitals', id: fc.uuid().map((id) => id.toUpperCase()), around: ['RequestID: ', ', host'] },
    { what: 'a short hexadecimal id that is named', id: hex(6), around: ['request id ', ''] },
    { what: 'a hexadecimal id', id: hex(16), around: ['trace ', ''] },
    { what: 'a named id of letters only', id: base62, around: ['"requestId": "', '"'] },
    {
      what: 'a time',
      id: fc.date({ min: new Date(0), max: new Date(4e12), noInvalidDate: true }).map((date) => date.toISOString()),
      around: ['at ', ''],
    },
    { what: 'a number', id: fc.nat().map(String), around: ['retry in ', ' s'] },
    { what: 'a duration', id: fc.tuple(fc.nat(), fc.nat()).map(([s, ms]) => `${s}.${ms}s`), around: ['after ', ''] },
  ])(
    'are those that differ by $what, whatever stands around it, and by nothing else',
    ({ id, around: [left, right] }) => {
      fc.assert(
        fc.property(words, words, id, id, (before, after, one, two) => {
          const of = (value: string, more = ''): LastOperation =>
            operation({
              description: `${ERROR} ${before.join(' ')} ${left}${value}${right} ${after.join(' ')}${more}`,
            });
          expect(isSimilar(of(one), of(two), NOW_MS)).toBe(true);
          expect(isSimilar(of(one), of(two, ' otherwise'), NOW_MS)).toBe(false);
        }),
      );
    },
  );
});
