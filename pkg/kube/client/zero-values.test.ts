import { expect, test } from '@jest/globals';

import { isEqualInGo } from './zero-values.ts';

test.each([
  { a: undefined, b: undefined, isSame: true },
  { a: undefined, b: null, isSame: true },
  { a: {}, b: undefined, isSame: true },
  { a: { list: [] }, b: {}, isSame: true },
  { a: { time: null, text: '', count: 0, flag: false, ref: {} }, b: {}, isSame: true },
  { a: [{ name: 'x', ref: {} }], b: [{ name: 'x' }], isSame: true },
  { a: { deep: { port: { port: 0 } } }, b: undefined, isSame: true },
  { a: [{}], b: [], isSame: false },
  { a: [{ name: 'x' }, { name: 'y' }], b: [{ name: 'y' }, { name: 'x' }], isSame: false },
  { a: { count: 1 }, b: {}, isSame: false },
  { a: { flag: true }, b: {}, isSame: false },
  { a: { text: '0' }, b: {}, isSame: false },
  { a: { text: '0' }, b: { text: '1' }, isSame: false },
])('to a server in Go $a is $b: $isSame', ({ a, b, isSame }) => {
  expect([isEqualInGo(a, b), isEqualInGo(b, a)]).toEqual([isSame, isSame]);
});
