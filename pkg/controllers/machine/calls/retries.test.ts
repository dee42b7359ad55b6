import { describe, expect, test } from '@jest/globals';

import { FakeClock } from '../../../../test/fakes/fake-clock.ts';
import { machine, machineClass } from '../../../../test/builders.ts';
import { DriverError, type DriverCode } from '../../../driver/error.ts';
import type { ResolvedClass } from '../context.ts';
import { Retries, type CallKind } from './retries.ts';

/** A call, and what it is made of. */
interface SentCall {
  readonly machineUID: string;
  readonly call: CallKind;
  readonly fingerprint: string;
  readonly classUID: string;
  readonly classVersion: string;
  readonly isRequested: boolean;
}

const input = (change: Partial<SentCall> = {}): SentCall => ({
  machineUID: 'm-1',
  call: 'create',
  fingerprint: '1/1/x',
  classUID: 'class-1',
  classVersion: '1/x',
  isRequested: false,
  ...change,
});

function resolvedOf({ fingerprint, classUID, classVersion }: SentCall): ResolvedClass {
  const named = machineClass((c) => Object.assign(c.metadata, { uid: classUID }));
  return { machineClass: named, fingerprint, classVersion } as ResolvedClass;
}

/** Calls that are sent, if they were not, before something becomes of them. */
function callsWith(random: () => number) {
  const clock = new FakeClock();
  const retries = new Retries({ clock, resourceExhaustedRetryMs: 600_000, random });
  const args = (made: SentCall) => {
    const annotations = made.isRequested ? { 'machine.sapcloud.io/retry': 'now' } : {};
    const of = machine((m) => Object.assign(m.metadata, { uid: made.machineUID, annotations }));
    return [of, made.call, resolvedOf(made)] as const;
  };
  const sent = (made: SentCall) => {
    const [of, kind, resolved] = args(made);
    retries.sent(of, kind, resolved);
    return [of, kind] as const;
  };
  return {
    clock,
    retries: {
      see: (made: SentCall) => retries.see(resolvedOf(made)),
      sent: (made: SentCall) => void sent(made),
      wasMadeOf: (made: SentCall) => retries.wasMadeOf(...args(made)),
      waitMs: (made: SentCall) => retries.waitMs(...args(made)),
      failureOf: (made: SentCall) => retries.failureOf(...args(made)),
      failuresOf: (made: SentCall) => retries.failuresOf(...args(made)),
      timeoutsOf: (made: SentCall) => retries.timeoutsOf(...args(made)),
      postpone: (made: SentCall, delayMs: number) => retries.postpone(...sent(made), delayMs),
      failed: (made: SentCall, error: DriverError) => retries.failed(...sent(made), error),
      refused: (made: SentCall, error: DriverError) => retries.failed(...sent(made), error, true),
      succeeded: (made: SentCall) => retries.succeeded(...sent(made)),
      restore: (made: SentCall, error: DriverError, agoMs: number) => retries.restore(...args(made), { error, agoMs }),
      held: () => retries.held(),
      heldClasses: () => retries.heldClasses(),
      isExhausted: (classUID: string) => retries.isExhausted(classUID),
      forget: (machineUID: string) => retries.forget(machineUID),
    },
  };
}

const start = () => callsWith(() => 1);

