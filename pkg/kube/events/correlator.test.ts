import { describe, expect, test } from '@jest/globals';

import { MINUTE } from '../../../test/durations.ts';
import { BoundedMap } from './bounded-map.ts';
import { Correlator, type EventSubject, type Occurrence } from './correlator.ts';

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

    expect(a.key).not.toBe(b.key);
  });
});

describe('similar events', () => {
  test('are combined when more than ten differ only in their message', () => {
    const correlator = new Correlator();

    const got = Array.from({ length: 13 }, (_, i) => correlator.correlate(occurrence({ message: `try ${i}` }), i));

    expect(got.slice(0, 10).map((c) => c.message)).toEqual(Array.from({ length: 10 }, (_, i) => `try ${i}`));
    expect(got[10]?.message).toBe('(combined from similar events): try 10');
    expect(new Set(got.map((c) => c.key)).size).toBe(11);
    expect(got[12]?.key).toBe(got[10]?.key);
  });

  test('are remembered as short as they are written, however long they are', () => {
    const correlator = new Correlator();
    const messages = Array.from({ length: 13 }, (_, i) => `${'a '.repeat(200_000)}${i}${' b'.repeat(300_000)}`);

    const got = messages.map((message) => correlator.correlate(occurrence({ message }), 0));

    expect(new Set(got.map(({ key }) => key)).size).toBe(1);
    expect(got[0]?.key.length).toBeLessThan(2_000);
  });

  test('a message that is known already stays its own Event', () => {
    const correlator = new Correlator();
    for (let i = 0; i < 11; i++) correlator.correlate(occurrence({ message: `try ${i}` }), 0);

    expect(correlator.correlate(occurrence({ message: 'try 3' }), 1).message).toBe('try 3');
  });

  test('begin anew after ten quiet minutes', () => {
    const correlator = new Correlator();
    for (let i = 0; i < 11; i++) correlator.correlate(occurrence({ message: `try ${i}` }), 0);

    expect(correlator.correlate(occurrence({ message: 'try 11' }), 10 * MINUTE).message).toContain('combined');
    expect(correlator.correlate(occurrence({ message: 'try 12' }), 20 * MINUTE + 1).message).toBe('try 12');
  });
});

describe('a burst of events about one object', () => {
  const names = (count: number): string[] => Array.from({ length: count }, (_, i) => `pool-7d9f5-${10_000 + i}`);

  /** The messages that the Events end up with. */
  function told(correlator: Correlator, machines: readonly string[]): string[] {
    const events = new Map<string, string>();
    for (const name of machines) {
      const { key, message } = correlator.correlate(occurrence({ message: `Created Machine ${name}` }), 0);
      events.set(key, message);
    }
    return [...events.values()];
  }

  test('is told in few Events that leave out no name', () => {
    const machines = names(500);

    const messages = told(new Correlator(), machines);

    expect(messages.join('\n').match(/pool-7d9f5-\d+/g)).toEqual(machines);
    expect(messages.length).toBeLessThan(10 + 500 / 40);
    expect(messages.every((message) => message.length <= 1_024)).toBe(true);
    expect(messages[10]).toMatch(
      /^\(combined from similar events\): Created Machine pool-7d9f5-10010, pool-7d9f5-10011, /,
    );
  });

  test('without end is told in a bounded number of Events, the last of which shows the latest', () => {
    const machines = names(12_000);

    const messages = told(new Correlator(), machines);

    expect(messages).toHaveLength(10 + 1 + 100);
    expect(messages.at(-1)?.endsWith(`, ${machines.at(-1)}`)).toBe(true);
  });

  test('that are equal is one Event; beyond 25 it is written a little later, not dropped', () => {
    const correlator = new Correlator();

    const got = Array.from({ length: 40 }, () => correlator.correlate(occurrence(), 0));

    expect(new Set(got.map(({ key }) => key)).size).toBe(1);
    expect(got.map(({ delayMs }) => delayMs > 0)).toEqual(got.map((_, i) => i >= 25));
    expect(correlator.correlate(occurrence({ subject: machine('m-2') }), 0).delayMs).toBe(0);
    expect(correlator.correlate(occurrence(), 5 * MINUTE).delayMs).toBe(0);
  });
});

test('a message is cut to 1,024 characters', () => {
  const got = new Correlator().correlate(occurrence({ message: 'x'.repeat(5_000) }), 0);

  expect(got.message).toHaveLength(1_024);
  expect(got.message.endsWith('x…')).toBe(true);
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
