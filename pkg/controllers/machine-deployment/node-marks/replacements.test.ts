import { describe, expect, test } from '@jest/globals';

import { machine, type BuiltMachine } from '../../../../test/builders.ts';
import { FakeClock } from '../../../../test/fakes/fake-clock.ts';
import { MARKED_FOR_DELETION_TIME_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import { MINUTE_MS } from '../../../base/clock/clock.ts';
import { comeInPlace, GRACE_MS, Replacements } from './replacements.ts';

/** Created at that minute. */
const at = (minute: number, name: string, change: (m: BuiltMachine) => void = () => undefined) =>
  machine((m) => {
    Object.assign(m.metadata, { name, uid: name, creationTimestamp: `2026-01-01T00:0${minute}:00Z` });
    change(m);
  });
const going =
  (minute: number) =>
  ({ metadata }: BuiltMachine): void => {
    metadata.deletionTimestamp = `2026-01-01T00:0${minute}:00Z`;
  };
const bare = (m: BuiltMachine): void => {
  going(2)(m);
  m.metadata.labels = {};
};
const chosen = (m: BuiltMachine): void => {
  going(2)(m);
  m.metadata.annotations[MARKED_FOR_DELETION_TIME_ANNOTATION] = '2026-01-01T00:02:00Z';
};

describe('in place of others have come', () => {
  test.each([
    { title: 'none, when none goes', machines: [at(0, 'a'), at(5, 'b')], want: [] },
    { title: 'none of those that were there before', machines: [at(0, 'a', going(2)), at(1, 'b')], want: [] },
    { title: 'the one that came since', machines: [at(0, 'a', going(2)), at(1, 'b'), at(3, 'c')], want: ['c'] },
    { title: 'the one of the same second', machines: [at(0, 'a', going(2)), at(2, 'c')], want: ['c'] },
    { title: 'as many as go, the first', machines: [at(0, 'a', going(2)), at(4, 'd'), at(3, 'c')], want: ['c'] },
    {
      title: 'one of two that are alike, by name',
      machines: [at(0, 'a', going(2)), at(3, 'd'), at(3, 'c')],
      want: ['c'],
    },
    {
      title: 'two for two',
      machines: [at(0, 'a', going(3)), at(0, 'b', going(2)), at(2, 'c'), at(3, 'd')],
      want: ['c', 'd'],
    },
    { title: 'none that goes itself', machines: [at(0, 'a', going(2)), at(3, 'c', going(4)), at(5, 'd')], want: ['d'] },
    { title: 'none for one without Node', machines: [at(0, 'a', bare), at(3, 'c')], want: [] },
    { title: 'none for one that an autoscaler has chosen', machines: [at(0, 'a', chosen), at(3, 'c')], want: [] },
  ])('$title', ({ machines, want }) => {
    expect(comeInPlace(machines).map(({ metadata }) => metadata.name)).toEqual(want);
  });
});

describe('a Machine that came in place of another', () => {
  const [old, other, come] = [at(0, 'a', going(2)), at(1, 'b'), at(3, 'c')];

  test('counts while that one is there, and for a while after', () => {
    const clock = new FakeClock();
    const replacements = new Replacements({ clock });
    const see = (...machines: BuiltMachine[]): readonly string[] => [...replacements.see('pool', [machines])];

    expect([see(old, other, come), replacements.dueInMs('pool')]).toEqual([['c'], undefined]);
    clock.advance(3 * GRACE_MS);
    expect([see(old, other, come), replacements.dueInMs('pool')]).toEqual([['c'], undefined]);
    clock.advance(MINUTE_MS);
    expect([see(other, come), replacements.dueInMs('pool')]).toEqual([['c'], GRACE_MS]);
    clock.advance(GRACE_MS - 1);
    expect([see(other, come), replacements.dueInMs('pool')]).toEqual([['c'], 1]);
    clock.advance(1);
    expect([see(other, come), replacements.dueInMs('pool')]).toEqual([[], undefined]);
  });

  test('is one of its own set and owner, and forgotten with either', () => {
    const replacements = new Replacements({ clock: new FakeClock() });

    expect([...replacements.see('pool', [[old], [come]])]).toEqual([]);
    replacements.see('pool', [[old, come]]);
    expect([...replacements.see('other', [[come]])]).toEqual([]);
    expect([...replacements.see('pool', [[]])]).toEqual([]);
    expect([...replacements.see('pool', [[come]])]).toEqual([]);
    replacements.see('pool', [[old, come]]);
    replacements.forget('pool');
    expect([...replacements.see('pool', [[come]])]).toEqual([]);
  });
});
