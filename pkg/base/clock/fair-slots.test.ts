import { setImmediate } from 'node:timers/promises';

import { expect, test } from '@jest/globals';
import fc from 'fast-check';

import { FairSlots } from './fair-slots.ts';

const never = new AbortController().signal;

/** Slots of which each request keeps one until it is told to end. */
function start(count: number) {
  const slots = new FairSlots(count);
  const begun: { readonly name: string; readonly end: () => void }[] = [];
  const ask = (name: string, flow: string, signal = never): Promise<unknown> =>
    slots.acquire(signal, flow).then((slot) => begun.push({ name, end: () => slot[Symbol.dispose]() }));
  return { begun, ask, names: () => begun.map(({ name }) => name) };
}

test('a flow with one request waits for one slot of each other flow at most, however many requests these have', async () => {
  const flow = fc.constantFrom('a', 'b', 'c');
  await fc.assert(
    fc.asyncProperty(fc.array(flow, { maxLength: 30 }), fc.integer({ min: 1, max: 4 }), async (asked, count) => {
      const { begun, ask, names } = start(count);
      for (const of of asked) void ask(of, of);
      await setImmediate();
      expect(begun).toHaveLength(Math.min(count, asked.length));
      void ask('single', 'single');
      await setImmediate();
      for (let i = 0; i < begun.length; i++) {
        expect(begun.length - i).toBeLessThanOrEqual(count);
        begun[i]?.end();
        await setImmediate();
      }

      expect(names().indexOf('single') - Math.min(count, asked.length)).toBeLessThanOrEqual(3);
      expect(names().toSorted()).toEqual([...asked, 'single'].toSorted());
    }),
  );
});

test('who gives up is told why and has no slot; one that is free is given at once', async () => {
  const { begun, ask, names } = start(1);
  const leaving = new AbortController();
  await ask('first', 'a');
  const left = ask('second', 'a', leaving.signal);
  void ask('third', 'a');
  leaving.abort(new Error('enough'));
  await expect(left).rejects.toThrow('enough');
  await expect(ask('late', 'a', leaving.signal)).rejects.toThrow('enough');

  begun[0]?.end();
  await setImmediate();
  expect(names()).toEqual(['first', 'third']);
  begun[1]?.end();
  await ask('fourth', 'b');
  expect(names()).toEqual(['first', 'third', 'fourth']);
});
