import { expect, test } from '@jest/globals';

import { machine, type BuiltMachine } from '../../../../test/builders.ts';
import { nodeMarksDue, type MarkFacts } from './node-marks.ts';

const one = (name: string, change: (m: BuiltMachine) => void = () => undefined) =>
  machine((m) => {
    Object.assign(m.metadata, { name, uid: name, labels: { node: name } });
    change(m);
  });
const come = (name: string, minute: number) =>
  one(name, (m) => void (m.metadata.creationTimestamp = `2026-01-01T00:0${minute}:00Z`));
const going = (name: string, change: (m: BuiltMachine) => void = () => undefined) =>
  one(name, (m) => {
    m.metadata.deletionTimestamp = '2026-01-01T00:09:00Z';
    change(m);
  });

const [HELD, FREE, OPEN] = ['held', 'free', 'as it is'];
const WORDS = new Map([
  [true, HELD],
  [false, FREE],
  [undefined, OPEN],
]);

interface Row extends Partial<MarkFacts> {
  readonly title: string;
  readonly want: Readonly<Record<string, string | undefined>>;
}

test.each<Row>([
  { title: 'no rollout', want: { a: FREE, b: FREE } },
  {
    title: 'a rollout that is choosing',
    stage: 'choosing',
    old: [one('o'), going('p')],
    want: { o: OPEN, a: OPEN, b: OPEN },
  },
  {
    title: 'one that came in place of another',
    replacements: new Set(['a']),
    want: { a: HELD, b: FREE },
  },
  {
    title: 'one that came in place of another in a rollout',
    stage: 'choosing',
    replacements: new Set(['a']),
    want: { a: HELD, b: OPEN },
  },
  {
    title: 'the last old machine going, for which the last one has come',
    stage: 'emptying',
    old: [going('o')],
    want: { a: FREE, b: HELD },
  },
  {
    title: 'the last two going',
    stage: 'emptying',
    old: [going('o'), going('p')],
    want: { a: HELD, b: HELD },
  },
  {
    title: 'the last one going, chosen by the autoscaler',
    stage: 'emptying',
    old: [
      going(
        'o',
        (m) => (m.metadata.annotations['machine.sapcloud.io/marked-for-deletion-time'] = '2026-01-01T00:00:00Z'),
      ),
    ],
    want: { a: FREE, b: FREE },
  },
  {
    title: 'the last one going, which never had a Node',
    stage: 'emptying',
    old: [going('o', (m) => (m.metadata.labels = {}))],
    want: { a: FREE, b: FREE },
  },
  {
    title: 'the last one going, while a new one goes too',
    stage: 'emptying',
    old: [going('o')],
    current: [come('a', 1), come('b', 2), going('c')],
    want: { a: FREE, b: HELD },
  },
  {
    title: 'old machines of a rollout that is paused',
    stage: 'none',
    old: [one('o')],
    want: { o: FREE, a: FREE, b: FREE },
  },
  {
    title: 'a process that keeps nothing from the autoscaler',
    holdsScaleDown: false,
    stage: 'choosing',
    old: [one('o')],
    replacements: new Set(['a']),
    want: { o: FREE, a: FREE, b: FREE },
  },
])('of $title the Nodes are kept from the autoscaler: $want', ({ title: _title, want, ...facts }) => {
  const current = [come('a', 1), come('b', 2)];
  const marks = nodeMarksDue({
    current,
    old: [],
    stage: 'none',
    replacements: new Set(),
    holdsScaleDown: true,
    ...facts,
  });

  const holds = [...marks].map(([{ metadata }, { holdScaleDown }]) => [metadata.name, WORDS.get(holdScaleDown)]);
  expect(Object.fromEntries(holds)).toEqual(want);
});

test('no Node of the present template keeps the taint of an old one, whatever the stage', () => {
  const [current, old] = [[one('a')], [one('o')]];
  for (const stage of ['none', 'choosing', 'emptying'] as const) {
    const marks = nodeMarksDue({ current, old, stage, replacements: new Set(), holdsScaleDown: true });

    expect([...marks].map(([, { taint }]) => taint)).toEqual([undefined, false]);
  }
});

test('of two that came in one second the same one is kept each time', () => {
  const [old, current] = [[going('o')], [come('b', 1), come('a', 1)]];
  for (const order of [current, current.toReversed()]) {
    const marks = nodeMarksDue({
      current: order,
      old,
      stage: 'emptying',
      replacements: new Set(),
      holdsScaleDown: true,
    });

    const held = [...marks].filter(([, { holdScaleDown }]) => holdScaleDown === true);
    expect(held.map(([{ metadata }]) => metadata.name)).toEqual(['a']);
  }
});