describe('repeating a failed call', () => {
  test('waits twice as long each time, up to the wait of its code', () => {
    const { clock, retries } = start();
    const waits = [1, 2, 3, 4, 5, 6, 7].map(() => {
      retries.failed(input(), new DriverError('Internal', 'x'));
      const waitMs = retries.waitMs(input());
      clock.advance(waitMs);
      return waitMs;
    });

    expect(waits).toEqual([5_000, 10_000, 20_000, 40_000, 80_000, 160_000, 180_000]);
  });

  describe('to delete a VM', () => {
    const deletion = input({ call: 'delete' });
    /** Waits after each of so many failures; another VM of `others` was deleted `agoMs` before each. */
    function waitsOf(count: number, others: SentCall | undefined, agoMs = 0, code: DriverCode = 'Internal'): number[] {
      const { clock, retries } = start();
      return Array.from({ length: count }, () => {
        if (others !== undefined) retries.succeeded(others);
        clock.advance(agoMs);
        retries.failed(deletion, new DriverError(code, 'x'));
        const waitMs = retries.waitMs(deletion);
        clock.advance(waitMs);
        return waitMs;
      });
    }
    const other = input({ call: 'delete', machineUID: 'm-2' });
    const ALONE = [5_000, 10_000, 20_000, 40_000, 60_000];

    test.each([
      { what: 'no other is deleted', others: undefined, agoMs: 0, waits: ALONE },
      { what: 'others are', others: other, agoMs: 59_999, waits: [5_000, 10_000, 10_000, 10_000, 10_000] },
      { what: 'others were a minute ago', others: other, agoMs: 60_000, waits: ALONE },
      { what: 'others of another class are', others: { ...other, classUID: 'class-2' }, agoMs: 0, waits: ALONE },
      { what: 'others are created', others: { ...other, call: 'create' } as const, agoMs: 0, waits: ALONE },
    ])('waits while $what: $waits', ({ others, agoMs, waits }) => {
      expect(waitsOf(5, others, agoMs)).toEqual(waits);
    });

    test('waits as long as its code says when it has failed too often for bad luck', () => {
      expect(waitsOf(10, other).slice(6)).toEqual([10_000, 10_000, 60_000, 60_000]);
    });

    test('never waits longer because others are deleted', () => {
      expect(waitsOf(3, other, 0, 'Unavailable')).toEqual([5_000, 5_000, 5_000]);
    });
  });

  test('counts answers that cannot be true in a row, which were answers at first, and begins anew with a real failure', () => {
    const { clock, retries } = start();
    const error = new DriverError('Internal', 'x');
    const waits = [1, 2, 3].map(() => {
      retries.succeeded(input());
      const meanwhile = [
        retries.failuresOf(input()),
        retries.waitMs(input()),
        retries.failureOf(input()),
        retries.held(),
      ];
      expect(meanwhile).toEqual([0, 0, undefined, []]);
      retries.refused(input(), error);
      const waitMs = retries.waitMs(input());
      expect(retries.held()).toHaveLength(1);
      clock.advance(waitMs);
      return waitMs;
    });
    retries.succeeded(input());
    retries.failed(input(), error);

    expect([...waits, retries.waitMs(input())]).toEqual([5_000, 10_000, 20_000, 5_000]);
  });

  test('that was answered takes over what another process has recorded since', () => {
    const { retries } = start();
    retries.failed(input(), new DriverError('Internal', 'x'));
    retries.succeeded(input());

    retries.restore(input(), new DriverError('Internal', 'x'), 1_000);

    expect(retries.waitMs(input())).toBe(4_000);
  });

  test('counts how often in a row it had no answer in its time', () => {
    const { retries } = start();
    const late = new DriverError('Unavailable', 'x', { unanswered: true, timedOut: true });
    const counts = [late, late, new DriverError('Internal', 'x'), late].map((error) => {
      retries.failed(input(), error);
      retries.postpone(input(), 1);
      return retries.timeoutsOf(input());
    });

    expect(counts).toEqual([1, 2, 0, 1]);
  });

  test('is held, and told with its class, until it may be made', () => {
    const { clock, retries } = start();
    retries.failed(input(), new DriverError('Internal', 'x'));
    retries.postpone(input({ machineUID: 'm-2' }), 60_000);
    const held = retries.held();
    clock.advance(5_000);

    const startedMs = clock.monotonicMs() - 5_000;
    expect(held).toEqual([
      {
        machineUID: 'm-1',
        call: 'create',
        classUID: 'class-1',
        failures: 1,
        error: new DriverError('Internal', 'x'),
        sinceMs: startedMs,
        notBeforeMs: clock.monotonicMs(),
      },
    ]);
    expect(retries.held()).toEqual([]);
    expect(retries.isExhausted('class-1')).toBe(false);
  });

  test('for want of something that its class shares shows on the class, until a machine of it gets a VM', () => {
    const { clock, retries } = start();
    const error = new DriverError('ResourceExhausted', 'x');
    retries.failed(input(), error);
    const held = retries.heldClasses();
    const startedMs = clock.monotonicMs();
    clock.advance(600_000);
    const before = retries.isExhausted('class-1');
    const open = retries.heldClasses();
    retries.succeeded(input({ machineUID: 'm-2' }));

    expect(held).toEqual([{ classUID: 'class-1', failures: 1, error, notBeforeMs: startedMs + 15_000 }]);
    expect([before, open]).toEqual([true, []]);
    expect(retries.isExhausted('class-1')).toBe(false);
  });

  test('starts over after a success', () => {
    const { retries } = start();
    retries.failed(input(), new DriverError('Internal', 'x'));
    retries.failed(input(), new DriverError('Internal', 'x'));
    retries.succeeded(input());

    expect(retries.waitMs(input())).toBe(0);
    retries.failed(input(), new DriverError('Internal', 'x'));
    expect(retries.waitMs(input())).toBe(5_000);
  });

  test('does not wait when the input has changed', () => {
    const { retries } = start();
    retries.failed(input(), new DriverError('InvalidArgument', 'no such image'));

    expect(retries.waitMs(input({ fingerprint: '2/1/x' }))).toBe(0);
    expect(retries.failureOf(input({ fingerprint: '2/1/x' }))).toBeUndefined();
  });

  test('ends as what it was made of when it was sent, whatever it would be made of by then', () => {
    const { retries } = start();
    const changed = input({ fingerprint: '2/1/x' });
    retries.sent(input());

    expect(retries.failed(input(), new DriverError('Internal', 'x'))).toEqual({ failures: 1, forMs: 0, waitMs: 5_000 });
    expect([retries.waitMs(input()), retries.waitMs(changed)]).toEqual([5_000, 0]);
    expect([retries.wasMadeOf(input()), retries.wasMadeOf(changed)]).toEqual([true, false]);
  });

  test('tells for how long it has failed', () => {
    const { clock, retries } = start();
    retries.failed(input(), new DriverError('Internal', 'x'));
    clock.advance(5_000);

    expect(retries.failed(input(), new DriverError('Internal', 'x'))).toEqual({
      failures: 2,
      forMs: 5_000,
      waitMs: 10_000,
    });
  });

  test('that is sent again, made of something else, waits for nothing that another process has recorded before', () => {
    const { retries } = start();
    const changed = input({ fingerprint: '2/1/x' });
    retries.failed(input(), new DriverError('Internal', 'x'));
    retries.sent(changed);

    retries.restore(changed, new DriverError('Internal', 'x'), 0);

    expect(retries.waitMs(changed)).toBe(0);
  });

  test('of which nothing is known any more, because its machine is gone, has nothing to wait for', () => {
    const clock = new FakeClock();
    const retries = new Retries({ clock, resourceExhaustedRetryMs: 600_000, random: () => 1 });
    const call = [machine(), 'create'] as const;

    retries.succeeded(...call);
    retries.postpone(...call, 1_000);

    expect(retries.failed(...call, new DriverError('Internal', 'x'))).toEqual({ failures: 1, forMs: 0, waitMs: 0 });
    expect(retries.waitMs(...call, resolvedOf(input()))).toBe(0);
  });

  test('comes no sooner than the provider asked for', () => {
    const { retries } = start();
    retries.failed(input(), new DriverError('Unavailable', 'x', { retryAfterMs: 42_000 }));

    expect(retries.waitMs(input())).toBe(42_000);
  });

  test('goes on, rarely, although the driver says it is of no use', () => {
    const { retries } = start();
    retries.failed(input(), new DriverError('Internal', 'x', { terminal: true }));

    expect(retries.waitMs(input())).toBe(600_000);
  });

  test('can be postponed, which is no failure', () => {
    const { retries } = start();
    retries.postpone(input(), 3_000);

    expect(retries.waitMs(input())).toBe(3_000);
    expect(retries.failureOf(input())).toBeUndefined();
    retries.failed(input(), new DriverError('Internal', 'x'));
    expect(retries.waitMs(input())).toBe(5_000);
  });

  test('keeps the calls of one machine apart', () => {
    const { retries } = start();
    retries.failed(input(), new DriverError('Internal', 'x'));

    expect(retries.waitMs(input({ call: 'delete' }))).toBe(0);
    expect(retries.waitMs(input({ machineUID: 'm-2' }))).toBe(0);
  });

  test('takes over what another process has recorded', () => {
    const { retries } = start();
    retries.restore(input(), new DriverError('ResourceExhausted', 'no quota'), 4_000);

    expect(retries.waitMs(input())).toBe(11_000);
    expect(retries.failureOf(input())).toBeUndefined();
  });

  test('knows better than what was recorded', () => {
    const { clock, retries } = start();
    retries.failed(input(), new DriverError('Internal', 'x'));
    clock.advance(5_000);
    retries.restore(input(), new DriverError('Internal', 'x'), 0);

    expect(retries.waitMs(input())).toBe(0);
  });
});

