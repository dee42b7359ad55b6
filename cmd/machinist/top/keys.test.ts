import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';

import { type Key, type Looking, press, type Shown, START, topFor } from './keys.ts';

const SHOWN: Shown = { keys: ['ns/a', 'ns/b', 'ns/c', 'ns/d', 'ns/e'], pageSize: 2, storyEnd: 10 };
const text = (character: string): Key => ({ name: 'text', text: character });
const typed = (word: string): readonly Key[] => Array.from(word, text);

/** After all of the keys. */
function after(keys: readonly Key[], from: Looking = START): Looking | 'quit' {
  return keys.reduce<Looking | 'quit'>((now, key) => (now === 'quit' ? now : press(now, key, SHOWN)), from);
}

describe('a key', () => {
  test.each<{ does: string; keys: readonly Key[]; from?: Partial<Looking>; want: Partial<Looking> | 'quit' }>([
    { does: 'selects the next machine', keys: [{ name: 'down' }], want: { selected: 'ns/b', top: 0 } },
    { does: 'selects the next machine', keys: [text('j'), text('j')], want: { selected: 'ns/c', top: 1 } },
    {
      does: 'selects the one before',
      keys: [{ name: 'up' }],
      from: { selected: 'ns/c', top: 2 },
      want: { selected: 'ns/b', top: 1 },
    },
    { does: 'stays at the first', keys: [text('k')], want: { selected: 'ns/a' } },
    { does: 'moves by a page', keys: [{ name: 'pagedown' }], want: { selected: 'ns/c' } },
    { does: 'moves back by a page', keys: [text('b')], from: { selected: 'ns/d' }, want: { selected: 'ns/b' } },
    { does: 'moves to the last', keys: [text('G')], want: { selected: 'ns/e', top: 3 } },
    {
      does: 'moves to the first',
      keys: [{ name: 'home' }],
      from: { selected: 'ns/e', top: 3 },
      want: { selected: 'ns/a', top: 0 },
    },
    {
      does: 'shows the story of the first machine',
      keys: [{ name: 'enter' }],
      want: { screen: 'story', selected: 'ns/a' },
    },
    {
      does: 'goes back from a story',
      keys: [{ name: 'enter' }, { name: 'escape' }],
      want: { screen: 'list', selected: 'ns/a' },
    },
    {
      does: 'scrolls a story',
      keys: [{ name: 'enter' }, { name: 'pagedown' }, { name: 'down' }],
      want: { storyTop: 3 },
    },
    {
      does: 'scrolls a story no further than its end',
      keys: [{ name: 'enter' }, { name: 'end' }, { name: 'down' }],
      want: { storyTop: 10 },
    },
    { does: 'shows the keys', keys: [text('?')], want: { screen: 'help' } },
    { does: 'leaves the keys', keys: [text('?'), text('x')], want: { screen: 'list' } },
    {
      does: 'sorts by the next order',
      keys: [text('s')],
      from: { isReversed: true },
      want: { sort: 'name', isReversed: false },
    },
    {
      does: 'sorts by the first order after the last',
      keys: [text('s')],
      from: { sort: 'age' },
      want: { sort: 'attention' },
    },
    { does: 'reverses the order', keys: [text('r')], want: { isReversed: true } },
    { does: 'shows what needs attention', keys: [text('a')], want: { onlyAttention: true } },
    {
      does: 'types a filter, letters of commands among it',
      keys: typed('/qas'),
      want: { isTyping: true, filter: 'qas' },
    },
    { does: 'takes back a letter', keys: [...typed('/a机'), { name: 'backspace' }], want: { filter: 'a' } },
    {
      does: 'keeps the filter',
      keys: [text('/'), text('x'), { name: 'enter' }],
      want: { isTyping: false, filter: 'x', screen: 'list' },
    },
    {
      does: 'gives up the filter',
      keys: [text('/'), text('x'), { name: 'escape' }],
      want: { isTyping: false, filter: '' },
    },
    {
      does: 'shows all again',
      keys: [{ name: 'escape' }],
      from: { filter: 'x', onlyAttention: true },
      want: { filter: '', onlyAttention: false },
    },
    { does: 'ends it', keys: [text('q')], want: 'quit' },
    { does: 'ends it from a story', keys: [{ name: 'enter' }, text('q')], want: 'quit' },
    { does: 'ends it while a filter is typed', keys: [text('/'), { name: 'interrupt' }], want: 'quit' },
  ])('$does: $keys', ({ keys, from, want }) => {
    const now = after(keys, { ...START, ...from });

    expect({ now }).toMatchObject({ now: want });
  });

  test('shows no story where there is no machine', () => {
    expect(press(START, { name: 'enter' }, { keys: [], pageSize: 3, storyEnd: 0 })).toEqual(START);
  });
});

test('what is selected is on the page, and the page is full where there is enough', () => {
  fc.assert(
    fc.property(
      fc.nat(300),
      fc.nat(300),
      fc.integer({ min: 1, max: 60 }),
      fc.integer({ min: 1, max: 300 }),
      (top, at, pageSize, count) => {
        const index = at % count;
        const first = topFor(top, index, pageSize, count);

        expect(index).toBeGreaterThanOrEqual(first);
        expect(index).toBeLessThan(first + pageSize);
        expect(first).toBeLessThanOrEqual(Math.max(0, count - pageSize));
        expect(first).toBeGreaterThanOrEqual(0);
      },
    ),
  );
});
