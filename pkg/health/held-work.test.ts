import { describe, expect, test } from '@jest/globals';

import { FakeClock } from '../../test/fakes/fake-clock.ts';
import { HeldWork, workBegun } from './held-work.ts';

const CATCH_UP = { work: 'machine-controller', waitsFor: 'catch-up', of: 'target' } as const;

describe('held work', () => {
  test('is shown with since when and why until it is released, and makes the process unready', () => {
    const clock = new FakeClock();
    const work = new HeldWork({ clock });
    const check = workBegun(
      () => work.list(),
      () => false,
    );
    const since = new Date(clock.now()).toISOString().replace('.000Z', 'Z');
    const hold = work.hold(CATCH_UP);
    clock.advance(5_000);
    const before = check.check();
    hold.failed(new Error('nodes is forbidden'));
    const failed = check.check();
    hold.release();

    const text = `machine-controller held since ${since}, reading the target cluster after an outage`;
    expect(before).toEqual({ ok: false, detail: text });
    expect(failed).toEqual({ ok: false, detail: `${text} (nodes is forbidden)` });
    expect(check.check()).toEqual({ ok: true });
  });

  test('does not make the process unready while its cluster has an outage or its driver away, and is shown all the same', () => {
    const work = new HeldWork({ clock: new FakeClock() });
    const hasOutage = (cluster: string): boolean => cluster === 'target';
    const check = workBegun(() => work.list(), hasOutage);
    work.hold(CATCH_UP);
    work.hold({ work: 'machine-controller', waitsFor: 'driver', of: 'sim' }).failed('ECONNREFUSED');
    work.hold({ work: 'machine-controller', waitsFor: 'obedience', of: 'aws' }).failed('it has seen token 5');
    const held = check.check();
    work.hold({ work: 'process', waitsFor: 'identity', of: 'control' });

    expect(held).toMatchObject({
      ok: true,
      isDegraded: true,
      detail: expect.stringContaining('reading the target cluster after an outage'),
    });
    expect(held.detail).toMatch(/, connecting to the driver of provider sim \(ECONNREFUSED\);/);
    expect(held.detail).toMatch(
      /, waiting for the driver of provider aws to accept the fencing token \(it has seen token 5\)$/,
    );
    expect(check.check()).toMatchObject({ ok: false, detail: expect.stringContaining('; process held since') });
  });
});
