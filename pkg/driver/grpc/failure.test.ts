import { describe, expect, test } from '@jest/globals';

import { DRIVER_CODES, DriverError } from '../error.ts';
import { fromDuration, fromFailure, toDuration, toFailure } from './failure.ts';
import { Code, Failure } from './gen/machine/driver/v1/driver.ts';

/** What arrives at the other side. */
const overTheWire = (err: unknown): Failure => Failure.decode(Failure.encode(toFailure(err)).finish());

describe('a failure on the wire', () => {
  test('has the numbers of the contract, one for each code', () => {
    const names = Object.keys(Code).map((name) => name.replace('CODE_', '').replaceAll('_', '').toLowerCase());

    expect(names).toEqual(DRIVER_CODES.map((code) => code.toLowerCase()));
    expect(Object.values(Code)).toEqual(DRIVER_CODES.map((_code, number) => number));
  });

  test('keeps everything that the driver said', () => {
    const err = new DriverError('ResourceExhausted', 'out of quota [zone a]', {
      lastKnownState: 'half',
      retryAfterMs: 90_500,
      terminal: true,
      highestToken: 2n ** 63n,
    });

    expect(fromFailure(overTheWire(err))).toMatchObject({
      code: 'ResourceExhausted',
      detail: 'out of quota [zone a]',
      lastKnownState: 'half',
      retryAfterMs: 90_500,
      terminal: true,
      highestToken: 2n ** 63n,
      unanswered: false,
    });
  });

  test('keeps what was known of the VM', () => {
    const failure = overTheWire(new DriverError('Uninitialized', 'not yet'));

    const err = fromFailure(failure, { providerId: 'sim:///1', nodeName: 'm-1', addresses: [], capacity: {} });

    expect(err).toMatchObject({ code: 'Uninitialized', result: { providerID: 'sim:///1', nodeName: 'm-1' } });
  });

  test.each([
    { told: { providerID: 'sim:///1' }, vm: { providerId: 'sim:///1', nodeName: '' } },
    { told: { nodeName: 'm-1' }, vm: { providerId: '', nodeName: 'm-1' } },
  ])('tells $told alone when that is all that was known', ({ told, vm }) => {
    const failure = overTheWire(new DriverError('Uninitialized', 'not yet'));

    expect(fromFailure(failure, { ...vm, addresses: [], capacity: {} }).result).toEqual(told);
  });

  test.each([Number.NaN, Infinity, -Infinity, 1e300])(
    'has no time to wait for when a driver says %p ms',
    (retryAfterMs) => {
      const err = new DriverError('ResourceExhausted', 'too many requests', { retryAfterMs });

      expect(fromFailure(overTheWire(err))).toMatchObject({ code: 'ResourceExhausted', retryAfterMs: undefined });
    },
  );

  test.each([
    {
      what: 'an exception that is no DriverError',
      failure: toFailure(new TypeError('x is undefined')),
      code: 'Internal',
    },
    { what: 'a code that is not known here', failure: { ...toFailure(''), code: 99 as Code }, code: 'Unknown' },
    { what: 'OK in a failure', failure: { ...toFailure(''), code: Code.CODE_OK }, code: 'Unknown' },
  ])('makes $what $code', ({ failure, code }) => {
    expect(fromFailure(failure)).toMatchObject({
      code,
      lastKnownState: undefined,
      highestToken: undefined,
    });
  });

  test.each([0, 1, 999, 1_000, 1_500.5, 600_000])('carries a duration of %d ms', (ms) => {
    expect(fromDuration(toDuration(ms))).toBe(ms);
  });
});
