import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';

import { MINUTE } from '../../../test/durations.ts';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { Expectations } from './expectations.ts';

const none = (): boolean => false;

describe('expectations', () => {
  test('nothing asked for is satisfied', () => {
    const expectations = new Expectations({ clock: new FakeClock() });

    expect(expectations.check('set', none)).toEqual({ kind: 'satisfied' });
  });

  test('wait for a name until the cache shows it', () => {
    const clock = new FakeClock();
    const expectations = new Expectations({ clock });
    expectations.expect('set', 'm-1');
    expectations.expect('set', 'm-2');
    clock.advance(MINUTE);

    const first = expectations.check('set', (name) => name === 'm-1');
    const second = expectations.check('set', (name) => name === 'm-2');

    expect(first).toEqual({ kind: 'waiting', names: ['m-2'], checkInMs: 4 * MINUTE });
    expect(second).toEqual({ kind: 'satisfied' });
  });

  test('are not satisfied again by a later disappearance', () => {
    const expectations = new Expectations({ clock: new FakeClock() });
    expectations.expect('set', 'm-1');
    expectations.check('set', (name) => name === 'm-1');

    expect(expectations.check('set', none)).toEqual({ kind: 'satisfied' });
  });

  test('that are in doubt demand a live look at once', () => {
    const expectations = new Expectations({ clock: new FakeClock() });
    expectations.expect('set', 'm-1');

    expectations.doubt();

    expect(expectations.check('set', none)).toEqual({ kind: 'needsLiveCheck', names: ['m-1'] });
  });

  test('after five minutes demand a live look instead of acting', () => {
    const clock = new FakeClock();
    const expectations = new Expectations({ clock });
    expectations.expect('set', 'm-1');
    clock.advance(4 * MINUTE);
    expectations.expect('set', 'm-2');
    clock.advance(MINUTE);

    const overdue = expectations.check('set', none);
    expectations.settled('set', 'm-1');

    expect(overdue).toEqual({ kind: 'needsLiveCheck', names: ['m-1'] });
    expect(expectations.check('set', none)).toEqual({ kind: 'waiting', names: ['m-2'], checkInMs: 4 * MINUTE });
  });

  test('of a name that was asked for again, and refused, are as old as what was asked for before', () => {
    const clock = new FakeClock();
    const expectations = new Expectations({ clock });
    expectations.expect('set', 'm-1');
    clock.advance(4 * MINUTE);
    const refused = expectations.expect('set', 'm-1');
    refused();
    clock.advance(MINUTE);

    expect(expectations.check('set', none)).toEqual({ kind: 'needsLiveCheck', names: ['m-1'] });
  });

  test('that the cache shows while they are refused stay decided', () => {
    const expectations = new Expectations({ clock: new FakeClock() });
    expectations.expect('set', 'm-1');
    const refused = expectations.expect('set', 'm-1');
    expectations.settled('set', 'm-1');
    refused();

    expect(expectations.check('set', none)).toEqual({ kind: 'satisfied' });
  });

  test('of one owner do not hold another, and go with it', () => {
    const expectations = new Expectations({ clock: new FakeClock() });
    expectations.expect('set', 'm-1');

    expect(expectations.check('other', none)).toEqual({ kind: 'satisfied' });
    expectations.forget('set');
    expect(expectations.check('set', none)).toEqual({ kind: 'satisfied' });
  });

  test('no lapse of time satisfies them', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 1e9 })), (steps) => {
        const clock = new FakeClock();
        const expectations = new Expectations({ clock });
        expectations.expect('set', 'm-1');
        for (const ms of steps) {
          clock.advance(ms);
          expect(expectations.check('set', none).kind).not.toBe('satisfied');
        }
      }),
    );
  });
});
