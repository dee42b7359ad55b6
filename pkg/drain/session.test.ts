import { expect, test } from '@jest/globals';

import { FakeClock } from '../../test/fakes/fake-clock.ts';
import type { Activity } from '../work/activity/activity.ts';
import type { DrainOutcome, DrainRequest } from './drain.ts';
import { DrainSession, type DrainAttempt } from './session.ts';

const LEFT: DrainOutcome = { kind: 'incomplete', progress: { remainingPods: 1, blocked: [] } };
const REQUEST = {} as DrainRequest;

/** A session with a drain that runs for an object. */
function start() {
  const clock = new FakeClock();
  const attempt: DrainAttempt = {
    owner: { uid: 'u', key: 'ns/m', account: undefined },
    progress: undefined,
    isSuperseded: false,
  };
  let activity: Activity<DrainOutcome> | undefined;
  const forgotten: unknown[] = [];
  const session = new DrainSession({
    clock,
    drain: () => Promise.reject(new Error('not run')),
    activities: {
      get: () => activity,
      startOrGet: () => (activity = { state: 'running', sinceMs: 0 }),
      abort: () => undefined,
      forget: () => (activity = activity?.state === 'running' ? activity : undefined),
      forgetAll: (...whose: unknown[]) => void forgotten.push(whose),
    } as never,
  });
  session.begin(attempt, REQUEST);
  const end = (ended: DrainOutcome | Error): void => {
    const settledAtMs = clock.monotonicMs();
    activity =
      ended instanceof Error
        ? { state: 'failed', error: ended, settledAtMs }
        : { state: 'done', result: ended, settledAtMs };
  };
  return { session, clock, attempt, end, forgotten };
}

test.each([
  { what: 'leaves pods', ended: LEFT, after: 'none' },
  { what: 'fails', ended: new Error('no'), after: 'none' },
  { what: 'empties the Node', ended: { kind: 'drained' } as const, after: 'ended' },
])('a drain that $what has ended, and is $after when it is asked for again', ({ ended, after }) => {
  const { session, end } = start();
  expect(session.advance('u').kind).toBe('running');
  end(ended);

  expect([session.advance('u').kind, session.advance('u').kind]).toEqual(['ended', after]);
});

test.each([
  { what: 'leaves pods', ended: LEFT, kind: 'none' },
  { what: 'has emptied the Node meanwhile', ended: { kind: 'drained' } as const, kind: 'ended' },
])('of a drain that gave way and $what, the end is $kind', ({ ended, kind }) => {
  const { session, end } = start();
  session.supersede('u', 'another one');
  end(ended);

  expect(session.advance('u')).toMatchObject({ kind, attempt: { isSuperseded: true } });
});

test('a drain rests until it may be tried again, or something has changed that let it fail', () => {
  const { session, clock, end } = start();
  end(new Error('no rules'));
  session.rest('u', clock.monotonicMs() + 5_000);
  clock.advance(1_000);
  expect(session.advance('u')).toMatchObject({ kind: 'none', restMs: 4_000 });

  session.retry('u');

  expect(session.advance('u')).toMatchObject({ kind: 'none', restMs: -1_000 });
});

test('a change takes a failure away that nobody has looked at, and no Node that is empty', () => {
  const { session, end } = start();
  end({ kind: 'drained' });
  session.retry('u');
  expect(session.advance('u').kind).toBe('ended');

  end(new Error('no rules'));
  session.retry('u');
  expect(session.advance('u').kind).toBe('none');
});

test('a drain is known until it has ended and is not needed any more', () => {
  const { session, attempt, end } = start();
  expect([session.end('u', 'why'), session.attempts.get('u')]).toEqual([false, attempt]);
  end(LEFT);

  expect([session.end('u', 'why'), session.attempts.get('u')]).toEqual([true, undefined]);
});

test.each([
  { key: 'ns/m', except: undefined, isKnown: false },
  { key: 'ns/m', except: 'other', isKnown: false },
  { key: 'ns/m', except: 'u', isKnown: true },
  { key: 'ns/n', except: undefined, isKnown: true },
])('of an object that is gone nothing is known: $key but $except: $isKnown', ({ key, except, isKnown }) => {
  const { session, forgotten } = start();

  session.forgetAll(key, except);

  expect(session.attempts.has('u')).toBe(isKnown);
  expect(forgotten).toEqual([[key, except]]);
});
