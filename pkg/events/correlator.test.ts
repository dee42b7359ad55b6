import { describe, expect, test } from '@jest/globals';

import { BoundedMap } from './bounded-map.ts';
import { Correlator, type EventSubject, type Occurrence } from './correlator.ts';

const MINUTE = 60_000;
const machine = (name: string): EventSubject => ({
  apiVersion: 'machine.sapcloud.io/v1alpha1',
  kind: 'Machine',
  namespace: 'ns',
  name,
  uid: `uid-${name}`,
});

function occurrence(change: Partial<Occurrence> = {}): Occurrence {
  return { subject: machine('m-1'), type: 'Normal', reason: 'Created', message: 'created VM', ...change };
}

describe('equal events', () => {
  test('belong to one Event', () => {
    const correlator = new Correlator();

    expect(correlator.correlate(occurrence(), 0)).toEqual(correlator.correlate(occurrence(), 5 * MINUTE));
  });

  test.each([
    { what: 'object', change: { subject: machine('m-2') } },
    { what: 'uid', change: { subject: { ...machine('m-1'), uid: 'another' } } },
    { what: 'type', change: { type: 'Warning' } },
    { what: 'reason', change: { reason: 'Deleted' } },
    { what: 'message', change: { message: 'created another VM' } },
  ] as const)('of another $what are another Event', ({ change }) => {
    const correlator = new Correlator();

    const a = correlator.correlate(occurrence(), 0);
    const b = correlator.correlate(occurrence(change), 0);

    expect(a?.key).not.toBe(b?.key);
  });
});

describe('similar events', () => {
  test('are combined when more than ten differ only in their message', () => {
    const correlator = new Correlator();

    const got = Array.from({ length: 13 }, (_, i) => correlator.correlate(occurrence({ message: `try ${i}` }), i));

    expect(got.slice(0, 10).map((c) => c?.message)).toEqual(Array.from({ length: 10 }, (_, i) => `try ${i}`));
    expect(got[10]?.message).toBe('(combined from similar events): try 10');
    expect(new Set(got.map((c) => c?.key)).size).toBe(11);
    expect(got[12]?.key).toBe(got[10]?.key);
  });

  test('a message that is known already stays its own Event', () => {
    const correlator = new Correlator();
    for (let i = 0; i < 11; i++) correlator.correlate(occurrence({ message: `try ${i}` }), 0);

    expect(correlator.correlate(occurrence({ message: 'try 3' }), 1)?.message).toBe('try 3');
  });

  test('begin anew after ten quiet minutes', () => {
    const correlator = new Correlator();
    for (let i = 0; i < 11; i++) correlator.correlate(occurrence({ message: `try ${i}` }), 0);

    expect(correlator.correlate(occurrence({ message: 'try 11' }), 10 * MINUTE)?.message).toContain('combined');
    expect(correlator.correlate(occurrence({ message: 'try 12' }), 20 * MINUTE + 1)?.message).toBe('try 12');
  });
});

describe('events about one object', () => {
  test('are 25 at once, then one per five minutes; other objects are not concerned', () => {
    const correlator = new Correlator();
    const many = (nowMs: number, name = 'm-1'): number =>
      Array.from({ length: 40 }, () => correlator.correlate(occurrence({ subject: machine(name) }), nowMs)).filter(
        (c) => c !== undefined,
      ).length;

    expect(many(0)).toBe(25);
    expect(many(5 * MINUTE - 1)).toBe(0);
    expect(many(5 * MINUTE)).toBe(1);
    expect(many(5 * MINUTE, 'm-2')).toBe(25);
    expect(many(5 * MINUTE + 2 * 60 * MINUTE)).toBe(24);
  });
});

test('a message is cut to 1,024 characters', () => {
  const got = new Correlator().correlate(occurrence({ message: 'x'.repeat(5_000) }), 0);

  expect(got?.message).toHaveLength(1_024);
  expect(got?.message.endsWith('x…')).toBe(true);
});

describe('a bounded map', () => {
  test('forgets what was not used for longest', () => {
    const map = new BoundedMap<string, number>(2);
    map.set('a', 1);
    map.set('b', 2);
    map.get('a');

    map.set('c', 3);

    expect([map.get('a'), map.get('b'), map.get('c'), map.size]).toEqual([1, undefined, 3, 2]);
  });
});
