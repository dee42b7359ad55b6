import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';

import { Places } from './places.ts';

describe('the places of a group', () => {
  test('keep their names while others are added', () => {
    const places = new Places('x');

    expect(places.see('g', 2)).toEqual(['x-0', 'x-1']);
    expect(places.see('g', 3)).toEqual(['x-0', 'x-1', 'x-2']);
  });

  test('are given up from the oldest on when Machines come', () => {
    const places = new Places('x');
    places.see('g', 3);

    expect(places.see('g', 1)).toEqual(['x-2']);
  });

  test('that somebody asked to take back are given up first', () => {
    const places = new Places('x');
    places.see('g', 3);
    places.ask('g', ['x-1']);

    expect(places.see('g', 2)).toEqual(['x-0', 'x-2']);
    expect(places.see('g', 1)).toEqual(['x-2']);
  });

  test('that were taken back are gone at once, and never come again', () => {
    const places = new Places('x');
    places.see('g', 3);
    places.take('g', ['x-2']);

    expect(places.see('g', 3)).toEqual(['x-0', 'x-1', 'x-3']);
    places.see('g', 0);
    expect(places.see('g', 1)).toEqual(['x-4']);
  });

  test('are of one group alone, until it is forgotten', () => {
    const places = new Places('x');
    places.see('g', 1);

    expect(places.see('h', 2)).toEqual(['x-0', 'x-1']);
    places.forget('g');
    places.ask('g', ['x-0']);
    places.take('g', ['x-0']);
    expect(places.see('h', 2)).toEqual(['x-0', 'x-1']);
  });

  test('are as many as there are, each of one name, and no name is given twice', () => {
    const step = fc.record({ count: fc.nat(6), ask: fc.array(fc.nat(5)), take: fc.array(fc.nat(5)) });
    fc.assert(
      fc.property(fc.array(step), (steps) => {
        const places = new Places('x');
        const gone = new Set<string>();
        let before: readonly string[] = [];
        for (const { count, ask, take } of steps) {
          const now = [...places.see('g', count)];
          expect(new Set(now).size).toBe(count);
          expect(now.filter((place) => gone.has(place))).toEqual([]);
          for (const place of before) if (!now.includes(place)) gone.add(place);
          const some = (indexes: readonly number[]): string[] => indexes.flatMap((i) => now[i] ?? []);
          places.ask('g', some(ask));
          places.take('g', some(take));
          before = now;
        }
      }),
    );
  });
});