/** Uniform in [0, 1), by seed. */
function mulberry32(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/**
 * How long it takes until all machines have a VM if a share of the creations, by seed, is answered with ResourceExhausted. `atATime`: how many
 * of those that may try do so before the answers of the others are known.
 */
function timeToCreate(machines: number, share: number, seed: number, atATime = Infinity): number {
  const random = mulberry32(seed);
  const { clock, retries } = callsWith(random);
  const waiting = new Set(Array.from({ length: machines }, (_unused, i) => String(i)));
  const startedMs = clock.monotonicMs();
  while (waiting.size > 0) {
    const mayTry = [...waiting].filter((machineUID) => retries.waitMs(input({ machineUID })) === 0);
    const asked = mayTry.slice(0, atATime);
    clock.advance(200);
    for (const machineUID of asked) {
      if (random() < share) {
        retries.failed(input({ machineUID }), new DriverError('ResourceExhausted', 'too many requests'));
        continue;
      }
      retries.succeeded(input({ machineUID }));
      waiting.delete(machineUID);
    }
  }
  return clock.monotonicMs() - startedMs;
}

describe('ResourceExhausted', () => {
  /** How long others may try after the first that failed again. */
  const TRYING_MS = 2_000;
  const exhausted = new DriverError('ResourceExhausted', 'no quota');
  const other = input({ machineUID: 'm-2' });

  test('makes all machines of the class wait, and tells them why', () => {
    const { retries } = start();
    retries.failed(input(), exhausted);

    expect(retries.waitMs(other)).toBe(15_000);
    expect(retries.failureOf(other)).toEqual({ error: exhausted, isOwn: false, forMs: 0 });
    expect(retries.failureOf(input())).toEqual({ error: exhausted, isOwn: true, forMs: 0 });
    expect(retries.waitMs(input({ machineUID: 'm-3', classUID: 'class-2' }))).toBe(0);
    expect(retries.waitMs(input({ machineUID: 'm-2', call: 'delete' }))).toBe(0);
  });

  test('counts calls that were under way together as one', () => {
    const { retries } = start();
    for (const machineUID of ['m-1', 'm-2', 'm-3']) retries.failed(input({ machineUID }), exhausted);

    expect(retries.waitMs(input({ machineUID: 'm-4' }))).toBe(15_000);
  });

  test('doubles with each try that fails after the wait', () => {
    const { clock, retries } = start();
    retries.failed(input(), exhausted);
    clock.advance(15_000);
    retries.failed(other, exhausted);
    clock.advance(TRYING_MS);

    expect(retries.waitMs(input({ machineUID: 'm-3' }))).toBe(30_000 - TRYING_MS);
  });

  test('lets others try after a wait, as one machine that has bad luck does not speak for its class', () => {
    const { clock, retries } = start();
    retries.failed(input(), exhausted);
    clock.advance(15_000);
    retries.failed(other, exhausted);

    expect(retries.waitMs(other)).toBe(30_000);
    expect(retries.waitMs(input({ machineUID: 'm-3' }))).toBe(0);
    clock.advance(TRYING_MS - 1);
    expect(retries.waitMs(input({ machineUID: 'm-3' }))).toBe(0);
    clock.advance(1);
    expect(retries.waitMs(input({ machineUID: 'm-3' }))).toBe(30_000 - TRYING_MS);
  });

  test('lets no more than eight machines try in vain after a wait', () => {
    const { clock, retries } = start();
    retries.failed(input(), exhausted);
    clock.advance(15_000);
    const failed = Array.from({ length: 7 }, (_unused, i) => `n-${i}`);
    for (const machineUID of failed) retries.failed(input({ machineUID }), exhausted);

    const before = retries.waitMs(other);
    retries.failed(input({ machineUID: 'n-8' }), exhausted);

    expect(before).toBe(0);
    expect(retries.waitMs(other)).toBe(30_000);
  });

  test('that another process has recorded makes all machines of the class wait for the rest of the time', () => {
    const { clock, retries } = start();
    retries.restore(input(), exhausted, 4_000);

    expect(retries.waitMs(other)).toBe(11_000);
    expect(retries.failureOf(other)).toEqual({ error: exhausted, isOwn: false, forMs: 0 });
    clock.advance(11_000);
    expect(retries.waitMs(other)).toBe(0);
  });

  test('that another process has recorded long ago means nothing any more', () => {
    const { retries } = start();
    retries.restore(input(), exhausted, 60_000);

    expect(retries.waitMs(other)).toBe(0);
  });

  test('lets a machine through, once, whose retry was requested', () => {
    const { clock, retries } = start();
    retries.failed(input(), exhausted);
    const requested = input({ fingerprint: '1/1/x/now', isRequested: true });
    const others = input({ machineUID: 'm-2', fingerprint: '1/1/x/before', isRequested: true });
    expect([retries.waitMs(requested), retries.waitMs(other)]).toEqual([0, 15_000]);
    expect(retries.waitMs(others)).toBe(0);

    retries.failed(requested, exhausted);

    expect(retries.waitMs(requested)).toBeGreaterThan(0);
    clock.advance(1_000);
    expect(retries.waitMs(requested)).toBeGreaterThan(0);
    expect(retries.waitMs({ ...requested, fingerprint: '1/1/x/later' })).toBe(0);
  });

  describe('and a class that is changed', () => {
    const changed = (change: Partial<SentCall> = {}): SentCall =>
      input({ fingerprint: '1/2/x', classVersion: '2/x', ...change });

    test('is no more what it was: its machines try at once', () => {
      const { retries } = start();
      retries.see(input());
      retries.failed(input(), exhausted);

      retries.see(changed());

      expect(retries.waitMs(changed())).toBe(0);
      expect(retries.waitMs(changed({ machineUID: 'm-2' }))).toBe(0);
      expect(retries.isExhausted('class-1')).toBe(false);
    });

    test('is not closed by an answer of the version before, nor opened by a VM of that', () => {
      const { retries } = start();
      retries.see(changed());
      retries.failed(input(), exhausted);
      expect(retries.waitMs(changed({ machineUID: 'm-2' }))).toBe(0);

      retries.failed(changed({ machineUID: 'm-3' }), exhausted);
      retries.succeeded(input());

      expect(retries.waitMs(changed({ machineUID: 'm-2' }))).toBeGreaterThan(0);
    });

    test('stays closed when the version before is out of something, too', () => {
      const { retries } = start();
      retries.see(changed());
      retries.failed(changed(), exhausted);

      retries.failed(input({ machineUID: 'm-3' }), exhausted);

      expect(retries.waitMs(changed({ machineUID: 'm-2' }))).toBeGreaterThan(0);
    });

    test('is closed for as long as at first, whatever the version before has given a moment ago', () => {
      const { retries } = start();
      retries.see(input());
      retries.succeeded(input({ machineUID: 'm-2' }));

      retries.see(changed());
      retries.failed(changed(), exhausted);

      expect(retries.waitMs(changed({ machineUID: 'm-3' }))).toBe(15_000);
    });

    test('is closed by what another process has recorded, whatever is known of the version before', () => {
      const { retries } = start();
      retries.see(input());
      retries.failed(input(), exhausted);

      retries.see(changed());
      retries.restore(changed({ machineUID: 'm-2' }), exhausted, 4_000);

      expect(retries.waitMs(changed({ machineUID: 'm-3' }))).toBe(11_000);
    });
  });

  test('ends for the class with the first success', () => {
    const { retries } = start();
    retries.failed(input(), exhausted);
    retries.succeeded(other);

    expect(retries.waitMs(input({ machineUID: 'm-3' }))).toBe(0);
    expect(retries.waitMs(input())).toBe(15_000);
  });

  test('does not make a machine wait longer each time while others of its class get VMs', () => {
    const { clock, retries } = start();
    retries.succeeded(other);
    const waits = [1, 2, 3, 4, 5].map(() => {
      retries.failed(input(), exhausted);
      retries.succeeded(other);
      const waitMs = retries.waitMs(input());
      clock.advance(waitMs);
      return waitMs;
    });

    expect(waits).toEqual([5_000, 5_000, 5_000, 5_000, 5_000]);
  });

  test('closes a class that got a VM a moment ago for a short time, and one that gets none for longer and longer', () => {
    const { clock, retries } = start();
    retries.succeeded(other);
    const waits = [1, 2, 3, 4, 5].map(() => {
      retries.failed(input(), exhausted);
      clock.advance(TRYING_MS);
      const waitMs = retries.waitMs(input({ machineUID: 'm-3' }));
      clock.advance(waitMs);
      return TRYING_MS + waitMs;
    });

    expect(waits).toEqual([5_000, 10_000, 20_000, 40_000, 80_000]);
  });

  test('of 30 % of the creations costs 60 machines a minute at most, but for bad luck', () => {
    const tookMs = Array.from({ length: 200 }, (_unused, seed) => timeToCreate(60, 0.3, seed)).toSorted(
      (a, b) => a - b,
    );

    expect(tookMs[100]).toBeLessThan(25_000);
    expect(tookMs[190]).toBeLessThan(60_000);
  });

  test('of half of the creations costs 20 machines that try one after the other minutes, not half an hour', () => {
    const tookMs = Array.from({ length: 200 }, (_unused, seed) => timeToCreate(20, 0.5, seed, 1)).toSorted(
      (a, b) => a - b,
    );

    expect(tookMs[100]).toBeLessThan(90_000);
    expect(tookMs[190]).toBeLessThan(240_000);
  });

  test('is forgotten with its machine', () => {
    const { retries } = start();
    retries.failed(input(), new DriverError('Internal', 'x'));
    retries.forget('m-1');

    expect(retries.waitMs(input())).toBe(0);
  });
});
