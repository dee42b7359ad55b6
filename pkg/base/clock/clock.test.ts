import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';

import { fromHTTPDate, fromTimestamp, toMicroTimestamp, toTimestamp } from './clock.ts';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { elapsedSince, instantOf } from './host-clock.ts';
import { SystemClock } from './system-clock.ts';

const EPOCH_MS = Date.parse('2026-03-04T05:06:07.089Z');

describe('timestamps', () => {
  test('metav1.Time has whole seconds', () => {
    expect(toTimestamp(EPOCH_MS)).toBe('2026-03-04T05:06:07Z');
  });

  test('metav1.MicroTime has six digits', () => {
    expect(toMicroTimestamp(EPOCH_MS)).toBe('2026-03-04T05:06:07.089000Z');
  });

  test.each([
    { written: '2026-03-04T05:06:07Z', want: EPOCH_MS - 89 },
    { written: '2026-03-04T05:06:07.089000Z', want: EPOCH_MS },
    { written: '2026-03-04T05:06:07.089123Z', want: EPOCH_MS },
    { written: undefined, want: undefined },
    { written: null, want: undefined },
    { written: '', want: undefined },
    { written: 'yesterday', want: undefined },
    { written: '2026-03-04T07:06:07.089+02:00', want: EPOCH_MS },
    { written: '2024-02-29T00:00:00Z', want: Date.UTC(2024, 1, 29) },
    { written: '0001-01-01T00:00:00Z', want: -62_135_596_800_000 },
    // All of these are times to Date.parse.
    { written: 'garbage 1', want: undefined },
    { written: '1', want: undefined },
    { written: '2026', want: undefined },
    { written: '2026-03-04', want: undefined },
    { written: '2026-03-04T05:06Z', want: undefined },
    { written: '2026-03-04T05:06:07', want: undefined },
    { written: '2026-03-04 05:06:07Z', want: undefined },
    { written: '2026-03-04t05:06:07z', want: undefined },
    { written: ' 2026-03-04T05:06:07Z', want: undefined },
    { written: '2026-03-04T05:06:07Z\n', want: undefined },
    { written: '2026-02-29T05:06:07Z', want: undefined },
    { written: '2026-04-31T05:06:07Z', want: undefined },
    { written: '2100-02-29T05:06:07Z', want: undefined },
    { written: '2026-03-04T24:00:00Z', want: undefined },
    { written: '2026-03-04T05:06:07+99:00', want: undefined },
    { written: 'Wed, 04 Mar 2026 05:06:07 GMT', want: undefined },
    { written: 1_772_600_767_000, want: undefined },
    { written: {}, want: undefined },
  ])('$written is read as $want', ({ written, want }) => {
    expect(fromTimestamp(written)).toBe(want);
  });

  test('what was written is read as it was, whatever time it is', () => {
    fc.assert(
      fc.property(fc.integer({ min: -62_135_596_800, max: 253_402_300_799 }), (seconds) => {
        expect(fromTimestamp(toTimestamp(seconds * 1_000))).toBe(seconds * 1_000);
        expect(fromTimestamp(toMicroTimestamp(seconds * 1_000))).toBe(seconds * 1_000);
      }),
    );
  });

  test.each([
    { header: 'Wed, 04 Mar 2026 05:06:07 GMT', want: EPOCH_MS - 89 },
    { header: undefined, want: undefined },
    { header: '', want: undefined },
    { header: '5', want: undefined },
    { header: 'garbage 1', want: undefined },
    { header: '2026-03-04T05:06:07Z', want: undefined },
    { header: 'Wed, 99 Mar 2026 05:06:07 GMT', want: undefined },
  ])('the HTTP date $header is read as $want', ({ header, want }) => {
    expect(fromHTTPDate(header)).toBe(want);
  });
});

describe('FakeClock', () => {
  test('runs due timers in order of time, each at its own time', () => {
    const clock = new FakeClock();
    const ran: [string, number][] = [];
    clock.schedule(20, () => ran.push(['b', clock.monotonicMs()]));
    clock.schedule(10, () => {
      ran.push(['a', clock.monotonicMs()]);
      clock.schedule(5, () => ran.push(['a2', clock.monotonicMs()]));
    });
    const cancel = clock.schedule(15, () => ran.push(['cancelled', clock.monotonicMs()]));
    cancel();

    clock.advance(30);

    expect(ran).toEqual([
      ['a', 10],
      ['a2', 15],
      ['b', 20],
    ]);
    expect(clock.monotonicMs()).toBe(30);
  });

  test('a sleep ends when its signal is aborted, with the reason', async () => {
    const clock = new FakeClock();
    const abort = new AbortController();
    const slept = clock.sleep(1_000, abort.signal);

    abort.abort(new Error('enough'));

    await expect(slept).rejects.toThrow('enough');
  });

  test('lets a loop of sleeps go round while it is advanced', async () => {
    const clock = new FakeClock();
    const abort = new AbortController();
    const wokeAt: number[] = [];
    const loop = (async () => {
      while (!abort.signal.aborted) {
        await clock.sleep(10, abort.signal);
        wokeAt.push(clock.monotonicMs());
      }
    })();

    await clock.advanceAsync(35);
    abort.abort(new Error('enough'));

    await expect(loop).rejects.toThrow('enough');
    expect(wokeAt).toEqual([10, 20, 30]);
  });
});

describe('elapsed time', () => {
  test.each([
    { what: 'both clocks agree', monotonic: 7, wall: 0, want: 7 },
    { what: 'the host was suspended: only its wall clock moved', monotonic: 7, wall: 60_000, want: 60_007 },
    { what: 'the wall clock was set back', monotonic: 7, wall: -60_000, want: 7 },
  ])('$what', ({ monotonic, wall, want }) => {
    const clock = new FakeClock();
    const then = instantOf(clock);

    clock.advance(monotonic);
    clock.jumpHostWall(wall);

    expect(elapsedSince(then, clock)).toBe(want);
  });
});

describe('SystemClock', () => {
  test('goes on from where it was anchored', () => {
    const clock = new SystemClock();

    clock.reanchor(EPOCH_MS);

    expect(clock.now()).toBeGreaterThanOrEqual(EPOCH_MS);
    expect(clock.now()).toBeLessThan(EPOCH_MS + 60_000);
    expect(clock.hostWallMs()).toBeGreaterThan(EPOCH_MS - 1_000_000_000_000);
  });

  test('calls a scheduled function once, and not when cancelled', async () => {
    const clock = new SystemClock();
    let cancelled = false;
    const cancel = clock.schedule(1, () => {
      cancelled = true;
    });
    cancel();

    await new Promise<void>((resolve) => {
      clock.schedule(5, resolve);
      setTimeout(() => undefined, 50); // the clock's own timers do not keep the process alive
    });

    expect(cancelled).toBe(false);
  });

  test('a sleep rejects with the reason of its signal, before and during', async () => {
    const clock = new SystemClock();
    const abort = new AbortController();
    const slept = clock.sleep(60_000, abort.signal);

    abort.abort(new Error('enough'));

    await expect(slept).rejects.toThrow('enough');
    await expect(clock.sleep(1, abort.signal)).rejects.toThrow('enough');
  });
});
