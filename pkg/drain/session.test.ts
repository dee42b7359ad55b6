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
  return { session, attempt, end, forgotten };
}

test.each([
  { what: 'leaves pods', ended: LEFT, state: 'done', after: undefined },
  { what: 'fails', ended: new Error('no'), state: 'failed', after: undefined },
  { what: 'empties the Node', ended: { kind: 'drained' } as const, state: 'done', after: 'done' },
])('a drain that $what has ended, and is $after when it is asked for again', ({ ended, state, after }) => {
  const { session, end } = start();
  expect(session.advance('u')?.state).toBe('running');
  end(ended);

  expect([session.advance('u')?.state, session.advance('u')?.state]).toEqual([state, after]);
});

test.each([
  { what: 'leaves pods', ended: LEFT, state: undefined },
  { what: 'has emptied the Node meanwhile', ended: { kind: 'drained' } as const, state: 'done' },
])('of a drain that gave way and $what, the end is $state', ({ ended, state }) => {
  const { session, end } = start();
  session.supersede('u', 'another one');
  end(ended);

  expect(session.advance('u')?.state).toBe(state);
});

test('a drain rests until it may be tried again, or something has changed that let it fail', () => {
  const { session, attempt, end } = start();
  end(new Error('no rules'));
  session.rest('u', 5_000);
  expect([session.advance('u'), attempt.retryAtMs]).toEqual([undefined, 5_000]);

  session.retry('u');

  expect([session.advance('u'), attempt.retryAtMs]).toEqual([undefined, undefined]);
});

test('a change takes a failure away that nobody has looked at, and no Node that is empty', () => {
  const { session, end } = start();
  end({ kind: 'drained' });
  session.retry('u');
  expect(session.advance('u')?.state).toBe('done');

  end(new Error('no rules'));
  session.retry('u');
  expect(session.advance('u')).toBeUndefined();
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
